//! What a pipeline is made of.

use std::sync::Arc;

use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{CheckpointConfig, RestartConfig};
use cdchost_connector::{Clock, Sink, SourceConnector};

use crate::PipelineMetrics;

/// All that [`crate::Pipeline::start`] needs.
#[derive(Debug)]
pub struct PipelineSetup {
    /// The pipeline's stable name.
    pub name: String,
    /// The configuration as JSON, without secrets; kept in every record, for people.
    pub config: String,
    /// When checkpoints are made and how many are kept; the store's URL in it is not looked at.
    pub checkpoint: CheckpointConfig,
    /// How often it restarts by itself.
    pub restart: RestartConfig,
    /// Where the changes come from. When it says that its input has ended, the pipeline drains and ends with
    /// [`crate::PipelineExit::Finished`].
    pub source: Arc<dyn SourceConnector>,
    /// Where they go; ids differ from each other.
    pub sinks: Vec<SinkSetup>,
    /// Where checkpoints are kept; this pipeline's alone.
    pub store: CheckpointStore,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where it counts.
    pub metrics: PipelineMetrics,
}

/// One sink, and how many of its writers run side by side.
#[derive(Clone, Debug)]
pub struct SinkSetup {
    /// The sink.
    pub sink: Arc<dyn Sink>,
    /// Its writers, at least one.
    pub parallelism: u32,
}
