//! Checkpoints by number, the incarnations that make them, and the cut that each ends with.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ChangeSeq, SourceOffset};

/// Number of the checkpoint that a change belongs to. Never used twice within a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// Number of the running incarnation; fences older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Generation(pub u64);

/// Names the chain of records that a record grew from; a restore from an older record begins a new one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lineage(pub String);

/// The cut of whole source transactions that an epoch ends with. A sink keeps it in the target, with the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The epoch that ends here.
    pub epoch: Epoch,
    /// The incarnation that made it.
    pub generation: Generation,
    /// The chain of records it belongs to.
    pub lineage: Lineage,
    /// Where the source stands at the cut.
    pub offset: SourceOffset,
    /// The highest change-seq handed on up to the cut.
    pub change_seq: ChangeSeq,
    /// Digest of transforms, routes and their options.
    pub path_digest: [u8; 32],
    /// Digest of the set of captured tables.
    pub tables_digest: [u8; 32],
    /// Nothing follows this cut: a bounded run has ended.
    pub end_of_input: bool,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
