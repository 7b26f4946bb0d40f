//! The whole file.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{CheckpointConfig, MysqlConfig, Secret, SinkConfig, StepConfig};

/// A pipeline.toml, checked, with defaults filled in and references resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineConfig {
    /// The pipeline's stable name; enters state and target names.
    pub name: String,
    /// Writers of each sink.
    pub parallelism: u32,
    /// What must hold; a combination that cannot hold it is refused.
    pub guarantee: Guarantee,
    /// How often the pipeline restarts by itself.
    pub restart: RestartConfig,
    /// Where the changes come from.
    pub source: MysqlConfig,
    /// What becomes of rows on the way, in order.
    pub transforms: Vec<StepConfig>,
    /// Which tables they go to.
    pub routes: Vec<StepConfig>,
    /// Where they go.
    pub sinks: Vec<SinkConfig>,
    /// Roots that plugins may be granted.
    pub storage: BTreeMap<String, StorageConfig>,
    /// When and where checkpoints are made.
    pub checkpoint: CheckpointConfig,
}

/// What must hold end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guarantee {
    /// No row lost, none doubled.
    #[default]
    ExactlyOnce,
    /// No row lost; after a failure some may come twice.
    AtLeastOnce,
}

/// How often the pipeline restarts by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartConfig {
    /// Restarts within `window` at most (10).
    pub budget: u32,
    /// See `budget` (10 minutes).
    pub window: Duration,
    /// First pause (200 ms); doubles up to `backoff_max`.
    pub backoff: Duration,
    /// Longest pause (30 s).
    pub backoff_max: Duration,
}

/// `[storage.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageConfig {
    /// `file:///…` or `s3://bucket/prefix`.
    pub url: String,
    /// Further keys of the store (endpoint, region, …).
    pub options: BTreeMap<String, String>,
    /// Keys of the store that are secret.
    pub secrets: BTreeMap<String, Secret>,
}
