//! Runs a pipeline: moves batches from a source to sinks, cuts the stream into epochs, checkpoints, commits, restarts.
//!
//! [`Pipeline::start`] is the way in. The engine knows sources, sinks and time only through `cdchost-connector`.
#![warn(missing_docs)]

mod channel;
mod checkpointer;
mod failpoints;
mod failure;
mod generation;
mod handle;
mod metrics;
mod recovery;
mod refused;
mod retry;
mod setup;
mod status;
mod supervisor;
mod tasks;

pub use failpoints::FAILPOINTS;
#[cfg(feature = "failpoints")]
pub use failpoints::arm_failpoints;
pub use handle::{Pipeline, PipelineControl, PipelineHandle};
pub use metrics::PipelineMetrics;
pub use setup::{NamedColumn, PathSetup, PipelineSetup, RouteSetup, SinkSetup, TransformSetup};
pub use status::{HeldUp, PipelineExit, PipelineState, PipelineStatus, Reason, SinkStatus};
pub use tasks::lanes::{Plan, PlannedTable, RefusedPlan, Unmet, plan_tables};
