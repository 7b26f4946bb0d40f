//! Rows as they come: schemas, batches, and typed views of their columns.

mod batch;
mod buffer;
mod column;
mod schema;
mod strings;
pub mod text;

#[cfg(feature = "arrow")]
mod arrow;

pub use batch::{Batch, Op, OptionalTexts, ReadPlan, RowMeta};
pub use buffer::Buffer;
pub use column::{Column, RawColumn, Values};
pub use schema::{Field, LogicalType, Schema, TableId};
pub use strings::{Bits, ByteStrings, Texts};
