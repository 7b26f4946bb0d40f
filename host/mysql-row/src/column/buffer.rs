//! The values of one column, appended one by one, turned into an Arrow array all at once.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BinaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::DataType;

use super::ValueError;

/// A growing column. Rows may be taken back from its end until it is finished.
#[derive(Debug)]
pub struct Column {
    values: Values,
    /// Rows that are NULL, ascending; a list, because most values are not.
    nulls: Vec<u32>,
    data_type: DataType,
}

#[derive(Debug)]
enum Values {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    I256(Vec<i256>),
    /// Ends of the values among all bytes; begins with 0, so it is one longer than the column.
    Variable(Vec<i32>, Vec<u8>),
}

/// Does the same with whichever vector holds fixed-width values.
macro_rules! fixed {
    ($values:expr, $vector:ident => $fixed:expr, ($ends:ident, $bytes:ident) => $variable:expr) => {
        match $values {
            Values::I8($vector) => $fixed,
            Values::I16($vector) => $fixed,
            Values::I32($vector) => $fixed,
            Values::I64($vector) => $fixed,
            Values::U8($vector) => $fixed,
            Values::U16($vector) => $fixed,
            Values::U32($vector) => $fixed,
            Values::U64($vector) => $fixed,
            Values::F32($vector) => $fixed,
            Values::F64($vector) => $fixed,
            Values::I128($vector) => $fixed,
            Values::I256($vector) => $fixed,
            Values::Variable($ends, $bytes) => $variable,
        }
    };
}

/// One typed append each. A plan is compiled for its columns, so the types agree.
macro_rules! pushes {
    ($($name:ident $variant:ident $type:ty;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(&mut self, value: $type) {
                let Values::$variant(values) = &mut self.values else { wrong_type(stringify!($name)) };
                values.push(value);
            }
        )*
    };
}

#[cold]
fn wrong_type(what: &str) -> ! {
    unreachable!("{what} on a column of another type: plans are compiled for their columns")
}

impl Column {
    /// An empty column whose array will be of this type.
    pub(crate) fn new(data_type: DataType) -> Self {
        let values = match &data_type {
            DataType::Int8 => Values::I8(Vec::new()),
            DataType::Int16 => Values::I16(Vec::new()),
            DataType::Int32 | DataType::Date32 => Values::I32(Vec::new()),
            DataType::Int64 | DataType::Duration(_) | DataType::Timestamp(..) => Values::I64(Vec::new()),
            DataType::UInt8 => Values::U8(Vec::new()),
            DataType::UInt16 => Values::U16(Vec::new()),
            DataType::UInt32 => Values::U32(Vec::new()),
            DataType::UInt64 => Values::U64(Vec::new()),
            DataType::Float32 => Values::F32(Vec::new()),
            DataType::Float64 => Values::F64(Vec::new()),
            DataType::Decimal128(..) => Values::I128(Vec::new()),
            DataType::Decimal256(..) => Values::I256(Vec::new()),
            DataType::Utf8 | DataType::Binary => Values::Variable(vec![0], Vec::new()),
            other => unreachable!("no column kind has the type {other}"),
        };
        Self { values, nulls: Vec::new(), data_type }
    }

    pushes! {
        push_i8 I8 i8;
        push_i16 I16 i16;
        push_i32 I32 i32;
        push_i64 I64 i64;
        push_u8 U8 u8;
        push_u16 U16 u16;
        push_u32 U32 u32;
        push_u64 U64 u64;
        push_f32 F32 f32;
        push_f64 F64 f64;
        push_i128 I128 i128;
        push_i256 I256 i256;
    }

    /// Appends text or bytes.
    #[inline]
    pub(crate) fn push_bytes(&mut self, value: &[u8]) -> Result<(), ValueError> {
        let Values::Variable(ends, bytes) = &mut self.values else { wrong_type("push_bytes") };
        let end = i32::try_from(bytes.len() + value.len()).map_err(|_| ValueError::TooLarge)?;
        bytes.extend_from_slice(value);
        ends.push(end);
        Ok(())
    }

    /// Appends what `write` appends to the bytes; takes it back where that fails.
    pub(crate) fn push_with(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        let Values::Variable(ends, bytes) = &mut self.values else { wrong_type("push_with") };
        let start = bytes.len();
        let written = write(bytes).and_then(|()| i32::try_from(bytes.len()).map_err(|_| ValueError::TooLarge));
        match written {
            Ok(end) => ends.push(end),
            Err(error) => {
                bytes.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends NULL, where it may stand.
    #[inline]
    pub(crate) fn push_null(&mut self, nullable: bool) -> Result<(), ValueError> {
        if !nullable {
            return Err(ValueError::Null);
        }
        let row = u32::try_from(self.len()).expect("a batch has less than 2^32 rows");
        self.nulls.push(row);
        fixed!(&mut self.values, values => values.push(Default::default()), (ends, bytes) => {
            ends.push(i32::try_from(bytes.len()).expect("every push keeps the bytes below 2 GiB"));
        });
        Ok(())
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        fixed!(&self.values, values => values.len(), (ends, _bytes) => ends.len() - 1)
    }

    /// Takes back all from row `length` on.
    pub fn truncate(&mut self, length: usize) {
        while self.nulls.last().is_some_and(|&row| row as usize >= length) {
            self.nulls.pop();
        }
        fixed!(&mut self.values, values => values.truncate(length), (ends, bytes) => {
            ends.truncate(length + 1);
            bytes.truncate(ends.last().map_or(0, |&end| end as usize)); // ends are never negative
        });
    }

    /// Appends a row's value as part of a key, in the layout of `cdchost_model::KeyEncoder`.
    pub fn encode_key(&self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.binary_search_by_key(&row, |&null| null as usize).is_ok() {
            out.push(0);
            return;
        }
        out.push(1);
        match &self.values {
            Values::I8(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::I16(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::I32(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::I64(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::U8(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::U16(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::U32(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::U64(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::F32(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::F64(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::I128(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::I256(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::Variable(ends, bytes) => {
                let (start, end) = (ends[row] as usize, ends[row + 1] as usize); // ends are never negative
                out.extend_from_slice(&((end - start) as u32).to_le_bytes()); // a value is below 2 GiB
                out.extend_from_slice(&bytes[start..end]);
            }
        }
    }

    /// The array of all values; the column is empty afterwards, with room for as many. Text is checked here, all at
    /// once; the error names the row.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, (usize, ValueError)> {
        let nulls = self.take_nulls();
        match &mut self.values {
            Values::I8(values) => Ok(primitive::<Int8Type>(values, nulls, &self.data_type)),
            Values::I16(values) => Ok(primitive::<Int16Type>(values, nulls, &self.data_type)),
            Values::I32(values) if self.data_type == DataType::Date32 => {
                Ok(primitive::<Date32Type>(values, nulls, &self.data_type))
            }
            Values::I32(values) => Ok(primitive::<Int32Type>(values, nulls, &self.data_type)),
            Values::I64(values) => Ok(match self.data_type {
                DataType::Duration(_) => primitive::<DurationMicrosecondType>(values, nulls, &self.data_type),
                DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(values, nulls, &self.data_type),
                _ => primitive::<Int64Type>(values, nulls, &self.data_type),
            }),
            Values::U8(values) => Ok(primitive::<UInt8Type>(values, nulls, &self.data_type)),
            Values::U16(values) => Ok(primitive::<UInt16Type>(values, nulls, &self.data_type)),
            Values::U32(values) => Ok(primitive::<UInt32Type>(values, nulls, &self.data_type)),
            Values::U64(values) => Ok(primitive::<UInt64Type>(values, nulls, &self.data_type)),
            Values::F32(values) => Ok(primitive::<Float32Type>(values, nulls, &self.data_type)),
            Values::F64(values) => Ok(primitive::<Float64Type>(values, nulls, &self.data_type)),
            Values::I128(values) => Ok(primitive::<Decimal128Type>(values, nulls, &self.data_type)),
            Values::I256(values) => Ok(primitive::<Decimal256Type>(values, nulls, &self.data_type)),
            Values::Variable(ends, bytes) => variable(ends, bytes, nulls, &self.data_type),
        }
    }

    fn take_nulls(&mut self) -> Option<NullBuffer> {
        if self.nulls.is_empty() {
            return None;
        }
        let length = self.len();
        let mut bits = vec![0xff_u8; length.div_ceil(8)];
        for &row in &self.nulls {
            bits[row as usize / 8] &= !(1 << (row % 8));
        }
        self.nulls.clear();
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, length)))
    }
}

/// The vector itself, leaving an empty one with as much room: a table's batches are of like sizes.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = values.len();
    std::mem::replace(values, Vec::with_capacity(room))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    let values = ScalarBuffer::from(take(values));
    Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(data_type.clone()))
}

fn variable(
    ends: &mut Vec<i32>,
    bytes: &mut Vec<u8>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef, (usize, ValueError)> {
    let offsets = take(ends);
    ends.push(0);
    let bytes = Buffer::from_vec(take(bytes));
    if *data_type == DataType::Binary {
        let offsets = OffsetBuffer::new(offsets.into());
        return Ok(Arc::new(BinaryArray::new(offsets, bytes, nulls)));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    match StringArray::try_new(offsets.clone(), bytes.clone(), nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(_) => {
            let bad = offsets.windows(2).position(|pair| {
                let (start, end) = (pair[0] as usize, pair[1] as usize); // offsets are never negative
                std::str::from_utf8(&bytes[start..end]).is_err()
            });
            Err((bad.unwrap_or(0), ValueError::Text))
        }
    }
}
