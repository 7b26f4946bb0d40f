//! The read buffer: bytes go in as they come, whole packets are seen in place.

use std::ops::Range;

use super::PART_BYTES;
use crate::error::{ProtocolError, WireError};

/// Size of the buffer while packets are small. Large enough for few system calls, small enough for the cache.
const BUFFER_BYTES: usize = 256 << 10;
/// Free space below which the buffer is tidied before a read.
const READ_BYTES_MIN: usize = 64 << 10;
const HEADER_BYTES: usize = 4;

/// Where a packet taken lies.
#[derive(Debug)]
pub(crate) enum Taken {
    /// In the buffer.
    Here(Range<usize>),
    /// It came in parts, joined elsewhere.
    Joined,
}

/// Bytes read, not yet taken. Never larger than one part and what one read adds, plus the joined parts.
#[derive(Debug)]
pub(crate) struct PacketBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The parts so far of a packet that comes in several.
    joined: Vec<u8>,
    /// `joined` was handed out whole: the next packet begins anew.
    joined_taken: bool,
    sequence: u8,
    packet_bytes_max: usize,
}

impl PacketBuffer {
    pub(crate) fn new(packet_bytes_max: usize) -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            joined: Vec::new(),
            joined_taken: false,
            sequence: 0,
            packet_bytes_max,
        }
    }

    /// The sequence id that the next packet, of either side, must have.
    pub(crate) fn expect_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Takes the next sequence id for a packet of ours.
    pub(crate) fn use_sequence(&mut self) -> u8 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }

    pub(crate) fn has_bytes(&self) -> bool {
        self.start < self.end
    }

    /// Takes the next packet if it is there as a whole.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<Taken>, WireError> {
        if self.joined_taken {
            self.joined = Vec::new();
            self.joined_taken = false;
        }
        loop {
            let waiting = self.bytes.get(self.start..self.end).unwrap_or_default();
            let Some((&[a, b, c, sequence], rest)) = waiting.split_first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            if self.joined.len() + length > self.packet_bytes_max {
                return Err(WireError::TooLarge { what: "a packet of the server", limit: self.packet_bytes_max });
            }
            if rest.len() < length {
                return Ok(None);
            }
            if sequence != self.sequence {
                return Err(out_of_order(sequence, self.sequence).into());
            }
            self.sequence = sequence.wrapping_add(1);
            let body = self.start + HEADER_BYTES..self.start + HEADER_BYTES + length;
            self.start = body.end;
            if length < PART_BYTES && self.joined.is_empty() {
                return Ok(Some(Taken::Here(body)));
            }
            self.joined.extend_from_slice(self.bytes.get(body).unwrap_or_default());
            if length < PART_BYTES {
                self.joined_taken = true;
                return Ok(Some(Taken::Joined));
            }
        }
    }

    /// The bytes of a packet just taken.
    #[inline]
    pub(crate) fn bytes(&self, taken: &Taken) -> &[u8] {
        match taken {
            Taken::Here(range) => self.bytes.get(range.clone()).unwrap_or_default(),
            Taken::Joined => &self.joined,
        }
    }

    /// Free space for the next read, never empty. Invalidates what was taken.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        let needed = (self.packet_bytes_begun() + READ_BYTES_MIN).max(BUFFER_BYTES);
        if !self.has_bytes() {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > 2 * BUFFER_BYTES {
                self.bytes = vec![0; BUFFER_BYTES];
            }
        } else if self.bytes.len() - self.end < READ_BYTES_MIN {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() < needed || self.end == self.bytes.len() {
            self.bytes.resize(needed.max(self.end + READ_BYTES_MIN), 0);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// `count` bytes were read into [`Self::space`].
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Size of the part whose beginning is here, header included.
    fn packet_bytes_begun(&self) -> usize {
        let waiting = self.bytes.get(self.start..self.end).unwrap_or_default();
        match waiting.first_chunk::<HEADER_BYTES>() {
            Some(&[a, b, c, _]) => HEADER_BYTES + (usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16),
            None => 0,
        }
    }
}

#[cold]
fn out_of_order(found: u8, expected: u8) -> ProtocolError {
    ProtocolError::new(format!("packet {found} came where packet {expected} was expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` in pieces and gives what is taken meanwhile.
    fn feed(
        buffer: &mut PacketBuffer,
        bytes: &[u8],
        piece: impl Fn(usize) -> usize,
    ) -> Result<Vec<Vec<u8>>, WireError> {
        let (mut rest, mut packets, mut round) = (bytes, Vec::new(), 0);
        while !rest.is_empty() {
            let space = buffer.space();
            assert!(!space.is_empty(), "no room to read into");
            let count = piece(round).clamp(1, rest.len()).min(space.len());
            space[..count].copy_from_slice(&rest[..count]);
            buffer.filled(count);
            rest = &rest[count..];
            round += 1;
            while let Some(taken) = buffer.take()? {
                packets.push(buffer.bytes(&taken).to_vec());
            }
        }
        Ok(packets)
    }

    fn framed(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for (sequence, packet) in packets.iter().enumerate() {
            out.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
            out.push(sequence as u8);
            out.extend_from_slice(packet);
        }
        out
    }

    #[test]
    fn packets_come_out_as_they_went_in_however_they_are_cut() {
        let sizes = [0, 1, 3, 300_000, 5, 100_000, 262_140, 262_144, 1 << 20, 0, 7];
        let packets: Vec<Vec<u8>> = (0..600).map(|n| vec![n as u8; sizes[n % sizes.len()] / (1 + n / 11)]).collect();
        let bytes = framed(&packets);
        for piece in [&|_| 1 << 20, &|round| 1 + round * 7919 % 70_000, &|_| 4096] as [&dyn Fn(usize) -> usize; 3] {
            let mut buffer = PacketBuffer::new(1 << 24);
            assert!(feed(&mut buffer, &bytes, piece).unwrap() == packets);
            assert!(!buffer.has_bytes());
            buffer.space();
            assert!(buffer.bytes.len() <= 2 * BUFFER_BYTES, "memory of a large packet is kept");
        }
    }

    #[test]
    fn byte_by_byte_is_enough() {
        let packets = vec![b"one".to_vec(), Vec::new(), b"three".to_vec()];
        assert_eq!(feed(&mut PacketBuffer::new(100), &framed(&packets), |_| 1).unwrap(), packets);
    }

    #[test]
    fn sequence_ids_wrap() {
        let packets = vec![vec![1]; 600];
        assert_eq!(feed(&mut PacketBuffer::new(100), &framed(&packets), |_| 999).unwrap().len(), 600);
    }

    #[test]
    fn joined_parts_count_against_the_limit() {
        let mut bytes = vec![0xFF, 0xFF, 0xFF, 0];
        bytes.resize(4 + PART_BYTES, 0);
        bytes.extend_from_slice(&[2, 0, 0, 1, 9, 9]);
        let mut buffer = PacketBuffer::new(PART_BYTES + 2);
        assert_eq!(feed(&mut buffer, &bytes, |_| 1 << 20).unwrap()[0].len(), PART_BYTES + 2);
        let mut buffer = PacketBuffer::new(PART_BYTES + 1);
        assert!(matches!(feed(&mut buffer, &bytes, |_| 1 << 20), Err(WireError::TooLarge { .. })));
    }
}
