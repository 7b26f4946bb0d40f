//! Rows of MySQL as bytes, from a query's result and from the log, read straight into Arrow columns: the same values
//! from both.
//!
//! [`TableLayout`] says what the columns are; a [`ResultPlan`] or an [`ImagePlan`] is compiled once and reads row after
//! row into [`Columns`].
#![warn(missing_docs)]

mod column;
mod image;
mod json;
mod key;
mod result;

pub use column::{Column, ColumnError, ColumnKind, Columns, Labels, PRIMARY, TableLayout, ValueError};
pub use image::plan::{Mismatch, PassPlan, Plan as ImagePlan};
pub use image::{pass_image, read_image};
pub use key::KeyValue;
pub use result::ResultPlan;
