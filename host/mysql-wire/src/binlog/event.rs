//! Bodies of events, as views of the frame's bytes: reading one allocates nothing.

use super::frame::{Event, EventHeader, EventKind};
use super::gtid::{GtidEvent, MariadbGtid};
use super::table_map::TableMapEvent;
use crate::error::ProtocolError;
use crate::packet::Reader;
use crate::query::COLUMNS_MAX;

/// An event's body, read.
#[derive(Clone, Copy, Debug)]
pub enum EventBody<'a> {
    /// How the events that follow are written.
    FormatDescription(FormatDescription<'a>),
    /// Where the next event comes from.
    Rotate(Rotate<'a>),
    /// The file ends because the server stopped.
    Stop,
    /// A sign of life, and where the server's dump stands.
    Heartbeat(Heartbeat<'a>),
    /// The transactions before the file, in the form that the server has for sets of them.
    PreviousGtids(&'a [u8]),
    /// A transaction with a GTID begins.
    Gtid(GtidEvent<'a>),
    /// A transaction without GTID begins; uuid and number mean nothing.
    AnonymousGtid(GtidEvent<'a>),
    /// A transaction of MariaDB begins.
    MariadbGtid(MariadbGtid),
    /// A statement: BEGIN, COMMIT, DDL, or DML in statement format.
    Query(QueryEvent<'a>),
    /// The text of the statement that the row events to follow come from.
    RowsQuery(&'a [u8]),
    /// LOAD DATA in statement format.
    LoadQuery(QueryEvent<'a>),
    /// The table of the row events to follow.
    TableMap(TableMapEvent<'a>),
    /// Rows of one table.
    Rows(RowsEvent<'a>),
    /// A transaction ends in a commit; its number in the storage engines.
    Xid(u64),
    /// A transaction is prepared, or ends in a commit of one phase.
    XaPrepare(XaPrepare<'a>),
    /// The server says that data may be missing.
    Incident,
    /// Carries nothing that concerns row changes.
    Skipped,
}

impl<'a> EventBody<'a> {
    #[inline]
    pub(super) fn read(event: &Event<'a>) -> Result<Self, ProtocolError> {
        let body = event.body;
        Ok(match event.kind {
            EventKind::FormatDescription => Self::FormatDescription(FormatDescription::read(body)?),
            EventKind::Rotate => Self::Rotate(Rotate::read(body)?),
            EventKind::Stop => Self::Stop,
            EventKind::Heartbeat => {
                Self::Heartbeat(Heartbeat { file: body, position: event.header.end_position.into() })
            }
            EventKind::HeartbeatV2 => Self::Heartbeat(Heartbeat::read_v2(body)?),
            EventKind::PreviousGtids => Self::PreviousGtids(body),
            EventKind::Gtid => Self::Gtid(GtidEvent::read(body)?),
            EventKind::TaggedGtid => Self::Gtid(GtidEvent::read_tagged(body)?),
            EventKind::AnonymousGtid => Self::AnonymousGtid(GtidEvent::read(body)?),
            EventKind::MariadbGtid => Self::MariadbGtid(MariadbGtid::read(&event.header, body)?),
            EventKind::Query => Self::Query(QueryEvent::read(body, 0)?),
            // Id of the file, where its name stands in the statement, what to do with duplicates.
            EventKind::LoadQuery => Self::LoadQuery(QueryEvent::read(body, 4 + 4 + 4 + 1)?),
            // One byte of length, meaningless for long statements.
            EventKind::RowsQuery => Self::RowsQuery(body.get(1..).unwrap_or_default()),
            EventKind::TableMap => Self::TableMap(TableMapEvent::read(body)?),
            EventKind::WriteRows => Self::Rows(RowsEvent::read(RowsOp::Insert, &event.header, body)?),
            EventKind::UpdateRows => Self::Rows(RowsEvent::read(RowsOp::Update, &event.header, body)?),
            EventKind::DeleteRows => Self::Rows(RowsEvent::read(RowsOp::Delete, &event.header, body)?),
            EventKind::PartialUpdateRows => Self::Rows(RowsEvent::read(RowsOp::PartialUpdate, &event.header, body)?),
            EventKind::Xid => Self::Xid(Reader::new("a transaction's end", body).u64()?),
            EventKind::XaPrepare => Self::XaPrepare(XaPrepare::read(body)?),
            EventKind::Incident => Self::Incident,
            EventKind::Skipped => Self::Skipped,
        })
    }
}

/// How the events that follow are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatDescription<'a> {
    /// Version of the server that wrote the file.
    pub server_version: &'a [u8],
}

impl<'a> FormatDescription<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a format description", body);
        let version = reader.u16()?;
        let server_version = reader.take(50)?.split(|&byte| byte == 0).next().unwrap_or_default();
        reader.skip(4)?;
        let header_bytes = reader.u8()?;
        if version != 4 || header_bytes != 19 {
            return Err(ProtocolError::new(format!(
                "a binlog of version {version} with headers of {header_bytes} bytes"
            )));
        }
        // What stands at fixed places of those events that are read; all servers since 5.1 agree.
        let expected = [(2, 13), (4, 8), (19, 8), (23, 8), (24, 8), (25, 8), (30, 10), (31, 10), (32, 10)];
        for (event_type, bytes) in expected {
            match reader.rest().get(event_type - 1) {
                Some(&found) if found == bytes => {}
                // A server that does not know a type does not write it either; 8.4 forgot version 1 of the rows.
                None if event_type >= 30 => {}
                Some(0) if matches!(event_type, 23..=25) => {}
                found => {
                    let found = found.copied().unwrap_or_default();
                    let message = format!("events of type {event_type} have {found} fixed bytes, not {bytes}");
                    return Err(ProtocolError::new(message));
                }
            }
        }
        Ok(Self { server_version })
    }
}

/// Where the next event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// Name of the file.
    pub file: &'a [u8],
    /// Byte in it.
    pub position: u64,
}

/// Places and lengths in a file of the log. No file is so long that two of them together are no number.
pub(super) fn in_file(bytes: u64) -> Result<u64, ProtocolError> {
    if bytes < 1 << 62 { Ok(bytes) } else { Err(ProtocolError::new("a place that is in no file of the log")) }
}

impl<'a> Rotate<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a rotate event", body);
        Ok(Self { position: in_file(reader.u64()?)?, file: reader.rest() })
    }
}

/// Where the server's dump stands: everything before was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// Name of the file.
    pub file: &'a [u8],
    /// Byte in it; only the lower 32 bits from servers before 8.0.26.
    pub position: u64,
}

impl<'a> Heartbeat<'a> {
    fn read_v2(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a heartbeat", body);
        let mut heartbeat = Self { file: &[], position: 0 };
        while !reader.is_empty() {
            let field = reader.number()?;
            if field == 0 {
                break;
            }
            let value = reader.string()?;
            match field {
                1 => heartbeat.file = value,
                2 => heartbeat.position = in_file(Reader::new("a heartbeat's position", value).number()?)?,
                _ => {}
            }
        }
        Ok(heartbeat)
    }
}

/// A statement as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryEvent<'a> {
    /// The session that ran it.
    pub thread_id: u32,
    /// Its error number; 0 for none.
    pub error_code: u16,
    /// The session's default database, empty for none.
    pub database: &'a [u8],
    /// The text, in the session's `character_set_client`.
    pub text: &'a [u8],
    status: &'a [u8],
}

/// What a statement's meaning depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStatus {
    /// The session's `sql_mode` as bits.
    pub sql_mode: Option<u64>,
    /// Number of a collation of `character_set_client`.
    pub client_collation: Option<u16>,
    /// Number of `collation_connection`.
    pub connection_collation: Option<u16>,
    /// Number of `collation_server`.
    pub server_collation: Option<u16>,
}

impl<'a> QueryEvent<'a> {
    fn read(body: &'a [u8], more_fixed_bytes: usize) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a query event", body);
        let thread_id = reader.u32()?;
        reader.skip(4)?;
        let database_bytes = reader.u8()?;
        let error_code = reader.u16()?;
        let status_bytes = reader.u16()?;
        reader.skip(more_fixed_bytes)?;
        let status = reader.take(status_bytes.into())?;
        let database = reader.take(database_bytes.into())?;
        if reader.u8()? != 0 {
            return Err(ProtocolError::new("a query event's database does not end in a zero"));
        }
        Ok(Self { thread_id, error_code, database, text: reader.rest(), status })
    }

    /// Reads what the statement's meaning depends on, as far as the server wrote it.
    pub fn status(&self) -> Result<QueryStatus, ProtocolError> {
        let mut reader = Reader::new("the status of a query event", self.status);
        let mut status = QueryStatus::default();
        while !reader.is_empty() {
            match reader.u8()? {
                0 | 3 => reader.skip(4)?,
                1 => status.sql_mode = Some(reader.u64()?),
                2 => {
                    let bytes = reader.u8()?;
                    reader.skip(usize::from(bytes) + 1)?;
                }
                4 => {
                    status.client_collation = Some(reader.u16()?);
                    status.connection_collation = Some(reader.u16()?);
                    status.server_collation = Some(reader.u16()?);
                }
                5 | 6 => {
                    let bytes = reader.u8()?;
                    reader.skip(bytes.into())?;
                }
                // The rest, always written after these, has no meaning here, and some of it no stated length.
                _ => break,
            }
        }
        Ok(status)
    }
}

/// What was done to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOp {
    /// Each row is an after image.
    Insert,
    /// Each row is a before image followed by an after image.
    Update,
    /// Each row is a before image.
    Delete,
    /// As an update, with after images that hold JSON documents as changes of those before.
    PartialUpdate,
}

impl RowsOp {
    /// Whether each row has a before image and an after image.
    #[inline]
    pub fn is_update(self) -> bool {
        matches!(self, Self::Update | Self::PartialUpdate)
    }
}

/// Rows of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsEvent<'a> {
    /// What was done.
    pub op: RowsOp,
    /// Number of the table, as its table map gave it.
    pub table_id: u64,
    /// The statement's last rows: table maps are void from here on.
    pub ends_statement: bool,
    /// Columns of the table.
    pub column_count: usize,
    /// Which columns the (before) images have: a bit each, the lowest first, and nothing after the last.
    pub present: &'a [u8],
    /// Which columns the after images of updates have; as `present` for the others.
    pub present_after: &'a [u8],
    /// The images: for each a bitmap of NULLs over the columns present, then the values that are not NULL.
    pub rows: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    #[inline]
    fn read(op: RowsOp, header: &EventHeader, body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a rows event", body);
        let table_id = reader.u48()?;
        let flags = reader.u16()?;
        if header.event_type >= 30 {
            // Version 2 has a part of variable length here, which counts its own two bytes.
            let bytes = reader.u16()?;
            let more = bytes.checked_sub(2).ok_or_else(|| ProtocolError::new("a rows event has a bad length"))?;
            reader.skip(more.into())?;
        }
        let column_count = reader.length()?;
        if column_count == 0 || column_count > COLUMNS_MAX {
            return Err(ProtocolError::new(format!("a rows event of {column_count} columns")));
        }
        let present = reader.take(column_count.div_ceil(8))?;
        let present_after = if op.is_update() { reader.take(column_count.div_ceil(8))? } else { present };
        Ok(Self {
            op,
            table_id,
            ends_statement: flags & 1 != 0,
            column_count,
            present,
            present_after,
            rows: reader.rest(),
        })
    }

    /// Whether all images have exactly the first `count` columns.
    #[inline]
    pub fn holds_first(&self, count: usize) -> bool {
        let holds = |present: &[u8]| {
            (0..self.column_count).all(|column| {
                present.get(column / 8).is_some_and(|byte| (byte >> (column % 8) & 1 == 1) == (column < count))
            })
        };
        holds(self.present) && (!self.op.is_update() || holds(self.present_after))
    }
}

/// A transaction is prepared, or ends in a commit of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XaPrepare<'a> {
    /// It is committed with this event.
    pub one_phase: bool,
    /// The number of its name's format.
    pub format: u32,
    /// The name's two parts: of the whole transaction, and of the branch.
    pub parts: [&'a [u8]; 2],
}

impl<'a> XaPrepare<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("an XA prepare event", body);
        let (one_phase, format) = (reader.u8()? != 0, reader.u32()?);
        let lengths = [reader.u32()?, reader.u32()?];
        let mut part = |length: u32| reader.take(length as usize);
        Ok(Self { one_phase, format, parts: [part(lengths[0])?, part(lengths[1])?] })
    }

    /// The name as statements in the log have it: `X'6162',X'',1`.
    pub fn name(&self) -> String {
        let digits = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let [transaction, branch] = self.parts;
        format!("X'{}',X'{}',{}", digits(transaction), digits(branch), self.format)
    }
}
