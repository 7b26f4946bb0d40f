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
