//! Values as they are masked: their text form, and its hash.

use cdchost_sdk::Values;
use cdchost_sdk::data::text::{push_date, push_decimal128, push_decimal256, push_time, push_timestamp};
use sha2::{Digest, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// HMAC-SHA-256 under one key (RFC 2104): the two hashes that have taken in the padded key.
#[derive(Clone, Debug)]
pub(crate) struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = [0_u8; BLOCK_BYTES];
        let short = if key.len() > BLOCK_BYTES { Sha256::digest(key).to_vec() } else { key.to_vec() };
        block.iter_mut().zip(&short).for_each(|(to, from)| *to = *from);
        let padded = |pad: u8| Sha256::new_with_prefix(block.map(|byte| byte ^ pad));
        Self { inner: padded(0x36), outer: padded(0x5c) }
    }

    /// The hash of a text, in hexadecimal.
    pub(crate) fn hex(&self, text: &[u8], out: &mut String) {
        let inner = self.inner.clone().chain_update(text).finalize();
        let hash = self.outer.clone().chain_update(inner).finalize();
        for byte in hash {
            for digit in [byte >> 4, byte & 0xf] {
                out.extend(char::from_digit(digit.into(), 16));
            }
        }
    }
}

/// Appends the text form of a value: digits of numbers, ISO dates and times, texts and bytes as they are. It tells
/// different values of a column apart, and is the same for the same number in columns of different widths.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &mut String, values: Values<'_>, row: usize) {
    text.clear();
    match values {
        Values::Boolean(bits) => text.push(if bits.get(row) { '1' } else { '0' }),
        Values::Int8(values) => text.push_str(&values[row].to_string()),
        Values::Int16(values) => text.push_str(&values[row].to_string()),
        Values::Int32(values) => text.push_str(&values[row].to_string()),
        Values::Int64(values) => text.push_str(&values[row].to_string()),
        Values::Uint8(values) => text.push_str(&values[row].to_string()),
        Values::Uint16(values) => text.push_str(&values[row].to_string()),
        Values::Uint32(values) => text.push_str(&values[row].to_string()),
        Values::Uint64(values) => text.push_str(&values[row].to_string()),
        Values::Float32(values) => text.push_str(&values[row].to_string()),
        Values::Float64(values) => text.push_str(&values[row].to_string()),
        Values::Decimal128(values, scale) => push_decimal128(text, values[row], scale),
        Values::Decimal256(values, scale) => push_decimal256(text, &values[row], scale),
        Values::Date(values) => push_date(text, values[row]),
        Values::Time(values, fraction) => push_time(text, values[row], fraction),
        Values::Timestamp(values, fraction) | Values::TimestampUtc(values, fraction) => {
            push_timestamp(text, values[row], fraction);
        }
        Values::Text(texts) | Values::Json(texts) => return out.extend_from_slice(texts.get(row).as_bytes()),
        Values::Bytes(strings) | Values::Geometry(strings) => return out.extend_from_slice(strings.get(row)),
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        // RFC 4231, test cases 2 and 6.
        let long = [0xaa_u8; 131];
        for (key, text, expect) in [
            (
                &b"Jefe"[..],
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &long,
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            let mut hash = String::new();
            Hmac::new(key).hex(text.as_bytes(), &mut hash);
            assert_eq!(hash, expect);
        }
    }
}
