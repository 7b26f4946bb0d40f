//! A source as the engine sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cdchost_model::{ChangeBatch, ChangeSeq, Epoch, SchemaChange, SourceOffset, StateBlob, TableId, TableSchema};
use tokio::sync::{mpsc, watch};

use crate::{Clock, ConnectorError};

/// What a source gives, in order. Rows of one table never overtake each other; nothing overtakes a barrier.
#[derive(Debug)]
pub enum SourceEvent {
    /// A table as it is from here on. Comes before the first batch of each table and version, in every run.
    Table(TableEvent),
    /// Rows of one table.
    Batch(ChangeBatch),
    /// The cut asked for with [`SourceCommand::Barrier`]: a transaction's end, everything before it handed on.
    Barrier(SourceBarrier),
    /// Nothing but barriers will follow: a bounded run has reached its end.
    EndOfInput,
}

/// A table's schema, and how it came to be.
#[derive(Clone, Debug)]
pub struct TableEvent {
    /// The same at every replay.
    pub id: String,
    /// The table before; none for one that is new to the pipeline or to this run.
    pub before: Option<Arc<TableSchema>>,
    /// What happened.
    pub change: SchemaChange,
    /// The table from here on; none when dropped.
    pub after: Option<Arc<TableSchema>>,
}

/// Where a source stands at the end of an epoch.
#[derive(Clone, Debug)]
pub struct SourceBarrier {
    /// The epoch that ends.
    pub epoch: Epoch,
    /// The place in the source's history.
    pub offset: SourceOffset,
    /// All else that the source needs to go on from here.
    pub state: StateBlob,
    /// The highest change-seq handed on so far.
    pub change_seq: ChangeSeq,
}

/// What the engine tells a running source.
#[derive(Debug)]
pub enum SourceCommand {
    /// End this epoch at the next transaction's end.
    Barrier(Epoch),
    /// This epoch is committed at all sinks: nothing before its cut is needed again.
    Committed(Epoch),
}

/// How two offsets relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// They are the same.
    Equal,
    /// The first holds all of the second and more.
    Contains,
    /// The second holds all of the first and more.
    ContainedIn,
    /// Each holds something that the other lacks, or they cannot be compared.
    Incomparable,
}

/// Where to go on.
#[derive(Clone, Debug)]
pub struct SourceRestore {
    /// The cut's place.
    pub offset: SourceOffset,
    /// The source's state at the cut.
    pub state: StateBlob,
    /// The highest change-seq that any target reports; the source goes above it where the design asks for that.
    pub target_change_seq: ChangeSeq,
}

/// How a bounded run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// Never.
    Never,
    /// All tables are read, at one consistent set of transactions.
    Snapshot,
    /// All tables are read and the log is read up to where the server stood then, or at the start if later.
    CaughtUp,
}

/// What a running source needs from the engine.
#[derive(Debug)]
pub struct SourceContext {
    /// Commands of the engine; closed = stop as soon as possible.
    pub commands: mpsc::Receiver<SourceCommand>,
    /// Where progress is shown.
    pub progress: watch::Sender<SourceProgress>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// Takes a source's events; waits while the stages behind it are full.
#[async_trait]
pub trait EventSender: Send {
    /// Hands one event on. An error means that the engine is stopping: return from [`Source::run`].
    async fn send(&mut self, event: SourceEvent) -> Result<(), ConnectorError>;
}

/// A source that is connected, checked and knows its tables, ready to run once.
#[async_trait]
pub trait Source: Send {
    /// Gives events until the command channel closes, an error ends it, or the future is dropped. After
    /// [`SourceEvent::EndOfInput`] it goes on answering barriers.
    ///
    /// While it waits in [`EventSender::send`] it keeps its server connections alive and its memory bounded. Lost
    /// connections are mended inside, within the source's own limits.
    async fn run(self: Box<Self>, events: &mut dyn EventSender, context: SourceContext) -> Result<(), ConnectorError>;
}

/// A source just opened.
pub struct OpenedSource {
    /// To be run.
    pub source: Box<dyn Source>,
    /// The tables it captures, as they are at the place where it starts.
    pub tables: Vec<Arc<TableSchema>>,
    /// Digest of the set of captured tables.
    pub tables_digest: [u8; 32],
}

impl std::fmt::Debug for OpenedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedSource").field("tables", &self.tables.len()).finish_non_exhaustive()
    }
}

/// A configured source: opened anew for every generation.
#[async_trait]
pub trait SourceConnector: Send + Sync + std::fmt::Debug {
    /// Connects, checks the server and the account, and finds the tables. Changes nothing anywhere. `restore` is none
    /// only at a pipeline's very first start.
    async fn open(&self, restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError>;

    /// How two offsets that this source wrote relate.
    fn compare(&self, one: &SourceOffset, other: &SourceOffset) -> Result<Containment, ConnectorError>;

    /// An offset as people read it.
    fn describe(&self, offset: &SourceOffset) -> String;
}

/// What the source is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourcePhase {
    /// Connecting.
    #[default]
    Starting,
    /// At least one table is being read, beside the log.
    Snapshot,
    /// Only the log is read.
    Streaming,
    /// The end of a bounded run is reached.
    Ended,
}

/// How far a table's snapshot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotState {
    /// Waits for its turn.
    #[default]
    Waiting,
    /// Is being read.
    Reading,
    /// Is read, or needs no reading.
    Done,
}

/// Progress of one table.
#[derive(Clone, Debug, Default)]
pub struct TableProgress {
    /// How far its snapshot is.
    pub snapshot: SnapshotState,
    /// Rows read by the snapshot.
    pub rows_read: u64,
    /// Rows that the server estimates the table to have.
    pub rows_estimate: Option<u64>,
    /// Chunks merged.
    pub chunks_done: u64,
    /// Row changes handed on from the log.
    pub changes: u64,
}

/// Progress of the whole source, renewed at least twice a second while it runs.
#[derive(Clone, Debug, Default)]
pub struct SourceProgress {
    /// What it is doing.
    pub phase: SourcePhase,
    /// Where it stands, as people read it.
    pub position: String,
    /// The log is read to where the server was when last asked or heard from.
    pub caught_up: bool,
    /// Commit time of the last transaction read, in microseconds since the epoch.
    pub event_time_micros: Option<i64>,
    /// Times that a connection was mended.
    pub reconnects: u64,
    /// Why the last connection was lost.
    pub last_disconnect: Option<String>,
    /// What goes in one piece just now, so that no barrier can be sent before its end: a checkpoint waits for it.
    pub in_one_piece: Option<String>,
    /// Statements in the log that were looked at and ignored, by reason.
    pub ignored: BTreeMap<&'static str, u64>,
    /// Per table.
    pub tables: BTreeMap<TableId, TableProgress>,
}
