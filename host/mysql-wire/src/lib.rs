//! The MySQL client protocol for the two bulk paths, prepared rows and the binlog, and binlog framing: bytes in,
//! checked events out.
//!
//! [`Connection::connect`] logs in; [`Connection::query`] sets the session up; [`Connection::prepare`] and
//! [`Connection::execute`] give raw binary rows; [`Connection::dump`] turns the connection into a [`BinlogStream`].
//! Both streams hand out slices of one read buffer: no copy, no allocation, no await for a packet that is there.

pub mod binlog;
pub mod column_type;
mod connection;
mod dump;
mod error;
mod handshake;
mod packet;
mod query;
mod statement;

pub use connection::{ConnectOptions, Connection, ServerInfo, TlsState};
pub use dump::{BinlogStream, DumpRequest, DumpStart};
pub use error::{ProtocolError, Remedy, ServerError, WireError};
pub use handshake::tls::{TlsMode, TlsOptions};
pub use query::{Column, QueryResult};
pub use statement::{NextRow, Param, RowStream, Statement};
