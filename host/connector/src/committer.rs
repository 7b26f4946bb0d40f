//! The once-per-sink half of a sink: tables and commits.

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_model::{Committable, Cut, SchemaChange, SinkProgress, TableSchema};

use crate::{Capabilities, ConnectorError};

/// What became of one committable.
#[derive(Debug)]
pub enum CommitOutcome {
    /// Visible now.
    Committed,
    /// Was visible before this call.
    AlreadyCommitted,
    /// Not yet; call again with this item after so many milliseconds.
    RetryAfter(u32),
    /// The target no longer has what was prepared. Never silent: the restart policy decides.
    Lost(String),
    /// Not done; the error says what now.
    Failed(ConnectorError),
}

/// What [`Committer::recover`] found.
#[derive(Debug)]
pub struct Recovered {
    /// One outcome a pending committable, in order.
    pub outcomes: Vec<CommitOutcome>,
    /// The newest epoch that is wholly visible in the target; none where the target has no marker of any pipeline, or
    /// the sink keeps none.
    pub progress: Option<SinkProgress>,
}

/// A change of one target table.
#[derive(Clone, Debug)]
pub struct SchemaChangeRequest {
    /// The same at every replay: the target keeps it and applies the change once.
    pub id: String,
    /// The cut that the change follows.
    pub at: Cut,
    /// The table before; none for a new table.
    pub before: Option<Arc<TableSchema>>,
    /// What changes.
    pub change: SchemaChange,
    /// The table after; none for a dropped table.
    pub after: Option<Arc<TableSchema>>,
}

/// Tables and commits of one sink.
///
/// Order of calls: `open`, `recover`, then any of the others, then `close`. One call at a time. After an error other
/// than [`crate::Verdict::Retry`] the committer is not called again.
#[async_trait]
pub trait Committer: Send {
    /// Connects and says what the sink can do. Nothing in the target changes.
    async fn open(&mut self) -> Result<Capabilities, ConnectorError>;

    /// Before any writer opens: settles `pending` as [`Committer::commit`] does (items of several epochs come in epoch
    /// order), removes what this pipeline left of generations below its own beyond `restored`, and says how far the
    /// target is.
    async fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered, ConnectorError>;

    /// Applies a change to the target's table. Repeated after a failure and at replays, with the same id.
    async fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<(), ConnectorError>;

    /// Makes one epoch visible. Called only with committables that came out of a durable record, in epoch order. May
    /// be repeated with the same items, also by another process and at the same time. One outcome an item. An epoch
    /// without items is still announced, so that the target's marker moves on.
    async fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<CommitOutcome>, ConnectorError>;

    /// Throws prepared work away. Only for items of the own generation that no record holds.
    async fn abort(&mut self, items: &[Committable]) -> Result<(), ConnectorError>;

    /// After the commit of an epoch that a savepoint was made of: pins the target's state to it.
    async fn on_savepoint(&mut self, id: &str, at: &Cut) -> Result<(), ConnectorError>;

    /// Ends the committer.
    async fn close(&mut self);
}
