//! One Arrow array as the contract's three byte lists: little-endian, from the first row, nothing copied that lies so.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use crate::bindings::v0_1::cdchost::plugin::types::ColumnParam;

const _: () = assert!(cfg!(target_endian = "little"), "buffers are handed over as they lie in memory");

/// The buffers of one column; they share the array's memory where they can.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostColumn {
    null_count: u32,
    validity: Buffer,
    offsets: Buffer,
    data: Buffer,
}

impl HostColumn {
    /// The buffers of an array of one of the types of `LogicalType::arrow`; none for any other.
    pub(crate) fn of(array: &ArrayRef) -> Option<Self> {
        let column = match array.data_type() {
            DataType::Boolean => Self { data: bits(array.as_boolean().values()), ..Self::default() },
            DataType::Utf8 | DataType::Binary => Self::variable(array)?,
            _ => Self::fixed(array)?,
        };
        Some(column.with_nulls(array.nulls()))
    }

    /// A column without nulls whose values lie one after the other in `data`.
    pub(crate) fn plain(data: Buffer) -> Self {
        Self { data, ..Self::default() }
    }

    /// The contract's view.
    pub(crate) fn wit(&self) -> ColumnParam<'_> {
        ColumnParam { null_count: self.null_count, validity: &self.validity, offsets: &self.offsets, data: &self.data }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.validity.len() + self.offsets.len() + self.data.len()
    }

    fn fixed(array: &ArrayRef) -> Option<Self> {
        let width = array.data_type().primitive_width()?;
        let data = array.to_data();
        let values = data.buffers().first()?;
        Some(Self::plain(values.slice_with_length(data.offset() * width, data.len() * width)))
    }

    fn variable(array: &ArrayRef) -> Option<Self> {
        let data = array.to_data();
        let [offsets, values] = data.buffers() else { return None };
        let offsets = offsets.typed_data::<i32>().get(data.offset()..=data.offset() + data.len())?;
        let (&first, &last) = (offsets.first()?, offsets.last()?);
        let (start, end) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        let shifted = if first == 0 {
            let width = size_of::<i32>();
            data.buffers().first()?.slice_with_length(data.offset() * width, (data.len() + 1) * width)
        } else {
            offsets.iter().map(|offset| offset - first).collect::<Vec<i32>>().into()
        };
        Some(Self { offsets: shifted, data: values.slice_with_length(start, end - start), ..Self::default() })
    }

    fn with_nulls(mut self, nulls: Option<&NullBuffer>) -> Self {
        if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
            // A batch has fewer than 2^32 rows.
            self.null_count = u32::try_from(nulls.null_count()).unwrap_or(u32::MAX);
            self.validity = bits(nulls.inner());
        }
        self
    }
}

/// A bitmap that begins with its first bit and has zeros after its last.
fn bits(buffer: &BooleanBuffer) -> Buffer {
    let bytes = buffer.sliced().slice_with_length(0, buffer.len().div_ceil(8));
    let used = buffer.len() % 8;
    match bytes.last() {
        Some(last) if used > 0 && last >> used != 0 => {
            let mut bytes = bytes.to_vec();
            if let Some(last) = bytes.last_mut() {
                *last &= (1 << used) - 1;
            }
            bytes.into()
        }
        _ => bytes,
    }
}

/// A text column made row by row; a row may be null.
pub(crate) struct TextColumn {
    validity: arrow_buffer::BooleanBufferBuilder,
    offsets: Vec<i32>,
    data: Vec<u8>,
    null_count: u32,
}

impl TextColumn {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let validity = arrow_buffer::BooleanBufferBuilder::new(rows);
        Self { validity, offsets, data: Vec::new(), null_count: 0 }
    }

    /// Adds `rows` rows of the same text. False where the column would grow beyond its 2 GiB.
    pub(crate) fn push(&mut self, rows: u32, text: Option<&str>) -> bool {
        let bytes = text.unwrap_or_default().as_bytes();
        let grown = self.data.len() + bytes.len() * rows as usize;
        let (Ok(start), Ok(_)) = (i32::try_from(self.data.len()), i32::try_from(grown)) else { return false };
        // Both fit: the last offset is the length just checked.
        let width = bytes.len() as i32;
        self.offsets.extend((1..=rows as i32).map(|row| start + row * width));
        self.validity.append_n(rows as usize, text.is_some());
        self.null_count += if text.is_none() { rows } else { 0 };
        self.data.reserve(grown - self.data.len());
        for _ in 0..if bytes.is_empty() { 0 } else { rows } {
            self.data.extend_from_slice(bytes);
        }
        true
    }

    pub(crate) fn finish(mut self) -> HostColumn {
        let validity = if self.null_count == 0 { Buffer::default() } else { bits(&self.validity.finish()) };
        HostColumn { null_count: self.null_count, validity, offsets: self.offsets.into(), data: self.data.into() }
    }
}

#[cfg(test)]
mod tests;
