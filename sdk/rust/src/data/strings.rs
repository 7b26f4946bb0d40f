//! Views of values that are not plain numbers: bits, texts, byte strings.

use bytemuck::cast_slice;

/// A packed list of bits, least significant first.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Bits<'a> {
    /// The first `length` bits of `bytes`, which must hold as many.
    pub(super) fn new(bytes: &'a [u8], length: usize) -> Self {
        debug_assert!(bytes.len() * 8 >= length);
        Self { bytes, length }
    }

    /// The bit at a place. Panics beyond the end, as a slice does.
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.length, "bit {index} of {}", self.length);
        self.bytes[index / 8] & (1 << (index % 8)) != 0
    }

    /// How many bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Values of varying length, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct ByteStrings<'a> {
    ends: Ends<'a>,
    data: &'a [u8],
}

impl<'a> ByteStrings<'a> {
    /// `offsets` are as many i32 as there are values, and one more, checked to lie within `data`.
    pub(super) fn new(offsets: &'a [u8], data: &'a [u8]) -> Self {
        Self { ends: Ends(cast_slice(offsets)), data }
    }

    /// The value at a row. Panics beyond the end, as a slice does.
    pub fn get(&self, row: usize) -> &'a [u8] {
        &self.data[self.ends.range(row)]
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Texts, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    ends: Ends<'a>,
    data: &'a str,
}

impl<'a> Texts<'a> {
    /// As [`ByteStrings::new`]; every offset stands between characters.
    pub(super) fn new(offsets: &'a [u8], data: &'a str) -> Self {
        Self { ends: Ends(cast_slice(offsets)), data }
    }

    /// The text at a row. Panics beyond the end, as a slice does.
    pub fn get(&self, row: usize) -> &'a str {
        &self.data[self.ends.range(row)]
    }

    /// How many texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Ends<'a>(&'a [i32]);

impl Ends<'_> {
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let place = |offset: i32| usize::try_from(offset).expect("offsets were checked when the column was made");
        place(self.0[row])..place(self.0[row + 1])
    }

    fn len(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}
