//! `[checkpoint]`.

use std::path::PathBuf;
use std::time::Duration;

/// When and where checkpoints are made.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointConfig {
    /// Time between the starts of two checkpoints (`"10s"`).
    pub interval: Duration,
    /// How long one may take before the pipeline restarts (`"10m"`).
    pub timeout: Duration,
    /// Time between the end of one and the start of the next at least (`"0s"`).
    pub min_pause: Duration,
    /// Committed records kept (3).
    pub retained: u32,
    /// Failed checkpoints in a row before the pipeline restarts (0).
    pub tolerable_failures: u32,
    /// URL of the store (`file:///…`). Credentials come from `[storage.NAME]` when written as `storage:NAME/path`.
    pub store: String,
    /// Folder of this machine for the lock and the control socket, where `store` is none.
    pub folder: Option<PathBuf>,
}
