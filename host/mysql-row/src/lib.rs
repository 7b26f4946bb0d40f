//! Rows of MySQL as bytes, from a query's result and from the log, read straight into Arrow columns: the same values
//! from both.
//!
//! [`TableLayout`] says what the columns are; a [`ResultPlan`] or an [`ImagePlan`] is compiled once and reads row after
//! row into [`Columns`].
#![warn(missing_docs)]

mod charset;
mod column;
mod image;
mod json;
mod key;
mod result;

pub use charset::{Charset, Charsets, CodeMap, CodeShape};
pub use column::{
    Column, ColumnError, ColumnKind, ColumnReading, Columns, Labels, PRIMARY, ShownBytes, TableLayout, TextRules,
    ValueError, ValueRules, ZeroDate,
};
pub use image::partial::{pass_partial_image, read_partial_image};
pub use image::plan::{Mismatch, Plan as ImagePlan, may_hide};
pub use image::reach::PassPlan;
pub use image::{pass_image, read_image};
pub use key::KeyValue;
pub use result::ResultPlan;
