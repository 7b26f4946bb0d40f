//! What the host calls in a guest: the sink ports over one instance each.

mod capabilities;
mod fault;
mod instance;
mod sink;
mod sink_committer;
mod sink_writer;

pub(crate) use instance::{Instance, Site};
pub(crate) use sink::PluginSink;
