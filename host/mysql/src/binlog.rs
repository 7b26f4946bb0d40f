//! The log: transactions out of events, rows out of their bytes, straight into columns.

mod gather;
mod tables;
mod transaction;

pub(crate) use gather::value_error;
pub(crate) use tables::LogTables;
pub(crate) use transaction::{LogStart, Seen, Transactions};
