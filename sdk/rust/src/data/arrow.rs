//! Columns as arrow-rs arrays, for sinks that use its libraries.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions, types};
use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::{Batch, Column, LogicalType};
use crate::{PluginError, Result};

impl LogicalType {
    /// The Arrow type that columns of this type have.
    pub fn arrow(&self) -> DataType {
        match *self {
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Uint8 => DataType::UInt8,
            Self::Uint16 => DataType::UInt16,
            Self::Uint32 => DataType::UInt32,
            Self::Uint64 => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Decimal { precision, scale } if precision <= 38 => DataType::Decimal128(precision, scale),
            Self::Decimal { precision, scale } => DataType::Decimal256(precision, scale),
            Self::Text { .. } | Self::Json => DataType::Utf8,
            Self::Bytes { .. } | Self::Geometry => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
            Self::Timestamp { .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampUtc { .. } => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

impl Column {
    /// The column as an array; its buffers are handed on, not copied.
    pub fn into_arrow(self) -> Result<ArrayRef> {
        let (ty, rows, has_nulls) = (self.ty().clone(), self.rows(), self.null_count() > 0);
        let (validity, offsets, data) = self.into_buffers();
        let nulls = has_nulls.then(|| NullBuffer::new(BooleanBuffer::new(validity.into_arrow(), 0, rows)));
        let (offsets, data) = (offsets.into_arrow(), data.into_arrow());
        let array: Result<ArrayRef, ArrowError> = match ty {
            LogicalType::Boolean => Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(data, 0, rows), nulls))),
            LogicalType::Int8 => primitive::<types::Int8Type>(data, rows, nulls),
            LogicalType::Int16 => primitive::<types::Int16Type>(data, rows, nulls),
            LogicalType::Int32 => primitive::<types::Int32Type>(data, rows, nulls),
            LogicalType::Int64 => primitive::<types::Int64Type>(data, rows, nulls),
            LogicalType::Uint8 => primitive::<types::UInt8Type>(data, rows, nulls),
            LogicalType::Uint16 => primitive::<types::UInt16Type>(data, rows, nulls),
            LogicalType::Uint32 => primitive::<types::UInt32Type>(data, rows, nulls),
            LogicalType::Uint64 => primitive::<types::UInt64Type>(data, rows, nulls),
            LogicalType::Float32 => primitive::<types::Float32Type>(data, rows, nulls),
            LogicalType::Float64 => primitive::<types::Float64Type>(data, rows, nulls),
            LogicalType::Decimal { precision, scale } if precision <= 38 => {
                let values = PrimitiveArray::<types::Decimal128Type>::try_new(ScalarBuffer::new(data, 0, rows), nulls);
                values.and_then(|values| Ok(Arc::new(values.with_precision_and_scale(precision, scale)?) as ArrayRef))
            }
            LogicalType::Decimal { precision, scale } => {
                let values = PrimitiveArray::<types::Decimal256Type>::try_new(ScalarBuffer::new(data, 0, rows), nulls);
                values.and_then(|values| Ok(Arc::new(values.with_precision_and_scale(precision, scale)?) as ArrayRef))
            }
            LogicalType::Text { .. } | LogicalType::Json => {
                StringArray::try_new(ends(offsets, rows), data, nulls).map(|array| Arc::new(array) as ArrayRef)
            }
            LogicalType::Bytes { .. } | LogicalType::Geometry => {
                BinaryArray::try_new(ends(offsets, rows), data, nulls).map(|array| Arc::new(array) as ArrayRef)
            }
            LogicalType::Date => primitive::<types::Date32Type>(data, rows, nulls),
            LogicalType::Time { .. } => primitive::<types::DurationMicrosecondType>(data, rows, nulls),
            LogicalType::Timestamp { .. } => primitive::<types::TimestampMicrosecondType>(data, rows, nulls),
            LogicalType::TimestampUtc { .. } => {
                let values = ScalarBuffer::new(data, 0, rows);
                let values = PrimitiveArray::<types::TimestampMicrosecondType>::try_new(values, nulls);
                values.map(|values| Arc::new(values.with_timezone("UTC")) as ArrayRef)
            }
        };
        array.map_err(|error| PluginError::bug("column-broken", format!("a column came with {error}")))
    }
}

impl Batch {
    /// The columns asked for as a record batch; their buffers are handed on, not copied.
    pub fn into_arrow(self) -> Result<RecordBatch> {
        let rows = self.rows();
        let fields = self.fields().map(|(field, _)| Field::new(&field.name, field.ty.arrow(), field.nullable));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = self.into_columns().into_iter().map(Column::into_arrow).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(|error| PluginError::bug("batch-broken", format!("a batch came with {error}")))
    }
}

fn primitive<T: types::ArrowPrimitiveType>(
    data: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::new(data, 0, rows), nulls)?))
}

/// Offsets that were checked when the column was made; a column without rows may have come without any.
fn ends(offsets: Buffer, rows: usize) -> OffsetBuffer<i32> {
    if rows == 0 { OffsetBuffer::new_empty() } else { OffsetBuffer::new(ScalarBuffer::new(offsets, 0, rows + 1)) }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;
    use crate::data::RawColumn;

    #[test]
    fn arrays_hold_what_the_column_held() {
        let offsets: Vec<u8> = [0_i32, 1, 1, 3].iter().flat_map(|end| end.to_le_bytes()).collect();
        let raw = RawColumn { null_count: 1, validity: vec![0b101], offsets, data: b"abc".to_vec() };
        let array = Column::new(LogicalType::Text { max: None }, 3, raw).unwrap().into_arrow().unwrap();
        let texts = array.as_string::<i32>();
        assert_eq!(texts.iter().collect::<Vec<_>>(), [Some("a"), None, Some("bc")]);

        let data = 12_345_i128.to_le_bytes().to_vec();
        let ty = LogicalType::Decimal { precision: 10, scale: 2 };
        let array =
            Column::new(ty.clone(), 1, RawColumn { data, ..RawColumn::default() }).unwrap().into_arrow().unwrap();
        assert_eq!(*array.data_type(), ty.arrow());
        assert_eq!(array.as_primitive::<types::Decimal128Type>().value_as_string(0), "123.45");
    }

    #[test]
    fn every_type_without_rows_becomes_an_empty_array() {
        for ty in [
            LogicalType::Boolean,
            LogicalType::Uint64,
            LogicalType::Decimal { precision: 65, scale: 30 },
            LogicalType::Json,
            LogicalType::Geometry,
            LogicalType::TimestampUtc { fraction: 6 },
        ] {
            let array = Column::new(ty.clone(), 0, RawColumn::default()).unwrap().into_arrow().unwrap();
            assert_eq!((array.len(), array.data_type()), (0, &ty.arrow()));
        }
    }
}
