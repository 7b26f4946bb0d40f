//! The tasks of a run, and what they say to each other.

use std::sync::Arc;

use cdchost_checkpoint::{CommitPermit, TableVersion};
use cdchost_connector::SchemaChangeRequest;
use cdchost_model::{ChangeBatch, Committable, Cut, Epoch, StateBlob, TableSchema};
use tokio::sync::oneshot;

pub(crate) mod committer;
pub(crate) mod dispatch;
pub(crate) mod lanes;
pub(crate) mod partition;
pub(crate) mod source;
pub(crate) mod writer;

/// To a writer, in order.
#[derive(Clone, Debug)]
pub(crate) enum WriterMessage {
    Schema(Arc<TableSchema>),
    Batch(ChangeBatch),
    Barrier(Arc<Cut>),
}

/// To a committer, in order.
#[derive(Debug)]
pub(crate) enum CommitterMessage {
    Apply(Box<SchemaChangeRequest>, oneshot::Sender<()>),
    Commit(CommitPermit),
}

/// To the checkpointer.
#[derive(Debug)]
pub(crate) enum Report {
    /// A barrier has passed the dispatcher.
    Barrier(BarrierReport),
    /// Nothing but barriers will follow.
    EndOfInput,
    /// A writer has prepared.
    Prepared { sink: usize, subtask: usize, epoch: Epoch, committables: Vec<Committable>, state: StateBlob },
    /// A sink has committed.
    Committed { sink: usize, epoch: Epoch },
}

/// What a barrier brings along.
#[derive(Debug)]
pub(crate) struct BarrierReport {
    pub(crate) cut: Arc<Cut>,
    pub(crate) source: StateBlob,
    pub(crate) tables: Vec<TableVersion>,
}
