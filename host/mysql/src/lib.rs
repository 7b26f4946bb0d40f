//! A source over MySQL: tables read in windows beside the log, the log decoded straight into Arrow columns.
//!
//! [`MysqlSource`] is all that others need.
#![warn(missing_docs)]
#![allow(dead_code, reason = "being built")]

mod binlog;
mod column;
mod ddl;
mod gtid;
mod source;

pub use source::MysqlSource;
