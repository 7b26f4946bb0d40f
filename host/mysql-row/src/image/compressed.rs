//! Values of MariaDB's COMPRESSED columns, as the log has them.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::charset::Charset;
use crate::column::ValueError;

const BAD: ValueError = ValueError::Malformed("COMPRESSED value");
/// The header's bits: the way of packing, whether zlib's own frame is left out, and the bytes of the length.
const WAY_ZLIB: u8 = 8;
const WITHOUT_FRAME: u8 = 8;
const LENGTH_BYTES: u8 = 7;

/// Appends the value, as UTF-8 where it is text of another set.
pub(super) fn unpack(packed: &[u8], charset: Option<&Charset>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let Some((&header, rest)) = packed.split_first() else { return Ok(()) };
    if header == 0 {
        return put(rest, charset, out);
    }
    let (lengths, stream) = rest.split_at_checked((header & LENGTH_BYTES).into()).ok_or(BAD)?;
    if header >> 4 != WAY_ZLIB || !(1..=4).contains(&lengths.len()) {
        return Err(BAD);
    }
    let length = lengths.iter().fold(0u64, |length, &byte| length << 8 | u64::from(byte));
    // Memory grows with what is really there; one byte more than is said shows that too much is.
    let mut value = Vec::new();
    let read = if header & WITHOUT_FRAME != 0 {
        DeflateDecoder::new(stream).take(length + 1).read_to_end(&mut value)
    } else {
        ZlibDecoder::new(stream).take(length + 1).read_to_end(&mut value)
    };
    if read.map_err(|_| BAD)? as u64 != length {
        return Err(BAD);
    }
    put(&value, charset, out)
}

fn put(value: &[u8], charset: Option<&Charset>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    match charset {
        Some(charset) => charset.decode(value, out),
        None => {
            out.extend_from_slice(value);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8]) -> Result<Vec<u8>, ValueError> {
        let mut out = Vec::new();
        unpack(packed, None, &mut out).map(|()| out)
    }

    #[test]
    fn values_of_a_real_log_are_unpacked() {
        // MariaDB 10.11: REPEAT('ab', 500) in a VARCHAR(2000) COMPRESSED.
        let packed = b"\x8a\x03\xe8\x4b\x4c\x4a\x1c\x85\xa3\x70\x14\x0e\x73\x08\x00";
        assert_eq!(unpacked(packed), Ok(b"ab".repeat(500)));
        assert_eq!(unpacked(b"\0short"), Ok(b"short".to_vec()));
        assert_eq!(unpacked(b""), Ok(Vec::new()));
    }

    #[test]
    fn broken_values_are_refused() {
        let packed: &[u8] = b"\x8a\x03\xe8\x4b\x4c\x4a\x1c\x85\xa3\x70\x14\x0e\x73\x08\x00";
        for length in 1..packed.len() - 1 {
            assert_eq!(unpacked(&packed[..length]), Err(BAD), "{length}");
        }
        for (place, byte) in [(0, 0x18), (0, 0x88), (0, 0x8f), (1, 0x02), (1, 0x04)] {
            let mut broken = packed.to_vec();
            broken[place] = byte;
            assert_eq!(unpacked(&broken), Err(BAD), "{place}: {byte:x}");
        }
    }
}
