//! A source over MySQL: tables read in windows beside the log, the log decoded straight into Arrow columns.
//!
//! [`MysqlSource`] is all that others need.
#![warn(missing_docs)]

mod binlog;
mod remedy;
mod snapshot;
mod source;

#[doc(hidden)]
#[cfg(feature = "replay")]
pub use binlog::LogReplay;
#[doc(hidden)]
pub use snapshot::Fault;
pub use source::MysqlSource;
