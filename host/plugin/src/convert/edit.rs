//! What comes back from a transform: bitmaps, ops and columns, checked before anything relies on them.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use cdchost_model::{Edit, Field, LogicalType, Replacement, TableSchema};

use crate::bindings::v0_1::cdchost::plugin::types::ColumnResult;
use crate::bindings::v0_1::exports::cdchost::plugin::transform as wit;

/// An edit of a batch of `rows` rows, whose computed columns are `fields`. An error says what the plugin does, as in
/// "it ...".
pub(crate) fn edit(told: wit::Edit, fields: &[&Field], rows: usize) -> Result<Edit, String> {
    let wit::Edit { keep, ops, computed } = told;
    if computed.len() != fields.len() {
        return Err(format!("gives {} computed columns, planned were {}", computed.len(), fields.len()));
    }
    let keep = keep.map(|bits| bitmap(bits, rows, "the keep bitmap")).transpose()?;
    let computed = computed.into_iter().zip(fields).map(|(column, field)| array(column, field, rows));
    Ok(Edit { keep, ops: ops.map(ScalarBuffer::from), computed: computed.collect::<Result<_, _>>()? })
}

/// Other rows, with the columns of `output`.
pub(crate) fn replacement(told: wit::Replacement, output: &TableSchema) -> Result<Replacement, String> {
    let wit::Replacement { rows, ops, columns, origins } = told;
    let rows = rows as usize;
    if origins.len() != rows {
        return Err(format!("gives {rows} rows and the origins of {}", origins.len()));
    }
    if columns.len() != output.fields.len() {
        return Err(format!("gives {} columns, planned were {}", columns.len(), output.fields.len()));
    }
    let columns = columns.into_iter().zip(&output.fields).map(|(column, field)| array(column, field, rows));
    Ok(Replacement { ops: ops.into(), columns: columns.collect::<Result<_, _>>()?, origins })
}

/// One column as an array of its field's type.
fn array(column: ColumnResult, field: &Field, rows: usize) -> Result<ArrayRef, String> {
    let ColumnResult { null_count, validity, offsets, data } = column;
    let of = |what: &str| format!("{what} of column {}", field.name);
    let nulls = nulls(null_count, validity, rows, &of("the validity"))?;
    let variable = matches!(
        field.ty,
        LogicalType::Text { .. } | LogicalType::Json | LogicalType::Bytes { .. } | LogicalType::Geometry
    );
    if !variable && !offsets.is_empty() {
        return Err(format!("gives offsets for column {}, whose values have none", field.name));
    }
    let values = Values { rows, nulls, data, what: of("the data") };
    Ok(match field.ty {
        LogicalType::Boolean => {
            let bits = bitmap(values.data, rows, &values.what)?;
            Arc::new(BooleanArray::new(bits, values.nulls))
        }
        LogicalType::Int8 => values.primitive::<Int8Type>(field)?,
        LogicalType::Int16 => values.primitive::<Int16Type>(field)?,
        LogicalType::Int32 => values.primitive::<Int32Type>(field)?,
        LogicalType::Int64 => values.primitive::<Int64Type>(field)?,
        LogicalType::Uint8 => values.primitive::<UInt8Type>(field)?,
        LogicalType::Uint16 => values.primitive::<UInt16Type>(field)?,
        LogicalType::Uint32 => values.primitive::<UInt32Type>(field)?,
        LogicalType::Uint64 => values.primitive::<UInt64Type>(field)?,
        LogicalType::Float32 => values.primitive::<Float32Type>(field)?,
        LogicalType::Float64 => values.primitive::<Float64Type>(field)?,
        LogicalType::Decimal { precision, .. } if precision <= 38 => {
            let array = values.numbers::<Decimal128Type>(field)?;
            array.validate_decimal_precision(precision).map_err(|_| too_many_digits(field))?;
            Arc::new(array)
        }
        LogicalType::Decimal { precision, .. } => {
            let array = values.numbers::<Decimal256Type>(field)?;
            array.validate_decimal_precision(precision).map_err(|_| too_many_digits(field))?;
            Arc::new(array)
        }
        LogicalType::Date => values.primitive::<Date32Type>(field)?,
        LogicalType::Time { .. } => values.primitive::<DurationMicrosecondType>(field)?,
        LogicalType::Timestamp { .. } | LogicalType::TimestampUtc { .. } => {
            values.primitive::<TimestampMicrosecondType>(field)?
        }
        LogicalType::Text { .. } | LogicalType::Json => {
            let offsets = checked_offsets(&offsets, rows, values.data.len(), &of("the offsets"))?;
            let texts = StringArray::try_new(offsets, values.data.into(), values.nulls);
            Arc::new(texts.map_err(|_| format!("gives texts in column {} that are not UTF-8", field.name))?)
        }
        LogicalType::Bytes { .. } | LogicalType::Geometry => {
            let offsets = checked_offsets(&offsets, rows, values.data.len(), &of("the offsets"))?;
            let bytes = BinaryArray::try_new(offsets, values.data.into(), values.nulls);
            Arc::new(bytes.map_err(|error| format!("gives a column {} that does not fit: {error}", field.name))?)
        }
    })
}

/// A column's values, whatever their type.
struct Values {
    rows: usize,
    nulls: Option<NullBuffer>,
    data: Vec<u8>,
    what: String,
}

impl Values {
    fn primitive<T: ArrowPrimitiveType>(self, field: &Field) -> Result<ArrayRef, String> {
        Ok(Arc::new(self.numbers::<T>(field)?))
    }

    fn numbers<T: ArrowPrimitiveType>(self, field: &Field) -> Result<PrimitiveArray<T>, String> {
        check_length(self.data.len(), self.rows * size_of::<T::Native>(), &self.what)?;
        // A guest's bytes begin at any address.
        let aligned = Buffer::from(self.data.as_slice());
        let values = ScalarBuffer::new(aligned, 0, self.rows);
        Ok(PrimitiveArray::new(values, self.nulls).with_data_type(field.ty.arrow()))
    }
}

fn too_many_digits(field: &Field) -> String {
    format!("gives a number in column {} that has more digits than {}", field.name, field.ty)
}

fn nulls(null_count: u32, validity: Vec<u8>, rows: usize, what: &str) -> Result<Option<NullBuffer>, String> {
    if validity.is_empty() && null_count == 0 {
        return Ok(None);
    }
    let nulls = NullBuffer::new(bitmap(validity, rows, what)?);
    if nulls.null_count() != null_count as usize {
        return Err(format!("says {null_count} NULLs, {what} says {}", nulls.null_count()));
    }
    Ok(Some(nulls))
}

fn bitmap(bits: Vec<u8>, rows: usize, what: &str) -> Result<BooleanBuffer, String> {
    check_length(bits.len(), rows.div_ceil(8), what)?;
    Ok(BooleanBuffer::new(bits.into(), 0, rows))
}

/// Offsets that rise from 0 and stay inside the data.
fn checked_offsets(bytes: &[u8], rows: usize, data: usize, what: &str) -> Result<OffsetBuffer<i32>, String> {
    check_length(bytes.len(), (rows + 1) * size_of::<i32>(), what)?;
    let (words, _) = bytes.as_chunks::<4>();
    let offsets: Vec<i32> = words.iter().map(|word| i32::from_le_bytes(*word)).collect();
    let rising = offsets.first() == Some(&0) && offsets.is_sorted();
    let inside = offsets.last().is_some_and(|&last| usize::try_from(last).is_ok_and(|last| last <= data));
    if rising && inside {
        Ok(OffsetBuffer::new(offsets.into()))
    } else {
        Err(format!("gives {what} that lead nowhere"))
    }
}

fn check_length(found: usize, expected: usize, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("gives {found} bytes for {what}, it must be {expected}")) }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;

    use super::*;

    fn field(ty: LogicalType) -> Field {
        Field { name: "c".into(), ty, nullable: true, native_type: String::new(), default_value: None, comment: None }
    }

    fn column(null_count: u32, validity: &[u8], offsets: &[i32], data: &[u8]) -> ColumnResult {
        let offsets = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        ColumnResult { null_count, validity: validity.into(), offsets, data: data.into() }
    }

    #[test]
    fn columns_arrive_as_their_type_has_them() {
        let text = field(LogicalType::Text { max: None });
        let texts = array(column(1, &[0b101], &[0, 1, 1, 3], "aéé".as_bytes().get(..3).unwrap()), &text, 3).unwrap();
        assert_eq!((texts.len(), texts.null_count()), (3, 1));
        for (ty, bytes) in [
            (LogicalType::Int64, 16),
            (LogicalType::Decimal { precision: 10, scale: 2 }, 32),
            (LogicalType::Decimal { precision: 60, scale: 2 }, 64),
            (LogicalType::TimestampUtc { fraction: 3 }, 16),
            (LogicalType::Time { fraction: 3 }, 16),
            (LogicalType::Date, 8),
            (LogicalType::Boolean, 1),
        ] {
            let made = array(column(0, &[], &[], &vec![0; bytes]), &field(ty.clone()), 2).unwrap();
            assert_eq!(*made.data_type(), ty.arrow());
        }
    }

    #[test]
    fn lies_are_told_in_words() {
        let text = LogicalType::Text { max: None };
        let digits = LogicalType::Decimal { precision: 1, scale: 0 };
        let mut hundred = vec![0; 32];
        hundred[0] = 100;
        for (ty, column, words) in [
            (LogicalType::Int32, column(0, &[], &[], &[0; 7]), "gives 7 bytes for the data of column c, it must be 8"),
            (
                LogicalType::Int32,
                column(1, &[], &[], &[0; 8]),
                "gives 0 bytes for the validity of column c, it must be 1",
            ),
            (LogicalType::Int32, column(2, &[1], &[], &[0; 8]), "says 2 NULLs, the validity of column c says 1"),
            (LogicalType::Int32, column(0, &[], &[0], &[0; 8]), "gives offsets for column c, whose values have none"),
            (text.clone(), column(0, &[], &[0, 1], b"ab"), "gives 8 bytes for the offsets of column c, it must be 12"),
            (text.clone(), column(0, &[], &[0, 2, 1], b"ab"), "gives the offsets of column c that lead nowhere"),
            (text.clone(), column(0, &[], &[0, 1, 3], b"ab"), "gives the offsets of column c that lead nowhere"),
            (text.clone(), column(0, &[], &[-1, 0, 2], b"ab"), "gives the offsets of column c that lead nowhere"),
            (text, column(0, &[], &[0, 1, 2], b"a\xff"), "gives texts in column c that are not UTF-8"),
            (
                digits,
                column(0, &[], &[], &hundred),
                "gives a number in column c that has more digits than decimal(1,0)",
            ),
        ] {
            assert_eq!(array(column, &field(ty), 2).unwrap_err(), words);
        }
    }
}
