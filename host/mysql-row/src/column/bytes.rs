//! Takes bytes off the front of a value, never beyond its end.

use super::ValueError;

/// The next `N` bytes.
#[inline]
pub(crate) fn fixed<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], ValueError> {
    let (value, rest) = bytes.split_first_chunk::<N>().ok_or(ValueError::Short)?;
    *bytes = rest;
    Ok(*value)
}

/// The next `length` bytes.
#[inline]
pub(crate) fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], ValueError> {
    let (value, rest) = bytes.split_at_checked(length).ok_or(ValueError::Short)?;
    *bytes = rest;
    Ok(value)
}

/// A number in one byte, or behind a mark in two, three or eight.
#[inline]
pub(crate) fn length_coded_number(bytes: &mut &[u8]) -> Result<u64, ValueError> {
    let [first] = fixed(bytes)?;
    Ok(match first {
        0..=250 => first.into(),
        252 => u16::from_le_bytes(fixed(bytes)?).into(),
        253 => {
            let [low, middle, high] = fixed(bytes)?;
            u32::from_le_bytes([low, middle, high, 0]).into()
        }
        254 => u64::from_le_bytes(fixed(bytes)?),
        _ => return Err(ValueError::Malformed("length")),
    })
}

/// Bytes behind their length.
#[inline]
pub(crate) fn length_coded<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], ValueError> {
    let length = usize::try_from(length_coded_number(bytes)?).map_err(|_| ValueError::TooLarge)?;
    take(bytes, length)
}
