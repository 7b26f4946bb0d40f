//! What a pipeline says of itself.

use std::collections::BTreeMap;

use cdchost_connector::{Capabilities, ConnectorError, SourceProgress, StopClass};
use cdchost_model::{Epoch, Generation, TableId};

/// What a pipeline is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineState {
    /// Its first run is being set up: restore, recover, connect.
    #[default]
    Starting,
    /// Data flows.
    Running,
    /// A failure ended a run; the next one begins after a pause.
    Restarting,
    /// It drains: the last epoch is prepared, stored and committed.
    Stopping,
    /// It ended as it was told to, or because its input ended.
    Stopped,
    /// It ended for good, for the reason given.
    Failed,
}

impl PipelineState {
    /// The word that stands in status.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// Why a pipeline stopped or restarts, without row values and secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The class.
    pub class: StopClass,
    /// A short stable code.
    pub code: String,
    /// What and where: lower case, no full stop; causes behind it, joined by colons.
    pub message: String,
    /// What a person can do.
    pub instruction: String,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// What to do about an error that does not say it.
const UNFORESEEN: &str = "report this with the log of the time before it";

impl From<&ConnectorError> for Reason {
    fn from(error: &ConnectorError) -> Self {
        let mut message = error.message.clone();
        let mut cause = error.cause.as_deref().map(|cause| cause as &dyn std::error::Error);
        while let Some(inner) = cause {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            cause = inner.source();
        }
        let instruction = if error.instruction.is_empty() { UNFORESEEN } else { error.instruction.as_str() };
        Self { class: error.class, code: error.code.clone(), message, instruction: instruction.to_owned() }
    }
}

impl Reason {
    /// Why a call to the checkpoint store failed.
    pub(crate) fn of_store(error: &dyn std::error::Error) -> Self {
        let (class, code) = (StopClass::Storage, "checkpoint-store".to_owned());
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            cause = inner.source();
        }
        let instruction = "make the checkpoint store reachable, writable and large enough".to_owned();
        Self { class, code, message, instruction }
    }
}

/// A call that failed and is made again until it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// When it failed first, in microseconds since the epoch.
    pub since_micros: i64,
    /// Times that it failed.
    pub tries: u64,
    /// Why it failed last.
    pub reason: Reason,
}

/// One sink as status shows it.
#[derive(Clone, Debug)]
pub struct SinkStatus {
    /// Its id.
    pub id: String,
    /// The plugin's name and version.
    pub version: String,
    /// SHA-256 of the component.
    pub digest: [u8; 32],
    /// Number of writers.
    pub parallelism: u32,
    /// What it says it can do; none before it was opened.
    pub capabilities: Option<Capabilities>,
    /// The newest epoch that it has committed.
    pub committed: Option<Epoch>,
}

/// All that a pipeline says of itself, renewed as it changes.
#[derive(Clone, Debug, Default)]
pub struct PipelineStatus {
    /// What it is doing.
    pub state: PipelineState,
    /// Why it failed, or why it restarts.
    pub reason: Option<Reason>,
    /// The run's number; none before it has claimed its place in the store.
    pub generation: Option<Generation>,
    /// The newest epoch with a durable record.
    pub durable: Option<Epoch>,
    /// The newest epoch committed at all sinks.
    pub committed: Option<Epoch>,
    /// When that was; of an epoch of an earlier run, when its record was made.
    pub committed_micros: Option<i64>,
    /// When a checkpoint last found that nothing had come since that epoch; none where none did.
    pub unchanged_micros: Option<i64>,
    /// Calls that fail and are repeated just now, by who makes them and what they do.
    pub held_up: BTreeMap<String, HeldUp>,
    /// Restarts since the start.
    pub restarts: u64,
    /// How far the source is.
    pub source: SourceProgress,
    /// Where transforms and routes lead the rows of each table, as far as seen; empty without any.
    pub routes: BTreeMap<TableId, Vec<TableId>>,
    /// The sinks, in the order of the configuration.
    pub sinks: Vec<SinkStatus>,
}

impl PipelineStatus {
    /// The tables of the source whose rows go to a target, as far as seen.
    pub(crate) fn sources_of(&self, target: &TableId) -> Vec<TableId> {
        let led = self.routes.iter().filter(|(_, targets)| targets.contains(target));
        let sources: Vec<TableId> = led.map(|(source, _)| source.clone()).collect();
        if sources.is_empty() { vec![target.clone()] } else { sources }
    }

    /// The call that is held up for the longest time.
    pub fn held_up_longest(&self) -> Option<(&str, &HeldUp)> {
        let all = self.held_up.iter().map(|(call, held)| (call.as_str(), held));
        all.min_by_key(|(_, held)| held.since_micros)
    }

    /// That call in words: what, since when, why.
    pub fn told_held_up(&self, now_micros: i64) -> Option<String> {
        let (call, held) = self.held_up_longest()?;
        let seconds = now_micros.saturating_sub(held.since_micros).max(0) / 1_000_000;
        Some(format!("{call} fails again and again for {seconds} s: {}", held.reason.message))
    }
}

/// How a pipeline ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineExit {
    /// Its input ended, and all of it is committed.
    Finished,
    /// It was told to stop, and all it had taken is committed.
    Stopped,
    /// It cannot go on.
    Failed(Reason),
}
