//! Columns made value by value, as they go back to the host.

use bytemuck::NoUninit;

use super::RawColumn;

/// A bit a row, set where there is a value.
#[derive(Clone, Debug, Default)]
struct Validity {
    bits: Vec<u8>,
    rows: usize,
    null_count: u32,
}

/// Makes a column of texts, bytes, JSON or geometry.
#[derive(Clone, Debug)]
pub struct StringsBuilder {
    validity: Validity,
    offsets: Vec<u8>,
    data: Vec<u8>,
}

/// Makes a column of values of a fixed width: numbers, dates and times. For decimals, `T` is `i128` or `[u8; 32]`.
#[derive(Clone, Debug)]
pub struct ValuesBuilder<T> {
    validity: Validity,
    values: Vec<T>,
}

impl Validity {
    fn push(&mut self, is_there: bool) {
        if self.rows.is_multiple_of(8) {
            self.bits.push(0);
        }
        if let Some(last) = self.bits.last_mut() {
            *last |= u8::from(is_there) << (self.rows % 8);
        }
        self.rows += 1;
        self.null_count += u32::from(!is_there);
    }

    /// The bitmap, absent where every row has a value.
    fn finish(self) -> (u32, Vec<u8>) {
        if self.null_count == 0 { (0, Vec::new()) } else { (self.null_count, self.bits) }
    }
}

impl StringsBuilder {
    /// An empty column.
    pub fn new() -> Self {
        Self { validity: Validity::default(), offsets: 0_i32.to_le_bytes().into(), data: Vec::new() }
    }

    /// Adds a value.
    ///
    /// # Panics
    /// Beyond 2 GiB in all; the host's batches are far smaller.
    pub fn push(&mut self, value: impl AsRef<[u8]>) {
        self.data.extend_from_slice(value.as_ref());
        self.end(true);
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.end(false);
    }

    /// The column.
    pub fn finish(self) -> RawColumn {
        let (null_count, validity) = self.validity.finish();
        RawColumn { null_count, validity, offsets: self.offsets, data: self.data }
    }

    fn end(&mut self, is_there: bool) {
        let end = i32::try_from(self.data.len()).expect("a column holds less than 2 GiB");
        self.offsets.extend_from_slice(&end.to_le_bytes());
        self.validity.push(is_there);
    }
}

impl Default for StringsBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: NoUninit + Default> ValuesBuilder<T> {
    /// An empty column.
    pub fn new() -> Self {
        Self { validity: Validity::default(), values: Vec::new() }
    }

    /// Adds a value.
    pub fn push(&mut self, value: T) {
        self.values.push(value);
        self.validity.push(true);
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.values.push(T::default());
        self.validity.push(false);
    }

    /// The column.
    pub fn finish(self) -> RawColumn {
        let (null_count, validity) = self.validity.finish();
        let data = bytemuck::cast_slice(&self.values).to_vec();
        RawColumn { null_count, validity, offsets: Vec::new(), data }
    }
}

impl<T: NoUninit + Default> Default for ValuesBuilder<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Bits as a bitmap, least significant first.
#[cfg(any(target_arch = "wasm32", test))]
pub(crate) fn bitmap(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |all, (at, &bit)| all | u8::from(bit) << at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, LogicalType};

    #[test]
    fn what_is_built_reads_back() {
        let mut texts = StringsBuilder::new();
        let mut numbers = ValuesBuilder::new();
        for row in 0..10 {
            if row == 8 {
                texts.push_null();
                numbers.push_null();
            } else {
                texts.push("ab".repeat(row));
                numbers.push(row as i64);
            }
        }
        let texts = Column::new(LogicalType::Text { max: None }, 10, texts.finish()).unwrap();
        let numbers = Column::new(LogicalType::Int64, 10, numbers.finish()).unwrap();
        assert_eq!((texts.as_text().unwrap().get(3), numbers.as_i64().unwrap()[9]), ("ababab", 9));
        assert!((0..10).all(|row| texts.is_null(row) == (row == 8) && numbers.is_null(row) == (row == 8)));
        assert_eq!(bitmap(&[true, false, true, true, false, false, false, false, true]), [0b1101, 1]);
    }
}
