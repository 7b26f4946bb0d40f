//! The log: transactions out of events, rows out of their bytes, straight into columns.

mod gather;
mod log_file;
#[cfg(feature = "replay")]
mod replay;
mod tables;
mod transaction;

pub(crate) use gather::{BATCH_BYTES, BATCH_ROWS, value_error};
pub(crate) use log_file::{LogFile, log_reset};
#[cfg(feature = "replay")]
pub use replay::LogReplay;
pub(crate) use tables::LogTables;
pub(crate) use transaction::{LogStart, Seen, Transactions};
