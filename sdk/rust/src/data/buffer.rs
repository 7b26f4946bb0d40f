//! Bytes of a column, aligned so that they can be seen as numbers.

use bytemuck::{AnyBitPattern, cast_slice, cast_slice_mut, try_cast_slice};

/// Bytes that came from the host. They are kept as they came where their address fits the values in them, which is
/// what allocators do in practice; else they are copied once.
#[derive(Clone, Debug)]
pub struct Buffer(Bytes);

#[derive(Clone, Debug)]
enum Bytes {
    AsCame(Vec<u8>),
    Copied { words: Vec<u128>, length: usize },
}

impl Buffer {
    /// Takes the bytes; copies them only if their address is no multiple of `alignment` (at most 16).
    pub fn aligned(bytes: Vec<u8>, alignment: usize) -> Self {
        if bytes.as_ptr().align_offset(alignment.max(1)) == 0 {
            return Self(Bytes::AsCame(bytes));
        }
        let length = bytes.len();
        let mut words = vec![0_u128; length.div_ceil(size_of::<u128>())];
        let (used, _) = cast_slice_mut::<u128, u8>(&mut words).split_at_mut(length);
        used.copy_from_slice(&bytes);
        Self(Bytes::Copied { words, length })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Bytes::AsCame(bytes) => bytes,
            Bytes::Copied { words, length } => cast_slice(words).get(..*length).expect("the copy holds all bytes"),
        }
    }

    /// The bytes seen as numbers, without a copy.
    pub(super) fn values<T: AnyBitPattern>(&self) -> &[T] {
        try_cast_slice(self.as_slice()).expect("alignment and length were checked when the column was made")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Bytes::AsCame(bytes) => bytes.len(),
            Bytes::Copied { length, .. } => *length,
        }
    }

    /// The bytes themselves, copied only if they had been copied before.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Bytes::AsCame(bytes) => bytes,
            Bytes::Copied { .. } => self.as_slice().to_vec(),
        }
    }

    /// The bytes as Arrow's buffer, with no copy.
    #[cfg(feature = "arrow")]
    pub fn into_arrow(self) -> arrow_buffer::Buffer {
        match self.0 {
            Bytes::AsCame(bytes) => arrow_buffer::Buffer::from_vec(bytes),
            Bytes::Copied { words, length } => arrow_buffer::Buffer::from_vec(words).slice_with_length(0, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_a_fitting_address_are_kept_and_others_copied_once() {
        let words: Vec<u8> = (0..64).collect();
        let address = words.as_ptr();
        let kept = Buffer::aligned(words, 1);
        assert_eq!(kept.as_slice().as_ptr(), address);

        // A vector's address cannot be chosen, so the alignment is: one that this address does not have.
        let bytes: Vec<u8> = (0..64).collect();
        let too_much = 1_usize << (bytes.as_ptr().addr().trailing_zeros() + 1);
        let copied = Buffer::aligned(bytes, too_much);
        assert!(matches!(copied.0, Bytes::Copied { .. }));
        assert_eq!(copied.as_slice(), (0..64).collect::<Vec<u8>>());
        assert_eq!(copied.values::<u128>().len(), 4);
        assert_eq!(copied.len(), 64);
        assert_eq!(copied.into_vec(), (0..64).collect::<Vec<u8>>());
    }

    #[test]
    fn a_copy_of_an_odd_length_keeps_its_length() {
        let bytes: Vec<u8> = (0..21).collect();
        let too_much = 1_usize << (bytes.as_ptr().addr().trailing_zeros() + 1);
        assert_eq!(Buffer::aligned(bytes, too_much).as_slice(), (0..21).collect::<Vec<u8>>());
    }
}
