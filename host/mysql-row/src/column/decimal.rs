//! DECIMAL: the log's packed groups of nine digits, and the text of a query's row, to one whole number.

use arrow_buffer::i256;

use super::ValueError;

/// Bytes that hold so many digits of an incomplete group.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const POWERS: [u32; 10] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// The most that the server stores.
pub(crate) const PRECISION_MAX: u8 = 65;
/// The most that a JSON document says: whole digits count by groups of nine there.
const PRECISION_IN_JSON_MAX: u8 = 72 + 30;

/// A whole number that digits can be put behind.
pub(crate) trait Digits: Copy {
    const ZERO: Self;
    /// The value with `count` (at most nine) digits put behind it.
    fn append(self, count: usize, digits: u32) -> Self;
    fn negate(self) -> Self;
}

impl Digits for i128 {
    const ZERO: Self = 0;
    fn append(self, count: usize, digits: u32) -> Self {
        self.wrapping_mul(i128::from(POWERS[count])).wrapping_add(i128::from(digits))
    }
    fn negate(self) -> Self {
        -self
    }
}

impl Digits for i256 {
    const ZERO: Self = i256::ZERO;
    fn append(self, count: usize, digits: u32) -> Self {
        self.wrapping_mul(i256::from_i128(i128::from(POWERS[count]))).wrapping_add(i256::from_i128(i128::from(digits)))
    }
    fn negate(self) -> Self {
        self.wrapping_neg()
    }
}

/// Bytes of a packed value.
pub(crate) fn packed_bytes(precision: u8, scale: u8) -> usize {
    let (whole, scale) = (usize::from(precision.saturating_sub(scale)), usize::from(scale));
    whole / 9 * 4 + GROUP_BYTES[whole % 9] + scale / 9 * 4 + GROUP_BYTES[scale % 9]
}

/// A packed value: the incomplete group of whole digits first, the incomplete one of the fraction last, the sign in
/// the first bit, all bits turned for negative ones.
pub(crate) fn packed<T: Digits>(bytes: &[u8], precision: u8, scale: u8) -> Result<T, ValueError> {
    if precision > PRECISION_MAX { Err(ValueError::Malformed("decimal")) } else { unpack(bytes, precision, scale) }
}

fn unpack<T: Digits>(bytes: &[u8], precision: u8, scale: u8) -> Result<T, ValueError> {
    if scale > precision || bytes.len() != packed_bytes(precision, scale) {
        return Err(ValueError::Malformed("decimal"));
    }
    let Some(&first) = bytes.first() else { return Ok(T::ZERO) };
    let negative = first & 0x80 == 0;
    let mask = if negative { 0xff } else { 0 };
    let (whole, scale) = (usize::from(precision - scale), usize::from(scale));
    let mut value = T::ZERO;
    let mut at = 0;
    let mut group = |count: usize, value: &mut T| -> Result<(), ValueError> {
        let size = GROUP_BYTES[count];
        let raw = bytes.get(at..at + size).ok_or(ValueError::Short)?;
        let mut digits = raw.iter().fold(0u32, |digits, &byte| digits << 8 | u32::from(byte ^ mask));
        if at == 0 {
            // The first bit is the sign; it is not part of the digits.
            digits ^= 0x80 << (8 * (size - 1));
        }
        at += size;
        if digits >= POWERS[count] {
            return Err(ValueError::Malformed("decimal"));
        }
        *value = value.append(count, digits);
        Ok(())
    };
    if whole % 9 > 0 {
        group(whole % 9, &mut value)?;
    }
    for _ in 0..whole / 9 + scale / 9 {
        group(9, &mut value)?;
    }
    if scale % 9 > 0 {
        group(scale % 9, &mut value)?;
    }
    Ok(if negative { value.negate() } else { value })
}

/// A value as text, `-12.50`; the fraction has `scale` digits or fewer.
pub(crate) fn text<T: Digits>(text: &[u8], scale: u8) -> Result<T, ValueError> {
    let bad = || ValueError::Malformed("decimal");
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some(_) => (false, text),
        None => return Err(bad()),
    };
    if digits.len() > usize::from(PRECISION_MAX) + 2 {
        return Err(bad());
    }
    let (mut value, mut group, mut count) = (T::ZERO, 0u32, 0usize);
    let mut fraction: Option<u8> = None;
    for &byte in digits {
        match byte {
            b'.' if fraction.is_none() => fraction = Some(0),
            b'0'..=b'9' => {
                group = group * 10 + u32::from(byte - b'0');
                count += 1;
                fraction = fraction.map(|digits| digits + 1);
                if count == 9 {
                    value = value.append(9, group);
                    (group, count) = (0, 0);
                }
            }
            _ => return Err(bad()),
        }
    }
    value = value.append(count, group);
    let mut missing = scale.checked_sub(fraction.unwrap_or(0)).ok_or_else(bad)?;
    while missing > 0 {
        let step = missing.min(9);
        value = value.append(usize::from(step), 0);
        missing -= step;
    }
    Ok(if negative { value.negate() } else { value })
}

/// A packed value as the server's text, as JSON documents print it.
pub(crate) fn print(bytes: &[u8], precision: u8, scale: u8, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if precision > PRECISION_IN_JSON_MAX {
        return Err(ValueError::Malformed("decimal"));
    }
    let value: i256 = unpack(bytes, precision, scale)?;
    let text = value.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    if digits.len() > usize::from(PRECISION_MAX) {
        return Err(ValueError::Malformed("decimal"));
    }
    let scale = usize::from(scale);
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// The server's packing, written anew from its description: digits as text in groups.
    fn pack(negative: bool, whole: &str, fraction: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |digits: &str| {
            let value: u32 = digits.parse().unwrap();
            bytes.extend_from_slice(&value.to_be_bytes()[4 - GROUP_BYTES[digits.len()]..]);
        };
        let (head, rest) = whole.split_at(whole.len() % 9);
        if !head.is_empty() {
            put(head);
        }
        for at in (0..rest.len()).step_by(9) {
            put(&rest[at..at + 9]);
        }
        for at in (0..fraction.len()).step_by(9) {
            put(&fraction[at..fraction.len().min(at + 9)]);
        }
        bytes[0] ^= 0x80;
        if negative {
            bytes.iter_mut().for_each(|byte| *byte ^= 0xff);
        }
        bytes
    }

    #[test]
    fn packed_and_text_give_the_same_number() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..20_000 {
            let precision = rng.random_range(1..=65u8);
            let scale = rng.random_range(0..=precision.min(30));
            let mut digits =
                |count: u8| -> String { (0..count).map(|_| char::from(b'0' + rng.random_range(0..10u8))).collect() };
            let (whole, fraction) = (digits(precision - scale), digits(scale));
            let zero = whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0');
            let negative = rng.random::<bool>() && !zero;
            let bytes = pack(negative, &whole, &fraction);
            let sign = if negative { "-" } else { "" };
            let shown = format!("{sign}{whole}.{fraction}");
            let big: i256 = packed(&bytes, precision, scale).unwrap();
            assert_eq!(big.to_string(), i256::from_string(&format!("{sign}{whole}{fraction}")).unwrap().to_string());
            assert_eq!(text::<i256>(shown.as_bytes(), scale), Ok(big));
            if precision <= 38 {
                let small: i128 = packed(&bytes, precision, scale).unwrap();
                assert_eq!(i256::from_i128(small), big);
                assert_eq!(text::<i128>(shown.as_bytes(), scale), Ok(small));
            }
            let mut printed = Vec::new();
            print(&bytes, precision, scale, &mut printed).unwrap();
            assert_eq!(text::<i256>(&printed, scale), Ok(big));
        }
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        assert_eq!(packed::<i128>(&[0xff, 0xff], 3, 0), Err(ValueError::Malformed("decimal")));
        assert_eq!(packed::<i128>(&[0x80], 3, 0), Err(ValueError::Malformed("decimal")));
        for bad in ["", "1.2.3", "1e5", "1.234", "+1"] {
            assert!(text::<i128>(bad.as_bytes(), 2).is_err(), "{bad}");
        }
        assert_eq!(text::<i128>(b"5", 2), Ok(500));
    }
}
