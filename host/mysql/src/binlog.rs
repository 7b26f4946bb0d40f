//! The log: transactions out of events, rows out of their bytes, straight into columns.

pub(crate) mod json;
mod plan;
mod rows;
