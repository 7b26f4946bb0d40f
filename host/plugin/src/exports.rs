//! What the host calls in a guest: the ports over one instance each.

mod capabilities;
mod fault;
mod guest;
mod instance;
mod plans;
mod route;
mod sink;
mod sink_committer;
mod sink_writer;
mod transform;

pub(crate) use guest::Template;
pub(crate) use instance::{Instance, Site};
pub(crate) use route::PluginRouteConnector;
pub(crate) use sink::PluginSink;
pub(crate) use transform::PluginTransformConnector;
