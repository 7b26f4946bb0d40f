//! The nouns of cdchost: schemas, change batches and the surgery on them, ids, offsets, epochs, committables.
//!
//! Nothing here does I/O, knows a source or a sink, or reads a clock. Other crates pass these types on by value.
#![warn(missing_docs)]

mod batch;
mod change;
mod committable;
mod edit;
mod epoch;
mod key;
mod offset;
mod projection;
mod schema;
mod table;

pub use batch::{BatchError, ChangeBatch, Op, RowMeta, TransactionRun};
pub use change::{ColumnPlace, SchemaChange};
pub use committable::{Committable, SinkProgress, StateBlob};
pub use epoch::{Cut, Epoch, Generation, Lineage};
pub use key::{KEY_GROUPS, KeyEncoder, key_group};
pub use offset::{ChangeSeq, SourceOffset, SourcePosition, TransactionId};
pub use projection::{Edit, OutputColumn, Projection, Replacement};
pub use schema::{Field, LogicalType, SchemaError, SchemaVersion, TableSchema};
pub use table::TableId;
