//! Runs a pipeline: moves batches from a source to sinks, cuts the stream into epochs, checkpoints, commits, restarts.
//!
//! [`Pipeline::start`] is the way in. The engine knows sources, sinks and time only through `cdchost-connector`.
#![warn(missing_docs)]

mod handle;
mod metrics;
mod setup;
mod status;

pub use handle::{Pipeline, PipelineControl, PipelineHandle};
pub use metrics::PipelineMetrics;
pub use setup::{PipelineSetup, SinkSetup};
pub use status::{PipelineExit, PipelineState, PipelineStatus, Reason, SinkStatus};
