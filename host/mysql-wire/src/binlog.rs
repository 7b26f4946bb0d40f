//! Binlog events: frames checked, then read as views of their bytes.

mod event;
mod frame;
mod gtid;
mod table_map;
mod unpack;

pub use event::{
    EventBody, FormatDescription, Heartbeat, QueryEvent, QueryStatus, Rotate, RowsEvent, RowsOp, XaPrepare,
};
pub use frame::{Decision, Event, EventHeader, EventKind, Frames, decision};
pub use gtid::{GtidEvent, MariadbGtid};
pub use table_map::{TableMap, TableMapColumn, TableMapEvent};
pub use unpack::{Packing, Unpacker};

#[cfg(test)]
pub(crate) mod tests;
