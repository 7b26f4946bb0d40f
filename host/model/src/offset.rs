//! Places in a source's history.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Where a source stands. Opaque to everyone but the source that wrote it, which alone can order two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOffset(pub Bytes);

/// Orders versions of a row at sinks. Never negative; grows along the log; the same at every replay of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChangeSeq(pub i64);

/// The name of a source transaction: a text that ends in a number (`uuid:17`, `0-1-42`, `uuid:binlog.000007:4711`).
///
/// Text and number are kept apart so that a stream of transactions shares one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransactionId {
    /// All of the name before its number, separator included.
    pub prefix: Arc<str>,
    /// The number that ends the name.
    pub number: u64,
}

/// A byte position in a source's log (`binlog.000007:4711`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePosition {
    /// Name of the log file.
    pub file: Arc<str>,
    /// Byte in that file.
    pub offset: u64,
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, self.number)
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}
