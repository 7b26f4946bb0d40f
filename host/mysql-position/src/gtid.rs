//! Sets of transactions: intervals of numbers per server uuid, as the server writes and compares them.

use std::collections::BTreeMap;
use std::fmt;

/// A server's uuid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerUuid(pub [u8; 16]);

/// Numbers from `start` up to but not including `end`; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    start: u64,
    end: u64,
}

/// A set of transactions. Per uuid the intervals are sorted, apart from each other, and never touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    servers: BTreeMap<ServerUuid, Vec<Interval>>,
}

/// Why a text or bytes are no set of transactions.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GtidError {
    /// A uuid that is none.
    #[error("{0:?} is no server uuid")]
    Uuid(String),
    /// An interval that is none.
    #[error("{0:?} is no interval of transaction numbers")]
    Interval(String),
    /// Tags of servers 8.3 and later.
    #[error("transaction tag {0:?}: tagged transactions are not offered yet")]
    Tag(String),
    /// Bytes that end early or go on too long.
    #[error("bytes of a transaction set are cut off or malformed")]
    Bytes,
}

/// How two sets relate. Two sets may each hold something that the other lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOrder {
    /// The same transactions.
    Equal,
    /// The first holds all of the second and more.
    Contains,
    /// The second holds all of the first and more.
    ContainedIn,
    /// Neither.
    Incomparable,
}

/// Transaction numbers lie in 1..2^63-1, as on the server.
const NUMBER_MAX: u64 = i64::MAX as u64;

impl ServerUuid {
    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; the server also takes it without dashes.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        let bad = || GtidError::Uuid(text.into());
        let mut uuid = [0; 16];
        let mut digits = text.bytes().filter(|&byte| byte != b'-');
        for byte in &mut uuid {
            let mut nibble = || digits.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(bad);
            let value = nibble()? * 16 + nibble()?;
            *byte = u8::try_from(value).expect("two hexadecimal digits make a byte");
        }
        if digits.next().is_some() { Err(bad()) } else { Ok(Self(uuid)) }
    }
}

impl fmt::Display for ServerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl GtidSet {
    /// Parses the server's text: `uuid:1-5:7,uuid:1`, blanks and line ends anywhere between.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut pieces = part.split(':').map(str::trim);
            let uuid = ServerUuid::parse(pieces.next().unwrap_or_default())?;
            for piece in pieces {
                if piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    return Err(GtidError::Tag(piece.into()));
                }
                set.insert(uuid, parse_interval(piece)?);
            }
        }
        Ok(set)
    }

    /// Adds one transaction.
    pub fn add(&mut self, uuid: ServerUuid, number: u64) {
        if let Some(last) = self.servers.get_mut(&uuid).and_then(|intervals| intervals.last_mut())
            && last.end == number
        {
            last.end = number.saturating_add(1);
            return;
        }
        self.insert(uuid, Interval { start: number, end: number.saturating_add(1) });
    }

    /// Whether it holds one transaction.
    pub fn has(&self, uuid: ServerUuid, number: u64) -> bool {
        self.servers.get(&uuid).is_some_and(|intervals| {
            let after = intervals.partition_point(|interval| interval.start <= number);
            after > 0 && intervals[after - 1].end > number
        })
    }

    /// Whether it holds every transaction of the other.
    pub fn contains(&self, other: &Self) -> bool {
        other.servers.iter().all(|(uuid, theirs)| {
            let ours = self.servers.get(uuid).map_or(&[][..], Vec::as_slice);
            theirs.iter().all(|interval| {
                let after = ours.partition_point(|own| own.start <= interval.start);
                after > 0 && ours[after - 1].end >= interval.end
            })
        })
    }

    /// What it holds and the other does not.
    pub fn subtract(&self, other: &Self) -> Self {
        let mut set = Self::default();
        for (&uuid, intervals) in &self.servers {
            let theirs = other.servers.get(&uuid).map_or(&[][..], Vec::as_slice);
            for &interval in intervals {
                let mut start = interval.start;
                for cut in theirs.iter().filter(|cut| cut.end > interval.start && cut.start < interval.end) {
                    if cut.start > start {
                        set.insert(uuid, Interval { start, end: cut.start });
                    }
                    start = cut.end;
                }
                if start < interval.end {
                    set.insert(uuid, Interval { start, end: interval.end });
                }
            }
        }
        set
    }

    /// All intervals, ends exclusive, by server.
    pub fn servers(&self) -> impl Iterator<Item = (ServerUuid, Vec<(u64, u64)>)> + '_ {
        self.servers.iter().map(|(&uuid, intervals)| (uuid, intervals.iter().map(|own| (own.start, own.end)).collect()))
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// As bytes, in the form that the server too has for sets: all numbers little-endian, ends exclusive.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.servers.len() as u64).to_le_bytes());
        for (uuid, intervals) in &self.servers {
            out.extend_from_slice(&uuid.0);
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for interval in intervals {
                out.extend_from_slice(&interval.start.to_le_bytes());
                out.extend_from_slice(&interval.end.to_le_bytes());
            }
        }
    }

    /// Reads what [`GtidSet::encode`] wrote. Nothing is allocated for more than the bytes can hold.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, GtidError> {
        let mut set = Self::default();
        let servers = take_number(&mut bytes)?;
        for _ in 0..servers {
            let (uuid, rest) = bytes.split_first_chunk::<16>().ok_or(GtidError::Bytes)?;
            bytes = rest;
            let intervals = take_number(&mut bytes)?;
            for _ in 0..intervals {
                let interval = Interval { start: take_number(&mut bytes)?, end: take_number(&mut bytes)? };
                if interval.start == 0 || interval.start >= interval.end || interval.end > NUMBER_MAX {
                    return Err(GtidError::Bytes);
                }
                set.insert(ServerUuid(*uuid), interval);
            }
        }
        if bytes.is_empty() { Ok(set) } else { Err(GtidError::Bytes) }
    }

    fn insert(&mut self, uuid: ServerUuid, mut new: Interval) {
        let intervals = self.servers.entry(uuid).or_default();
        // All that overlap or touch the new one melt into it.
        let from = intervals.partition_point(|own| own.end < new.start);
        let to = intervals.partition_point(|own| own.start <= new.end);
        if let Some(melted) = intervals.get(from..to).filter(|melted| !melted.is_empty()) {
            new.start = new.start.min(melted[0].start);
            new.end = new.end.max(melted[melted.len() - 1].end);
        }
        intervals.splice(from..to, [new]);
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (uuid, intervals)) in self.servers.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            uuid.fmt(f)?;
            for interval in intervals {
                write!(f, ":{}", interval.start)?;
                if interval.end - interval.start > 1 {
                    write!(f, "-{}", interval.end - 1)?;
                }
            }
        }
        Ok(())
    }
}

fn parse_interval(text: &str) -> Result<Interval, GtidError> {
    let bad = || GtidError::Interval(text.into());
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
    let (start, last) = match text.split_once('-') {
        Some((start, last)) => (number(start)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    if start == 0 || last < start || last >= NUMBER_MAX {
        return Err(bad());
    }
    Ok(Interval { start, end: last + 1 })
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, GtidError> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(GtidError::Bytes)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests;
