//! What a pipeline is made of.

use std::sync::Arc;

use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{CheckpointConfig, RestartConfig, TablePatterns};
use cdchost_connector::{Clock, RouteConnector, Sink, SourceConnector, TransformConnector};
use cdchost_model::TableId;

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
    /// What becomes of them on the way.
    pub path: PathSetup,
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

/// Transforms and routes. The default has none: every table goes to a target of its own name, as it is.
#[derive(Clone, Debug, Default)]
pub struct PathSetup {
    /// A table passes those that match it, in this order.
    pub transforms: Vec<TransformSetup>,
    /// A table goes wherever those that match it lead; where none matches, to a target of its own name.
    pub routes: Vec<RouteSetup>,
    /// Lanes side by side, at least one; a table is always in the same one.
    pub lanes: u32,
    /// Digest of all of it, as the targets keep it; zeros without transforms and routes.
    pub digest: [u8; 32],
}

/// One transform.
#[derive(Clone, Debug)]
pub struct TransformSetup {
    /// The tables that it is for, by the source's names.
    pub tables: TablePatterns,
    /// Columns that its options name, each of which some table must have.
    pub columns: Vec<NamedColumn>,
    /// The transform.
    pub transform: Arc<dyn TransformConnector>,
}

/// A column that an option of a transform names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColumn {
    /// The option.
    pub option: String,
    /// The column's name.
    pub name: String,
}

/// One route.
#[derive(Clone, Debug)]
pub struct RouteSetup {
    /// The tables that it is for, by the source's names.
    pub tables: TablePatterns,
    /// Targets that its options name: those that rows may choose, as far as that is known before there are any.
    pub targets: Vec<TableId>,
    /// The route.
    pub route: Arc<dyn RouteConnector>,
}

impl PathSetup {
    /// Whether every row passes as it is, under its own name.
    pub fn is_plain(&self) -> bool {
        self.transforms.is_empty() && self.routes.is_empty()
    }
}
