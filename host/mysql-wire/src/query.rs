//! COM_QUERY: session settings and small results, as text.

use crate::connection::Connection;
use crate::error::{ProtocolError, WireError};
use crate::packet::{PART_BYTES, Reader};

/// A result larger than this is no small one: it belongs to a prepared statement.
const RESULT_BYTES_MAX: usize = 64 << 20;
/// MySQL's own limit.
pub(crate) const COLUMNS_MAX: usize = 4096;
/// A query of a session that asks for none may still lead to several results, e.g. by CALL.
const MORE_RESULTS: u16 = 0x0008;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the result.
    pub name: String,
    /// The table's own name of it.
    pub original_name: String,
    /// Its type by MySQL's number.
    pub column_type: u8,
    /// Number of its collation; 63 for bytes. The connection's, where the session converts results.
    pub collation: u16,
    /// Its greatest length in bytes.
    pub length: u32,
    /// MySQL's column flags (1 = not null, 32 = unsigned, 128 = binary, …).
    pub flags: u16,
    /// Digits after the point.
    pub decimals: u8,
}

impl Column {
    /// Whether it holds no negative numbers.
    pub fn is_unsigned(&self) -> bool {
        self.flags & 0x20 != 0
    }

    pub(crate) fn read(packet: &[u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a column definition", packet);
        for _catalog_database_table_original_table in 0..4 {
            reader.string()?;
        }
        let name = reader.text()?.to_owned();
        let original_name = reader.text()?.to_owned();
        reader.number()?;
        Ok(Self {
            name,
            original_name,
            collation: reader.u16()?,
            length: reader.u32()?,
            column_type: reader.u8()?,
            flags: reader.u16()?,
            decimals: reader.u8()?,
        })
    }
}

/// The whole of a small result. A statement without rows has neither columns nor rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each value as the server's text or NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl QueryResult {
    /// A value as text. None when it is NULL, not there, or not UTF-8.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let value = self.rows.get(row)?.get(column)?.as_deref()?;
        std::str::from_utf8(value).ok()
    }
}

impl Connection {
    /// Runs one statement and reads its whole result.
    pub async fn query(&mut self, sql: &str) -> Result<QueryResult, WireError> {
        self.begin("running a query", &[&[0x03], sql.as_bytes()].concat()).await?;
        let Some(columns) = self.result_columns().await? else {
            return Ok(QueryResult::default());
        };
        let mut result = QueryResult { columns, rows: Vec::new() };
        let mut bytes = 0;
        let deprecate_eof = self.deprecate_eof;
        loop {
            let packet = self.packets.next().await?;
            match packet.first() {
                Some(0xFF) => {
                    let packet = packet.to_vec();
                    return Err(self.failed(&packet));
                }
                Some(0xFE) if is_end(packet, deprecate_eof) => {
                    refuse_more(packet, deprecate_eof)?;
                    self.end();
                    return Ok(result);
                }
                _ => {
                    bytes += packet.len();
                    if bytes > RESULT_BYTES_MAX {
                        return Err(WireError::TooLarge { what: "the result of a query", limit: RESULT_BYTES_MAX });
                    }
                    result.rows.push(text_row(packet, result.columns.len())?);
                }
            }
        }
    }

    /// Reads a result's head: its columns, or none where the statement gives no rows, and then the answer has ended.
    pub(crate) async fn result_columns(&mut self) -> Result<Option<Vec<Column>>, WireError> {
        let head = self.answer().await?;
        match head.first() {
            Some(0x00) => {
                refuse_more(&head, true)?;
                self.end();
                return Ok(None);
            }
            Some(0xFB) => {
                return Err(WireError::unsupported("a file of this host that the server asks for (LOCAL INFILE)"));
            }
            _ => {}
        }
        let count = Reader::new("the head of a result", &head).length()?;
        let columns = self.definitions(count).await?;
        Ok(Some(columns))
    }

    /// Reads `count` column definitions and, from older servers, what ends them.
    pub(crate) async fn definitions(&mut self, count: usize) -> Result<Vec<Column>, WireError> {
        if count > COLUMNS_MAX {
            return Err(ProtocolError::new(format!("a result with {count} columns")).into());
        }
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            columns.push(Column::read(self.packets.next().await?)?);
        }
        if count > 0 && !self.deprecate_eof && self.packets.next().await?.first() != Some(&0xFE) {
            return Err(ProtocolError::new("column definitions do not end").into());
        }
        Ok(columns)
    }
}

/// Whether a packet that begins with 0xFE ends the rows; as the length of a first value it means 16 MiB and more.
#[inline]
pub(crate) fn is_end(packet: &[u8], deprecate_eof: bool) -> bool {
    packet.len() < if deprecate_eof { PART_BYTES } else { 9 }
}

/// Refuses an answer that another one follows: nothing here asks for such.
pub(crate) fn refuse_more(packet: &[u8], ok_packet: bool) -> Result<(), WireError> {
    let mut reader = Reader::new("the end of a result", packet);
    reader.skip(1)?;
    if ok_packet {
        reader.number()?;
        reader.number()?;
    } else {
        reader.u16()?;
    }
    if reader.u16()? & MORE_RESULTS != 0 {
        return Err(WireError::unsupported("a statement with several results"));
    }
    Ok(())
}

fn text_row(packet: &[u8], columns: usize) -> Result<Vec<Option<Vec<u8>>>, ProtocolError> {
    let mut reader = Reader::new("a row", packet);
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        if reader.rest().first() == Some(&0xFB) {
            reader.skip(1)?;
            row.push(None);
        } else {
            row.push(Some(reader.string()?.to_vec()));
        }
    }
    if !reader.is_empty() {
        return Err(ProtocolError::new("a row has more values than the result has columns"));
    }
    Ok(row)
}
