//! GTIDs in the log: the events that begin a transaction.

use super::event::in_file;
use super::frame::EventHeader;
use crate::error::ProtocolError;
use crate::packet::Reader;

/// A transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtidEvent<'a> {
    /// The server that first ran it.
    pub uuid: [u8; 16],
    /// The tag under which that server counted it (8.3 and later); empty for none.
    pub tag: &'a [u8],
    /// Its number there.
    pub number: u64,
    /// When that server committed it, in microseconds since 1970 (8.0 and later).
    pub original_commit_us: Option<u64>,
    /// When this server committed it (8.0 and later).
    pub immediate_commit_us: Option<u64>,
    /// Its length in the log with this event, in bytes (8.0 and later).
    pub transaction_bytes: Option<u64>,
}

impl<'a> GtidEvent<'a> {
    /// One of which no more is known than its number.
    pub fn of_number(number: u64) -> Self {
        Self {
            uuid: [0; 16],
            tag: &[],
            number,
            original_commit_us: None,
            immediate_commit_us: None,
            transaction_bytes: None,
        }
    }

    #[inline]
    pub(super) fn read(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a GTID event", body);
        reader.skip(1)?;
        let uuid = reader.array()?;
        let mut event = Self { uuid, ..Self::of_number(reader.u64()?) };
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
            event.transaction_bytes = Some(in_file(reader.number()?)?);
        }
        Ok(event)
    }

    /// Reads the event of transactions with tags: a message of fields, each behind its number and in order of these.
    pub(super) fn read_tagged(body: &'a [u8]) -> Result<Self, ProtocolError> {
        const VERSION: u64 = 1;
        let mut reader = Reader::new("a tagged GTID event", body);
        let version = message_number(&mut reader)?;
        if version != VERSION {
            return Err(ProtocolError::new(format!("a tagged GTID event in version {version} of its message")));
        }
        if message_number(&mut reader)? != body.len() as u64 {
            return Err(ProtocolError::new("a tagged GTID event is of another length than it says"));
        }
        // Fields below it must be known.
        let needed = message_number(&mut reader)?;
        let (mut event, mut has_name) = (Self::of_number(0), [false; 2]);
        while !reader.is_empty() {
            match message_number(&mut reader)? {
                1 => {
                    for byte in &mut event.uuid {
                        *byte = u8::try_from(message_number(&mut reader)?)
                            .map_err(|_| ProtocolError::new("a tagged GTID event whose uuid is none"))?;
                    }
                    has_name[0] = true;
                }
                2 => {
                    event.number = unsigned(message_number(&mut reader)?)?;
                    has_name[1] = true;
                }
                3 => {
                    let length = usize::try_from(message_number(&mut reader)?);
                    event.tag = reader.take(length.map_err(|_| ProtocolError::short("a tagged GTID event"))?)?;
                }
                6 => event.immediate_commit_us = Some(message_number(&mut reader)?),
                7 => event.original_commit_us = Some(message_number(&mut reader)?),
                8 => event.transaction_bytes = Some(in_file(message_number(&mut reader)?)?),
                // Flags, logical timestamps, versions of the servers, the group of the commit.
                0 | 4 | 5 | 9..=11 => drop(message_number(&mut reader)?),
                unknown if unknown < needed => {
                    return Err(ProtocolError::new(format!("a tagged GTID event with the unknown field {unknown}")));
                }
                // Of unknown length, and nothing that must be known follows.
                _ => break,
            }
        }
        if has_name != [true; 2] {
            return Err(ProtocolError::short("a tagged GTID event"));
        }
        event.original_commit_us = event.original_commit_us.or(event.immediate_commit_us);
        Ok(event)
    }
}

/// A number of MySQL's message format: the first byte has as many ones at its low end as bytes follow, then a zero; the
/// bits above are the number's, the lowest byte first.
fn message_number(reader: &mut Reader<'_>) -> Result<u64, ProtocolError> {
    let first = reader.u8()?;
    let more = first.trailing_ones();
    if more == u8::BITS {
        return reader.u64();
    }
    let mut bytes = [first, 0, 0, 0, 0, 0, 0, 0];
    for (place, &byte) in bytes.iter_mut().skip(1).zip(reader.take(more as usize)?) {
        *place = byte;
    }
    Ok(u64::from_le_bytes(bytes) >> (more + 1))
}

/// A number that may be negative has its sign at the low end; this one must not be.
fn unsigned(number: u64) -> Result<u64, ProtocolError> {
    if number & 1 == 0 {
        Ok(number >> 1)
    } else {
        Err(ProtocolError::new("a tagged GTID event with a negative number"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u64, ProtocolError> {
        message_number(&mut Reader::new("a number", bytes))
    }

    #[test]
    fn numbers_of_messages_are_of_one_to_nine_bytes() {
        let rows: [(&[u8], u64); 6] = [
            (&[0xEE], 0x77),
            (&[0x45, 0x03], 0xD1),
            (&[0xDB, 0xD0, 0x09], 80_411),
            (&[0x7F, 0x00, 0x3E, 0x89, 0x00, 0xFA, 0x5B, 0x06], 0x06_5BFA_0089_3E00),
            (&[0xFF; 9], u64::MAX),
            (&[0], 0),
        ];
        for (bytes, expected) in rows {
            assert_eq!(number(bytes), Ok(expected));
            assert!(number(&bytes[..bytes.len() - 1]).is_err());
        }
        assert_eq!(unsigned(4), Ok(2));
        assert!(unsigned(5).is_err());
    }
}
