//! What a record holds, and who may take a sink's committables out of it.

use std::sync::Arc;

use cdchost_model::{Committable, Cut, Epoch, Generation, SchemaVersion, StateBlob, TableId};
use serde::{Deserialize, Serialize};

use crate::Slot;

pub(crate) mod format;

/// The record that another one grew from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its place.
    pub slot: Slot,
    /// Its epoch.
    pub epoch: Epoch,
    /// SHA-256 of it, so that nothing else in that place is taken for it.
    pub digest: [u8; 32],
}

/// A table's version at the cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableVersion {
    /// The table.
    pub table: TableId,
    /// Its schema's number.
    pub version: SchemaVersion,
}

/// One sink's part of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkRecord {
    /// The sink's id.
    pub id: String,
    /// The plugin's name and version.
    pub version: String,
    /// SHA-256 of the component.
    pub digest: [u8; 32],
    /// What each writer saved, by subtask.
    pub writers: Vec<StateBlob>,
    pub(crate) committables: Arc<[Committable]>,
}

impl SinkRecord {
    /// Puts one sink's part together. From here on the committables come out again only as a [`CommitPermit`].
    pub fn new(
        id: String,
        version: String,
        digest: [u8; 32],
        writers: Vec<StateBlob>,
        committables: Vec<Committable>,
    ) -> Self {
        Self { id, version, digest, writers, committables: committables.into() }
    }

    /// Whether the sink prepared nothing.
    pub fn is_empty(&self) -> bool {
        self.committables.is_empty()
    }
}

/// A record: all that is needed to go on from the end of one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The pipeline it belongs to.
    pub pipeline: String,
    /// Its place in the chain.
    pub slot: Slot,
    /// The record it grew from; none for a pipeline's first.
    pub parent: Option<Parent>,
    /// Where the epoch ended.
    pub cut: Cut,
    /// The source's state at the cut.
    pub source: StateBlob,
    /// Tables seen so far.
    pub tables: Vec<TableVersion>,
    /// The sinks.
    pub sinks: Vec<SinkRecord>,
    /// When it was made, in microseconds since the epoch; for people.
    pub created_micros: i64,
    /// The configuration as JSON, without secrets; for people.
    pub config: String,
    /// SHA-256 of the object it was read from.
    pub digest: [u8; 32],
}

impl Record {
    /// The epoch that it ends.
    pub fn epoch(&self) -> Epoch {
        self.cut.epoch
    }

    /// As the parent of the next one.
    pub fn link(&self) -> Parent {
        Parent { slot: self.slot, epoch: self.cut.epoch, digest: self.digest }
    }

    /// What the sinks prepared, to be committed: this record was read from the store.
    pub fn permits(&self) -> Vec<CommitPermit> {
        permits(&self.cut, &self.sinks)
    }

    pub(crate) fn generation(&self) -> Generation {
        self.cut.generation
    }
}

/// Proof that an epoch is durable, with what one sink prepared in it. The only thing that a commit takes.
#[derive(Clone, Debug)]
pub struct CommitPermit {
    sink: String,
    cut: Cut,
    items: Arc<[Committable]>,
}

impl CommitPermit {
    /// The sink.
    pub fn sink(&self) -> &str {
        &self.sink
    }

    /// The cut that becomes visible.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// What was prepared; may be empty.
    pub fn items(&self) -> &[Committable] {
        &self.items
    }
}

pub(crate) fn permits(cut: &Cut, sinks: &[SinkRecord]) -> Vec<CommitPermit> {
    let permit = |sink: &SinkRecord| CommitPermit {
        sink: sink.id.clone(),
        cut: cut.clone(),
        items: Arc::clone(&sink.committables),
    };
    sinks.iter().map(permit).collect()
}

#[cfg(test)]
pub(crate) mod tests;
