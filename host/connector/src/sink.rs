//! A sink as the engine sees it, and its once-per-subtask half: data.

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_model::{ChangeBatch, Committable, Cut, Generation, StateBlob, TableId, TableSchema};

use crate::{Committer, ConnectorError};

/// What a sink guarantees of what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Two-phase: prepared work is durable and invisible, a commit makes it visible once.
    Transactional,
    /// Writes by key and version: repeating them changes nothing.
    Idempotent,
    /// A replay may write rows again.
    AtLeastOnce,
}

/// Which order of rows a sink needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// None: rows may go to any writer.
    None,
    /// Rows of one key in order, at one writer.
    PerKey,
    /// Rows of one table in order, at one writer.
    PerTable,
}

/// Things that not every sink can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ability {
    /// Keeps a progress marker in the target.
    pub reports_progress: bool,
    /// Can remove rows older than a change-seq.
    pub purges_older: bool,
    /// Can roll the target back to a savepoint.
    pub rolls_back: bool,
    /// Can empty a table.
    pub truncates: bool,
    /// Takes updates and deletes of tables without key.
    pub takes_changelog: bool,
}

/// What a sink says of itself at `open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its guarantee.
    pub delivery: Delivery,
    /// The order it needs.
    pub ordering: Ordering,
    /// Whether it wants rows as they were before updates.
    pub wants_update_before: bool,
    /// What else it can do.
    pub abilities: Ability,
    /// Tags of the schema changes it applies.
    pub schema_changes: Vec<String>,
    /// Rows a batch that suit it.
    pub target_rows: u32,
    /// Bytes a batch that suit it.
    pub target_bytes: u64,
    /// Epochs that may be prepared and not yet committed.
    pub max_open_epochs: u32,
    /// How long prepared work lives, in milliseconds.
    pub committable_ttl_ms: Option<u64>,
    /// Lines of the write contract, shown to the user.
    pub contract: Vec<(String, String)>,
}

/// A sink that is configured and checked, not yet opened. Gives out its committer and writers for one generation.
#[async_trait]
pub trait Sink: Send + Sync + std::fmt::Debug {
    /// The sink's id in the pipeline.
    fn id(&self) -> &str;

    /// SHA-256 of the component, kept in records; zeros for a sink that is no plugin.
    fn digest(&self) -> [u8; 32];

    /// The plugin's name and version, kept in records.
    fn version(&self) -> String;

    /// A committer of this generation.
    async fn committer(&self, generation: Generation) -> Result<Box<dyn Committer>, ConnectorError>;

    /// Writer `subtask` of `parallelism`, of this generation.
    async fn writer(
        &self,
        generation: Generation,
        subtask: u32,
        parallelism: u32,
    ) -> Result<Box<dyn SinkWriter>, ConnectorError>;
}

/// Data of one subtask of a sink.
///
/// Order of calls: `open`, then `on_schema` before the first batch of each table and version, `write` any number of
/// times, `prepare_commit` and `save_state` with nothing between them, again, then `close`. One call at a time.
#[async_trait]
pub trait SinkWriter: Send {
    /// Starts with the state that writers of this sink saved in the restored record, as far as it falls to this one.
    async fn open(&mut self, restored: Vec<StateBlob>) -> Result<(), ConnectorError>;

    /// Rows of this table and version follow.
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<(), ConnectorError>;

    /// Takes a batch. On [`crate::Verdict::Retry`] nothing of it was taken and the same batch comes again; with
    /// rows named, it comes again without those.
    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), ConnectorError>;

    /// Rows of this table so far keep the schema they were written with: a schema change follows.
    async fn flush(&mut self, table: &TableId) -> Result<(), ConnectorError>;

    /// Makes all since the last call durable and invisible. Nothing written = no committables.
    async fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>, ConnectorError>;

    /// The writer's state at the cut just prepared.
    async fn save_state(&mut self) -> Result<StateBlob, ConnectorError>;

    /// Ends the writer. With `discard`, what is not prepared is thrown away.
    async fn close(&mut self, discard: bool);
}
