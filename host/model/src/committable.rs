//! What sinks hand to the checkpoint, and what they know of their target.

use bytes::Bytes;

use crate::{Cut, Epoch, Generation};

/// What a writer hands over at prepare-commit: enough to make its work visible, also after a crash, by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committable {
    /// The epoch it was prepared for.
    pub epoch: Epoch,
    /// The incarnation that prepared it.
    pub generation: Generation,
    /// What it concerns, in the sink's own words (a table, a transaction name); for people.
    pub key: String,
    /// Version of the payload's format.
    pub format: u32,
    /// Opaque to the host.
    pub payload: Bytes,
    /// Rows it makes visible.
    pub rows: u64,
    /// Bytes it makes visible.
    pub bytes: u64,
}

/// State of one plugin instance or of the source; opaque to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateBlob {
    /// Version of the payload's format.
    pub format: u32,
    /// Opaque to the host.
    pub payload: Bytes,
}

/// How far a target is: the newest epoch that is wholly visible there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkProgress {
    /// The pipeline that wrote it.
    pub pipeline: String,
    /// The cut that the target shows.
    pub cut: Cut,
}
