//! The frame of an event: length, type and checksum, checked before anything else is believed.

use super::event::EventBody;
use super::unpack::{Packing, Unpacker};
use crate::error::{ProtocolError, WireError};
use crate::packet::Reader;

/// Length of every event's header since MySQL 5.0.
pub(super) const HEADER_BYTES: usize = 19;
const CHECKSUM_BYTES: usize = 4;
/// An event whose readers may skip it if they do not know it.
const FLAG_IGNORABLE: u16 = 0x80;
/// An event made up by the sender, in no file.
const FLAG_ARTIFICIAL: u16 = 0x20;

/// What an event is, among those that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// How the events that follow are written.
    FormatDescription,
    /// Where the next event comes from.
    Rotate,
    /// The file ends because the server stopped.
    Stop,
    /// A sign of life.
    Heartbeat,
    /// A sign of life with a 64-bit position.
    HeartbeatV2,
    /// The transactions before the file.
    PreviousGtids,
    /// A transaction with a GTID begins.
    Gtid,
    /// A transaction with a GTID that has a tag begins.
    TaggedGtid,
    /// A transaction without GTID begins.
    AnonymousGtid,
    /// A transaction of MariaDB begins.
    MariadbGtid,
    /// A statement: BEGIN, COMMIT, DDL, or DML in statement format.
    Query,
    /// The text of the statement that the row events to follow come from.
    RowsQuery,
    /// LOAD DATA in statement format.
    LoadQuery,
    /// The table of the row events to follow.
    TableMap,
    /// Rows inserted, version 1 or 2.
    WriteRows,
    /// Rows updated, version 1 or 2.
    UpdateRows,
    /// Rows deleted, version 1 or 2.
    DeleteRows,
    /// Rows updated, with JSON documents as changes of what they were.
    PartialUpdateRows,
    /// A transaction ends in a commit.
    Xid,
    /// A transaction is prepared.
    XaPrepare,
    /// The server says that data may be missing.
    Incident,
    /// Carries nothing that concerns row changes.
    Skipped,
}

/// What is done with events of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read.
    Read(EventKind),
    /// Read once it is unpacked.
    Unpack(Packing),
    /// An error that says what it is: its meaning is known, and that it cannot be left out.
    Refuse(&'static str),
    /// An error, except where the event itself says that it may be skipped.
    Unknown,
}

/// The decision on every event type there can be.
pub const fn decision(event_type: u8) -> Decision {
    use Decision::{Read, Refuse, Unknown, Unpack};
    match event_type {
        0 => Refuse("an event of type 0"),
        1 => Refuse("a binlog written before MySQL 5.0"),
        2 => Read(EventKind::Query),
        3 => Read(EventKind::Stop),
        4 => Read(EventKind::Rotate),
        // Values that a statement-format statement uses: the statement itself follows and is judged.
        5 | 13 | 14 => Read(EventKind::Skipped),
        6..=8 | 10 | 12 => Refuse("LOAD DATA written before MySQL 5.0"),
        // Pieces of a file for LOAD DATA in statement format: the statement itself (18) follows and is judged.
        9 | 11 | 17 => Read(EventKind::Skipped),
        15 => Read(EventKind::FormatDescription),
        16 => Read(EventKind::Xid),
        18 => Read(EventKind::LoadQuery),
        19 => Read(EventKind::TableMap),
        20..=22 => Refuse("row events written before MySQL 5.1"),
        23 | 30 => Read(EventKind::WriteRows),
        24 | 31 => Read(EventKind::UpdateRows),
        25 | 32 => Read(EventKind::DeleteRows),
        26 => Read(EventKind::Incident),
        27 => Read(EventKind::Heartbeat),
        28 => Read(EventKind::Skipped),
        29 => Read(EventKind::RowsQuery),
        33 => Read(EventKind::Gtid),
        34 => Read(EventKind::AnonymousGtid),
        35 => Read(EventKind::PreviousGtids),
        // Group replication's own notes: who certified a transaction, who joined.
        36 | 37 => Read(EventKind::Skipped),
        38 => Read(EventKind::XaPrepare),
        39 => Read(EventKind::PartialUpdateRows),
        40 => Unpack(Packing::Transaction),
        41 => Read(EventKind::HeartbeatV2),
        42 => Read(EventKind::TaggedGtid),
        43..=159 => Unknown,
        // MariaDB: the statement that rows come from; which files its storage engines still need.
        160 | 161 => Read(EventKind::Skipped),
        162 => Read(EventKind::MariadbGtid),
        // MariaDB: the last transaction of each domain before the file, or before what is sent.
        163 => Read(EventKind::Skipped),
        164 => Refuse("an encrypted binlog of MariaDB that is not sent in clear"),
        165 => Unpack(Packing::Event(2)),
        166..=168 => Unpack(Packing::Event(event_type - 166 + 23)),
        169..=171 => Unpack(Packing::Event(event_type - 169 + 30)),
        172..=255 => Unknown,
    }
}

/// What stands before every event's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// When it was written, in seconds since 1970; 0 for made-up ones.
    pub timestamp: u32,
    /// Its type by MySQL's number.
    pub event_type: u8,
    /// The server where it was first written.
    pub server_id: u32,
    /// Its whole length, checksum included.
    pub event_bytes: u32,
    /// Where it ends in its file, the lower 32 bits; 0 for made-up ones.
    pub end_position: u32,
    /// MySQL's event flags.
    pub flags: u16,
}

impl EventHeader {
    /// Reads it off an event's front.
    #[inline]
    pub(super) fn read(event: &[u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("an event's header", event);
        Ok(Self {
            timestamp: reader.u32()?,
            event_type: reader.u8()?,
            server_id: reader.u32()?,
            event_bytes: reader.u32()?,
            end_position: reader.u32()?,
            flags: reader.u16()?,
        })
    }

    /// Made up by the sender: it stands in no file.
    pub fn is_artificial(&self) -> bool {
        self.flags & FLAG_ARTIFICIAL != 0
    }
}

/// A checked event; a view of the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What stands before the body.
    pub header: EventHeader,
    /// What it is.
    pub kind: EventKind,
    /// The bytes between header and checksum.
    pub body: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads the body.
    #[inline]
    pub fn read(&self) -> Result<EventBody<'a>, ProtocolError> {
        EventBody::read(self)
    }
}

/// Whether events end in a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Checksum {
    /// No format description came yet.
    #[default]
    NotSaid,
    None,
    Crc32,
}

/// Checks the frames of one stream of events, in order.
#[derive(Debug, Default)]
pub struct Frames {
    checksum: Checksum,
    unpacker: Unpacker,
}

impl Frames {
    /// Whether more than one event may be packed in a frame.
    #[inline]
    pub fn holds_several(frame: &[u8]) -> bool {
        frame.get(4).is_some_and(|&event_type| decision(event_type) == Decision::Unpack(Packing::Transaction))
    }

    /// Checks a frame and gives its event, or the first that is packed in it.
    #[inline]
    pub fn check<'a>(&'a mut self, frame: &'a [u8]) -> Result<Event<'a>, WireError> {
        let header = EventHeader::read(frame)?;
        if u32::try_from(frame.len()) != Ok(header.event_bytes) {
            return Err(wrong_length(&header, frame).into());
        }
        let decided = decision(header.event_type);
        let checksum_bytes = match (decided, self.checksum) {
            (Decision::Read(EventKind::FormatDescription), _) => self.read_format(&header, frame)?,
            // The one that the dump begins with, before it is said whether there are checksums.
            (Decision::Read(EventKind::Rotate), Checksum::NotSaid) => {
                if checksum_fits(frame) {
                    CHECKSUM_BYTES
                } else {
                    0
                }
            }
            (_, Checksum::None) => 0,
            (_, Checksum::Crc32) if checksum_fits(frame) => CHECKSUM_BYTES,
            (_, Checksum::Crc32) => return Err(wrong_checksum(&header)),
            (_, Checksum::NotSaid) => {
                return Err(ProtocolError::new("an event came before the binlog's format description").into());
            }
        };
        let body = frame.get(HEADER_BYTES..frame.len() - checksum_bytes);
        let body = body.ok_or_else(|| ProtocolError::short("an event"))?;
        match decided {
            Decision::Read(kind) => Ok(Event { header, kind, body }),
            Decision::Unpack(packing) => {
                self.unpacker.begin(packing, header, body)?;
                self.unpacked().ok_or_else(|| ProtocolError::short("a packed event").into())
            }
            other => Ok(Event { header, kind: not_read(other, &header)?, body }),
        }
    }

    /// Unpacks the next event that is packed in the frame checked last, if there is one.
    pub fn unpack_next(&mut self, frame: &[u8]) -> Result<bool, WireError> {
        self.unpacker.next(frame.get(HEADER_BYTES..).unwrap_or_default())
    }

    /// The event unpacked last.
    pub fn unpacked(&self) -> Option<Event<'_>> {
        self.unpacker.event()
    }

    /// Reads the checksum's kind out of a format description and says how many bytes of it follow the body.
    fn read_format(&mut self, header: &EventHeader, frame: &[u8]) -> Result<usize, WireError> {
        let tail = frame.split_last_chunk::<{ CHECKSUM_BYTES + 1 }>();
        let (_, &[algorithm, ..]) = tail.ok_or_else(|| ProtocolError::short("a format description"))?;
        // Itself it has one in any case, right also where the others have none.
        if !checksum_fits(frame) {
            return Err(wrong_checksum(header));
        }
        self.checksum = match algorithm {
            0 => Checksum::None,
            1 => Checksum::Crc32,
            other => return Err(WireError::unsupported(format!("binlog checksums of the unknown kind {other}"))),
        };
        Ok(CHECKSUM_BYTES + 1)
    }
}

/// Whether the last four bytes are the CRC-32 of those before.
#[inline]
fn checksum_fits(frame: &[u8]) -> bool {
    match frame.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((bytes, &sum)) => crc32fast::hash(bytes) == u32::from_le_bytes(sum),
        None => false,
    }
}

/// What is made of an event that is not read: an error, or nothing if it may be skipped.
#[cold]
pub(super) fn not_read(decision: Decision, header: &EventHeader) -> Result<EventKind, WireError> {
    match decision {
        Decision::Read(kind) => Ok(kind),
        Decision::Unpack(_) => Err(ProtocolError::new("an event that is packed in itself").into()),
        Decision::Refuse(what) => Err(WireError::unsupported(format!(
            "{what} (event type {} that ends at {})",
            header.event_type, header.end_position
        ))),
        Decision::Unknown if header.flags & FLAG_IGNORABLE != 0 => Ok(EventKind::Skipped),
        Decision::Unknown => Err(WireError::unsupported(format!(
            "the unknown event type {} that ends at {}",
            header.event_type, header.end_position
        ))),
    }
}

#[cold]
fn wrong_length(header: &EventHeader, frame: &[u8]) -> ProtocolError {
    ProtocolError::new(format!(
        "an event of type {} says that it has {} bytes, but came with {}",
        header.event_type,
        header.event_bytes,
        frame.len()
    ))
}

#[cold]
fn wrong_checksum(header: &EventHeader) -> WireError {
    WireError::Damaged(ProtocolError::new(format!(
        "the checksum of the event of type {} that ends at {} is wrong",
        header.event_type, header.end_position
    )))
}
