//! GTIDs on the wire: the event that begins a transaction, and sets of them.

use super::frame::EventHeader;
use crate::error::ProtocolError;
use crate::packet::Reader;

/// What a set needs at least for each uuid.
const UUID_BYTES_MIN: usize = 16 + 8;
const INTERVAL_BYTES: usize = 16;

/// A transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// The server that first ran it.
    pub uuid: [u8; 16],
    /// Its number there.
    pub number: u64,
    /// When that server committed it, in microseconds since 1970 (8.0 and later).
    pub original_commit_us: Option<u64>,
    /// When this server committed it (8.0 and later).
    pub immediate_commit_us: Option<u64>,
    /// Its length in the log with this event, in bytes (8.0 and later).
    pub transaction_bytes: Option<u64>,
}

impl GtidEvent {
    #[inline]
    pub(super) fn read(body: &[u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a GTID event", body);
        reader.skip(1)?;
        let uuid = reader.array()?;
        let number = reader.u64()?;
        let mut event =
            Self { uuid, number, original_commit_us: None, immediate_commit_us: None, transaction_bytes: None };
        // Older servers end here, or after the two logical timestamps.
        if reader.is_empty() || reader.u8()? != 2 {
            return Ok(event);
        }
        reader.skip(16)?;
        if reader.is_empty() {
            return Ok(event);
        }
        const HAS_ORIGINAL: u64 = 1 << 55;
        let immediate = reader.u56()?;
        event.immediate_commit_us = Some(immediate & !HAS_ORIGINAL);
        event.original_commit_us = event.immediate_commit_us;
        if immediate & HAS_ORIGINAL != 0 {
            event.original_commit_us = Some(reader.u56()?);
        }
        if !reader.is_empty() {
            event.transaction_bytes = Some(reader.number()?);
        }
        Ok(event)
    }
}

/// A transaction of MariaDB begins. Unlike MySQL's, most have no BEGIN behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MariadbGtid {
    /// The stream of transactions that it belongs to: within one the numbers grow.
    pub domain: u32,
    /// The server that first ran it.
    pub server_id: u32,
    /// Its number in the domain.
    pub number: u64,
    /// It is one statement, and ends with it.
    pub is_standalone: bool,
}

impl MariadbGtid {
    #[inline]
    pub(super) fn read(header: &EventHeader, body: &[u8]) -> Result<Self, ProtocolError> {
        const STANDALONE: u8 = 1;
        let mut reader = Reader::new("a GTID event of MariaDB", body);
        let (number, domain, flags) = (reader.u64()?, reader.u32()?, reader.u8()?);
        Ok(Self { domain, server_id: header.server_id, number, is_standalone: flags & STANDALONE != 0 })
    }
}

/// Transactions of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidIntervals {
    /// The server that first ran them.
    pub uuid: [u8; 16],
    /// From the first number to the one after the last; in order, apart from each other.
    pub intervals: Vec<(u64, u64)>,
}

impl GtidIntervals {
    /// Reads the set of a `PREVIOUS_GTIDS` event.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, ProtocolError> {
        let mut reader = Reader::new("a GTID set", bytes);
        let count = reader.u64()?;
        if count >> 56 != 0 {
            return Err(ProtocolError::new("a GTID set with tags, which are not supported"));
        }
        let count = bounded(count, reader.rest().len() / UUID_BYTES_MIN)?;
        let mut set = Vec::with_capacity(count);
        for _ in 0..count {
            let uuid = reader.array()?;
            let count = bounded(reader.u64()?, reader.rest().len() / INTERVAL_BYTES)?;
            let mut intervals = Vec::with_capacity(count);
            let mut free = 1;
            for _ in 0..count {
                let (start, end) = (reader.u64()?, reader.u64()?);
                if start < free || end <= start || i64::try_from(end).is_err() {
                    return Err(ProtocolError::new("a GTID set whose intervals are not in order"));
                }
                free = end;
                intervals.push((start, end));
            }
            set.push(Self { uuid, intervals });
        }
        if !reader.is_empty() {
            return Err(ProtocolError::new("a GTID set with bytes after its end"));
        }
        Ok(set)
    }

    /// Writes a set as `COM_BINLOG_DUMP_GTID` wants it.
    pub fn encode(set: &[Self]) -> Vec<u8> {
        let mut out = (set.len() as u64).to_le_bytes().to_vec();
        for part in set {
            out.extend_from_slice(&part.uuid);
            out.extend_from_slice(&(part.intervals.len() as u64).to_le_bytes());
            for (start, end) in &part.intervals {
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
        }
        out
    }
}

/// A count that the bytes at hand can hold.
fn bounded(count: u64, most: usize) -> Result<usize, ProtocolError> {
    match usize::try_from(count) {
        Ok(count) if count <= most => Ok(count),
        _ => Err(ProtocolError::short("a GTID set")),
    }
}
