//! Events that a server packed: MySQL's compressed transactions, event by event, and MariaDB's compressed events.

use std::fmt;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::event::EventBody;
use super::frame::{Decision, Event, EventHeader, EventKind, HEADER_BYTES, decision, not_read};
use crate::error::{ProtocolError, WireError};
use crate::packet::Reader;

/// An event once it is unpacked, at most: no server takes a longer one.
const EVENT_BYTES_MAX: usize = 1 << 30;
/// Memory of a large event that is kept for the next one.
const KEPT_BYTES: usize = 1 << 20;
/// Memory for an event grows by so much at once, as its bytes come.
const STEP_BYTES: usize = 64 << 10;
/// zstd may refer back by so much at most: 128 MiB, what its strongest level uses.
const WINDOW_LOG_MAX: u32 = 27;

/// How an event is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The events of a MySQL transaction, one behind the other, compressed as one.
    Transaction,
    /// An event of MariaDB whose last part is compressed; unpacked it is one of this type.
    Event(u8),
}

/// Takes events out of those that hold them, one at a time, into memory of its own.
#[derive(Default)]
pub struct Unpacker {
    /// The event unpacked last; its bytes from `body_at` on are its body.
    current: Option<(EventHeader, EventKind)>,
    bytes: Vec<u8>,
    body_at: usize,
    rest: Option<Rest>,
    zstd: Option<Decoder<'static>>,
}

/// What is still packed of a transaction.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// The header of the event that holds it.
    outer: EventHeader,
    is_compressed: bool,
    /// Where in that event's body it begins and ends.
    from: usize,
    to: usize,
    /// Nothing of the compressed stream is missing so far.
    is_whole: bool,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("current", &self.current).field("rest", &self.rest).finish_non_exhaustive()
    }
}

impl Unpacker {
    /// Unpacks the first event that another one holds.
    pub fn begin(&mut self, packing: Packing, header: EventHeader, body: &[u8]) -> Result<(), WireError> {
        self.rest = None;
        self.clear();
        match packing {
            Packing::Event(event_type) => self.inflate_event(EventHeader { event_type, ..header }, body),
            Packing::Transaction => {
                self.rest = Some(self.open(header, body)?);
                if self.next(body)? {
                    Ok(())
                } else {
                    Err(ProtocolError::new("a compressed transaction of no event").into())
                }
            }
        }
    }

    /// Unpacks the next event, if there is one. `body` is that of the event which holds it, as at [`Self::begin`]; it
    /// may have more bytes behind its end.
    pub fn next(&mut self, body: &[u8]) -> Result<bool, WireError> {
        let Some(mut rest) = self.rest.take() else { return Ok(false) };
        self.clear();
        self.fill(&mut rest, body, HEADER_BYTES)?;
        if self.bytes.is_empty() {
            return Ok(false);
        }
        let mut header = EventHeader::read(&self.bytes)?;
        let length = header.event_bytes as usize;
        if length < HEADER_BYTES {
            return Err(ProtocolError::new(format!("an event of {length} bytes in a compressed transaction")).into());
        }
        if length > EVENT_BYTES_MAX {
            return Err(WireError::TooLarge { what: "an event of a compressed transaction", limit: EVENT_BYTES_MAX });
        }
        self.fill(&mut rest, body, length)?;
        if self.bytes.len() < length {
            return Err(ProtocolError::short("an event of a compressed transaction").into());
        }
        // Inside they stand at no place of the log: they all end where the transaction does.
        header.end_position = rest.outer.end_position;
        self.current = Some((header, kind_inside(&header)?));
        self.body_at = HEADER_BYTES;
        self.rest = Some(rest);
        Ok(true)
    }

    /// The event unpacked last.
    pub fn event(&self) -> Option<Event<'_>> {
        let (header, kind) = self.current?;
        Some(Event { header, kind, body: self.bytes.get(self.body_at..)? })
    }

    fn clear(&mut self) {
        self.current = None;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }

    /// Reads what stands before a transaction's packed bytes.
    fn open(&mut self, outer: EventHeader, body: &[u8]) -> Result<Rest, WireError> {
        const END: u64 = 0;
        const PACKED_BYTES: u64 = 1;
        const COMPRESSION: u64 = 2;
        const ZSTD: u64 = 0;
        const NONE: u64 = 255;
        let mut reader = Reader::new("a compressed transaction", body);
        let (mut packed_bytes, mut compression) = (None, None);
        loop {
            let field = reader.number()?;
            if field == END {
                break;
            }
            let mut value = Reader::new("a field of a compressed transaction", reader.string()?);
            match field {
                PACKED_BYTES => packed_bytes = Some(value.number()?),
                COMPRESSION => compression = Some(value.number()?),
                // How large it is unpacked is seen when it is.
                _ => {}
            }
        }
        let is_compressed = match compression {
            Some(ZSTD) => true,
            Some(NONE) => false,
            other => {
                let way = other.map_or("way that it does not say".to_owned(), |other| format!("unknown way {other}"));
                return Err(WireError::unsupported(format!(
                    "a transaction compressed in the {way}, at {}: set binlog_transaction_compression = OFF",
                    outer.end_position
                )));
            }
        };
        let packed = reader.rest();
        if packed_bytes.is_some_and(|bytes| bytes != packed.len() as u64) {
            return Err(ProtocolError::new("a compressed transaction is of another length than it says").into());
        }
        if is_compressed {
            self.zstd_anew()?;
        }
        Ok(Rest { outer, is_compressed, from: body.len() - packed.len(), to: body.len(), is_whole: true })
    }

    fn zstd_anew(&mut self) -> Result<(), ProtocolError> {
        match &mut self.zstd {
            Some(zstd) => zstd.reinit().map_err(cannot_unpack),
            none => {
                let mut zstd = Decoder::new().map_err(cannot_unpack)?;
                zstd.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(cannot_unpack)?;
                *none = Some(zstd);
                Ok(())
            }
        }
    }

    /// Unpacks until there are `length` bytes, or there is no more.
    fn fill(&mut self, rest: &mut Rest, body: &[u8], length: usize) -> Result<(), WireError> {
        while self.bytes.len() < length {
            let packed = body.get(rest.from..rest.to).unwrap_or_default();
            if packed.is_empty() && rest.is_whole {
                return Ok(());
            }
            let before = self.bytes.len();
            let step = (length - before).min(STEP_BYTES);
            let taken = match &mut self.zstd {
                Some(zstd) if rest.is_compressed => {
                    self.bytes.resize(before + step, 0);
                    let space = self.bytes.get_mut(before..).unwrap_or_default();
                    let status = zstd.run_on_buffers(packed, space).map_err(cannot_unpack)?;
                    self.bytes.truncate(before + status.bytes_written);
                    rest.is_whole = status.remaining == 0;
                    status.bytes_read
                }
                _ => {
                    let bytes = packed.get(..step).unwrap_or(packed);
                    self.bytes.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            rest.from += taken;
            if taken == 0 && self.bytes.len() == before && !(packed.is_empty() && rest.is_whole) {
                return Err(ProtocolError::short("a compressed transaction").into());
            }
        }
        Ok(())
    }

    /// Unpacks an event of MariaDB: what is packed of it is what stands last.
    fn inflate_event(&mut self, header: EventHeader, body: &[u8]) -> Result<(), WireError> {
        let kind = match decision(header.event_type) {
            Decision::Read(kind) => kind,
            other => not_read(other, &header)?,
        };
        let packed = match (Event { header, kind, body }).read()? {
            EventBody::Query(query) => query.text,
            EventBody::Rows(rows) => rows.rows,
            _ => return Err(ProtocolError::new("a compressed event that is neither a statement nor rows").into()),
        };
        self.bytes.extend_from_slice(body.get(..body.len() - packed.len()).unwrap_or_default());
        inflate(packed, header.end_position, &mut self.bytes)?;
        self.current = Some((header, kind));
        self.body_at = 0;
        Ok(())
    }
}

/// What an event of a compressed transaction is. Those that say how or where the log goes on have no business there.
fn kind_inside(header: &EventHeader) -> Result<EventKind, WireError> {
    use EventKind::{
        DeleteRows, LoadQuery, PartialUpdateRows, Query, RowsQuery, Skipped, TableMap, UpdateRows, WriteRows,
        XaPrepare, Xid,
    };
    let kind = match decision(header.event_type) {
        Decision::Read(kind) => kind,
        Decision::Unpack(_) => {
            return Err(WireError::unsupported(format!(
                "a compressed event inside of a compressed transaction (event type {}, at {})",
                header.event_type, header.end_position
            )));
        }
        other => not_read(other, header)?,
    };
    match kind {
        Query | LoadQuery | RowsQuery | TableMap | WriteRows | UpdateRows | DeleteRows | PartialUpdateRows | Xid
        | XaPrepare | Skipped => Ok(kind),
        _ => {
            let what = format!("an event of type {} inside of a compressed transaction", header.event_type);
            Err(ProtocolError::new(what).into())
        }
    }
}

/// Appends what MariaDB packed: a byte that says how, the length, and a zlib stream.
fn inflate(packed: &[u8], end_position: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    const PACKED: u8 = 0x80;
    const WAY: u8 = 0x70;
    const LENGTH_BYTES: u8 = 0x07;
    let short = || ProtocolError::short("a compressed event");
    let (&head, rest) = packed.split_first().ok_or_else(short)?;
    if head & (PACKED | WAY) != PACKED {
        return Err(WireError::unsupported(format!(
            "an event compressed in the unknown way {head}, at {end_position}: set log_bin_compress = OFF"
        )));
    }
    let (length, stream) = rest.split_at_checked((head & LENGTH_BYTES).into()).ok_or_else(short)?;
    let length = length.iter().try_fold(0_usize, |length, &byte| Some(length.checked_mul(256)? | usize::from(byte)));
    let length = length.filter(|length| *length <= EVENT_BYTES_MAX);
    let length = length.ok_or(WireError::TooLarge { what: "a compressed event", limit: EVENT_BYTES_MAX })?;
    let before = out.len();
    // Memory grows with what is really there; one byte more than is said shows that too much is.
    ZlibDecoder::new(stream).take(length as u64 + 1).read_to_end(out).map_err(cannot_unpack)?;
    if out.len() - before == length {
        Ok(())
    } else {
        Err(ProtocolError::new("a compressed event is unpacked of another length than it says").into())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "stands where results are mapped")]
#[cold]
fn cannot_unpack(error: std::io::Error) -> ProtocolError {
    ProtocolError::new(format!("compressed events cannot be unpacked: {error}"))
}

#[cfg(test)]
mod tests;
