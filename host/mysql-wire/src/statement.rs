//! Prepared statements, and their rows as raw bytes of the binary protocol.

use crate::column_type::{BLOB, DOUBLE, LONGLONG, NEWDECIMAL, NULL, VAR_STRING};
use crate::connection::Connection;
use crate::error::{ProtocolError, WireError};
use crate::packet::{Reader, Taken, put_string};
use crate::query::{Column, is_end, refuse_more};

/// A statement that the server has prepared on one connection.
#[derive(Clone, Debug)]
pub struct Statement {
    id: u32,
    parameters: u16,
    /// The columns of its rows, as far as the server knows them before it runs.
    pub columns: Vec<Column>,
}

/// A value bound to a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A float of double precision.
    Double(f64),
    /// Text in the session's `character_set_client`.
    Text(&'a str),
    /// Bytes, compared as such.
    Bytes(&'a [u8]),
    /// A number as digits, compared exactly.
    Decimal(&'a str),
    /// A value as a binary row carries it: what a row gave can be bound again without being understood.
    Encoded {
        /// Its type by MySQL's number.
        column_type: u8,
        /// Whether a number is unsigned.
        unsigned: bool,
        /// The bytes, with their length where the type has one.
        bytes: &'a [u8],
    },
}

impl Param<'_> {
    /// Type and sign, as two bytes.
    fn type_bytes(&self) -> [u8; 2] {
        let (column_type, unsigned) = match self {
            Self::Null => (NULL, false),
            Self::Int(_) => (LONGLONG, false),
            Self::Uint(_) => (LONGLONG, true),
            Self::Double(_) => (DOUBLE, false),
            Self::Text(_) => (VAR_STRING, false),
            Self::Bytes(_) => (BLOB, false),
            Self::Decimal(_) => (NEWDECIMAL, false),
            Self::Encoded { column_type, unsigned, .. } => (*column_type, *unsigned),
        };
        [column_type, u8::from(unsigned) << 7]
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Uint(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Text(text) | Self::Decimal(text) => put_string(out, text.as_bytes()),
            Self::Bytes(bytes) => put_string(out, bytes),
            Self::Encoded { bytes, .. } => out.extend_from_slice(bytes),
        }
    }
}

/// What [`RowStream::next_buffered`] found.
#[derive(Debug)]
pub enum NextRow<'a> {
    /// A row, see [`RowStream`].
    Row(&'a [u8]),
    /// No whole row has been read from the connection yet: [`RowStream::fill`] waits for more.
    Nothing,
    /// All rows were given; the connection is free again.
    End,
}

/// The rows of a statement that runs.
///
/// A row is a bitmap of NULLs of `(columns + 9) / 8` bytes, the first column at bit 2, and then the values that are
/// not NULL, each in the binary protocol's form. Its bytes are valid until the next call. Dropping the stream before
/// its end leaves the connection of no more use; dropping the connection cancels the statement.
#[derive(Debug)]
pub struct RowStream<'c> {
    connection: &'c mut Connection,
    columns: Vec<Column>,
    ended: bool,
}

impl Connection {
    /// Has the server prepare a statement.
    pub async fn prepare(&mut self, sql: &str) -> Result<Statement, WireError> {
        self.begin("preparing a statement", &[&[0x16], sql.as_bytes()].concat()).await?;
        let head = self.answer().await?;
        let mut reader = Reader::new("a prepared statement", &head);
        reader.skip(1)?;
        let id = reader.u32()?;
        let column_count = reader.u16()?;
        let parameters = reader.u16()?;
        self.definitions(parameters.into()).await?;
        let columns = self.definitions(column_count.into()).await?;
        self.end();
        Ok(Statement { id, parameters, columns })
    }

    /// Runs a statement of this connection. Its rows must be read to their end before the next command.
    pub async fn execute(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<RowStream<'_>, WireError> {
        let payload = execute_payload(statement, params)?;
        self.begin("running a prepared statement", &payload).await?;
        let columns = self.result_columns().await?;
        self.packets.doing = "reading rows";
        Ok(RowStream { connection: self, ended: columns.is_none(), columns: columns.unwrap_or_default() })
    }

    /// Lets the server forget a statement.
    pub async fn close(&mut self, statement: Statement) -> Result<(), WireError> {
        self.begin("closing a statement", &[&[0x19], &statement.id.to_le_bytes()[..]].concat()).await?;
        self.end();
        Ok(())
    }
}

impl RowStream<'_> {
    /// The columns of the rows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The next row, if it has been read from the connection already. Never waits.
    #[inline]
    pub fn next_buffered(&mut self) -> Result<NextRow<'_>, WireError> {
        if self.ended {
            return Ok(NextRow::End);
        }
        match self.connection.packets.take()? {
            Some(taken) => Ok(self.row(&taken)?.map_or(NextRow::End, NextRow::Row)),
            None => Ok(NextRow::Nothing),
        }
    }

    /// Waits until more has been read from the connection. Dropping the future loses nothing.
    pub async fn fill(&mut self) -> Result<(), WireError> {
        if self.ended { Ok(()) } else { self.connection.packets.fill().await }
    }

    /// The next row, waiting for it; none after the last.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, WireError> {
        if self.ended {
            return Ok(None);
        }
        let taken = self.connection.packets.next_taken().await?;
        self.row(&taken)
    }

    /// The row that a packet is; none where it ends them.
    #[inline]
    fn row(&mut self, taken: &Taken) -> Result<Option<&[u8]>, WireError> {
        if self.connection.packets.bytes(taken).first() != Some(&0) {
            let packet = self.connection.packets.bytes(taken).to_vec();
            self.finish(&packet)?;
            return Ok(None);
        }
        Ok(self.connection.packets.bytes(taken).get(1..))
    }

    /// Takes the packet that is no row.
    #[cold]
    fn finish(&mut self, packet: &[u8]) -> Result<(), WireError> {
        self.ended = true;
        let deprecate_eof = self.connection.deprecate_eof;
        match packet.first() {
            Some(0xFF) => Err(self.connection.failed(packet)),
            Some(0xFE) if is_end(packet, deprecate_eof) => {
                refuse_more(packet, deprecate_eof)?;
                self.connection.end();
                Ok(())
            }
            _ => Err(ProtocolError::new("a packet among the rows that is neither a row nor their end").into()),
        }
    }
}

fn execute_payload(statement: &Statement, params: &[Param<'_>]) -> Result<Vec<u8>, WireError> {
    if params.len() != usize::from(statement.parameters) {
        let message = format!("a statement with {} parameters was given {}", statement.parameters, params.len());
        return Err(WireError::Misuse(message));
    }
    let mut out = vec![0x17];
    out.extend_from_slice(&statement.id.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&1_u32.to_le_bytes());
    if params.is_empty() {
        return Ok(out);
    }
    let mut nulls = vec![0_u8; params.len().div_ceil(8)];
    for (bit, param) in params.iter().enumerate() {
        if let (Param::Null, Some(byte)) = (param, nulls.get_mut(bit / 8)) {
            *byte |= 1 << (bit % 8);
        }
    }
    out.extend_from_slice(&nulls);
    out.push(1);
    params.iter().for_each(|param| out.extend_from_slice(&param.type_bytes()));
    params.iter().for_each(|param| param.put(&mut out));
    Ok(out)
}
