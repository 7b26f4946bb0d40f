//! How far a log was read: places in it, sets of transactions, and how two of them relate.
//!
//! [`Reached`] is one of the three ways to say it: by MySQL's GTIDs, by MariaDB's, or by a place in one server's log.
#![warn(missing_docs)]

mod domains;
mod gtid;
mod position;
mod reached;

pub use domains::DomainGtids;
pub use gtid::{GtidError, GtidSet, ServerUuid, SetOrder, Tag, TransactionSource};
pub use position::BinlogPosition;
pub use reached::{Reached, TransactionName};
