//! Sets of transactions: intervals of numbers per server uuid, as the server writes and compares them.

use std::collections::BTreeMap;
use std::fmt;

/// A server's uuid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerUuid(pub [u8; 16]);

/// The name under which a server counts some of its transactions by themselves (8.3 and later); empty for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag([u8; TAG_BYTES_MAX]);

/// Who numbers transactions from one on: a server under one tag, or under none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionSource {
    /// The server.
    pub server: ServerUuid,
    /// The tag.
    pub tag: Tag,
}

/// Numbers from `start` up to but not including `end`; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    start: u64,
    end: u64,
}

/// A set of transactions. Per source the intervals are sorted, apart from each other, and never touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    sources: BTreeMap<TransactionSource, Vec<Interval>>,
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
    /// A tag that is none.
    #[error("{0:?} is no tag of transactions")]
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
/// Characters of a tag at most, as on the server.
const TAG_BYTES_MAX: usize = 32;
/// What the server puts at both ends of the count of a set that has tags.
const TAGGED: u64 = 1;

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

impl Tag {
    /// Reads a tag: letters, digits and underscores, no digit first; upper case is lower case to the server.
    pub fn parse(text: &[u8]) -> Result<Self, GtidError> {
        let is_tag = text.len() <= TAG_BYTES_MAX
            && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !text.first().is_some_and(u8::is_ascii_digit);
        if !is_tag {
            return Err(GtidError::Tag(String::from_utf8_lossy(text).into_owned()));
        }
        let mut tag = [0; TAG_BYTES_MAX];
        for (place, byte) in tag.iter_mut().zip(text) {
            *place = byte.to_ascii_lowercase();
        }
        Ok(Self(tag))
    }

    fn as_str(&self) -> &str {
        let text = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text).expect("a tag is ASCII")
    }
}

impl From<ServerUuid> for TransactionSource {
    fn from(server: ServerUuid) -> Self {
        Self { server, tag: Tag::default() }
    }
}

impl fmt::Display for TransactionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)?;
        match self.tag.as_str() {
            "" => Ok(()),
            tag => write!(f, ":{tag}"),
        }
    }
}

impl GtidSet {
    /// Parses the server's text: `uuid:1-5:7,uuid:1:tag:3-4`, blanks and line ends anywhere between. A tag holds for the
    /// intervals behind it.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut pieces = part.split(':').map(str::trim);
            let mut source = TransactionSource::from(ServerUuid::parse(pieces.next().unwrap_or_default())?);
            for piece in pieces {
                if piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    source.tag = Tag::parse(piece.as_bytes())?;
                } else {
                    set.insert(source, parse_interval(piece)?);
                }
            }
        }
        Ok(set)
    }

    /// Adds one transaction.
    pub fn add(&mut self, source: TransactionSource, number: u64) {
        if let Some(last) = self.sources.get_mut(&source).and_then(|intervals| intervals.last_mut())
            && last.end == number
        {
            last.end = number.saturating_add(1);
            return;
        }
        self.insert(source, Interval { start: number, end: number.saturating_add(1) });
    }

    /// Whether it holds one transaction.
    pub fn has(&self, source: TransactionSource, number: u64) -> bool {
        self.sources.get(&source).is_some_and(|intervals| {
            let after = intervals.partition_point(|interval| interval.start <= number);
            after > 0 && intervals[after - 1].end > number
        })
    }

    /// Whether it holds every transaction of the other.
    pub fn contains(&self, other: &Self) -> bool {
        other.sources.iter().all(|(source, theirs)| {
            let ours = self.sources.get(source).map_or(&[][..], Vec::as_slice);
            theirs.iter().all(|interval| {
                let after = ours.partition_point(|own| own.start <= interval.start);
                after > 0 && ours[after - 1].end >= interval.end
            })
        })
    }

    /// What it holds and the other does not.
    pub fn subtract(&self, other: &Self) -> Self {
        let mut set = Self::default();
        for (&source, intervals) in &self.sources {
            let theirs = other.sources.get(&source).map_or(&[][..], Vec::as_slice);
            for &interval in intervals {
                let mut start = interval.start;
                for cut in theirs.iter().filter(|cut| cut.end > interval.start && cut.start < interval.end) {
                    if cut.start > start {
                        set.insert(source, Interval { start, end: cut.start });
                    }
                    start = cut.end;
                }
                if start < interval.end {
                    set.insert(source, Interval { start, end: interval.end });
                }
            }
        }
        set
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// As bytes, in the form that the server too has for sets: all numbers little-endian, ends exclusive. Where no source
    /// has a tag it is the form that all servers know.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let is_tagged = self.sources.keys().any(|source| source.tag != Tag::default());
        let count = self.sources.len() as u64;
        let head = if is_tagged { TAGGED << 56 | count << 8 | TAGGED } else { count };
        out.extend_from_slice(&head.to_le_bytes());
        for (source, intervals) in &self.sources {
            out.extend_from_slice(&source.server.0);
            if is_tagged {
                let tag = source.tag.as_str();
                let length = u8::try_from(tag.len()).expect("a tag is short");
                // A number below 128 in the server's form for messages.
                out.push(length << 1);
                out.extend_from_slice(tag.as_bytes());
            }
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for interval in intervals {
                out.extend_from_slice(&interval.start.to_le_bytes());
                out.extend_from_slice(&interval.end.to_le_bytes());
            }
        }
    }

    /// Reads what [`GtidSet::encode`] or a server wrote. Nothing is allocated for more than the bytes can hold.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, GtidError> {
        let mut set = Self::default();
        let head = take_number(&mut bytes)?;
        let (is_tagged, count) = match head >> 56 {
            0 => (false, head),
            TAGGED => (true, head << 8 >> 16),
            _ => return Err(GtidError::Bytes),
        };
        for _ in 0..count {
            let mut source = TransactionSource::from(ServerUuid(*take(&mut bytes)?));
            if is_tagged {
                let [length] = *take(&mut bytes)?;
                let (tag, rest) = bytes.split_at_checked(usize::from(length >> 1)).ok_or(GtidError::Bytes)?;
                source.tag = Tag::parse(tag)?;
                bytes = rest;
            }
            let intervals = take_number(&mut bytes)?;
            for _ in 0..intervals {
                let interval = Interval { start: take_number(&mut bytes)?, end: take_number(&mut bytes)? };
                if interval.start == 0 || interval.start >= interval.end || interval.end > NUMBER_MAX {
                    return Err(GtidError::Bytes);
                }
                set.insert(source, interval);
            }
        }
        if bytes.is_empty() { Ok(set) } else { Err(GtidError::Bytes) }
    }

    fn insert(&mut self, source: TransactionSource, mut new: Interval) {
        let intervals = self.sources.entry(source).or_default();
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

/// As the server writes it: what a uuid counts without a tag first, then tag by tag.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = None;
        for (source, intervals) in &self.sources {
            if last == Some(source.server) {
                write!(f, ":{}", source.tag.as_str())?;
            } else {
                let comma = if last.is_some() { "," } else { "" };
                write!(f, "{comma}{source}")?;
            }
            last = Some(source.server);
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

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], GtidError> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(GtidError::Bytes)?;
    *bytes = rest;
    Ok(taken)
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, GtidError> {
    take(bytes).map(|number| u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests;
