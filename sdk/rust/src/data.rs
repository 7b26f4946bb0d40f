//! Rows as they come: schemas, batches, and typed views of their columns.

mod batch;
mod buffer;
mod builder;
mod column;
mod schema;
mod strings;
pub mod text;

#[cfg(feature = "arrow")]
mod arrow;

pub use batch::{Batch, Op, OptionalTexts, ReadPlan, RowMeta};
pub use buffer::Buffer;
#[cfg(target_arch = "wasm32")]
pub(crate) use builder::bitmap;
pub use builder::{StringsBuilder, ValuesBuilder};
pub use column::{Column, RawColumn, Values};
pub use schema::{Field, LogicalType, Schema, TableId};
pub use strings::{Bits, ByteStrings, Texts};
