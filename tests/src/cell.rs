//! Values of Arrow columns: in the suites' one spelling, and as bytes.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_schema::DataType;

use crate::value::{Kind, spelled};

/// One value.
pub fn cell(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".into();
    }
    let (kind, text) = match column.data_type() {
        DataType::Int8 => (Kind::Number, column.as_primitive::<Int8Type>().value(row).to_string()),
        DataType::Int16 => (Kind::Number, column.as_primitive::<Int16Type>().value(row).to_string()),
        DataType::Int32 => (Kind::Number, column.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Int64 => (Kind::Number, column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::UInt8 => (Kind::Number, column.as_primitive::<UInt8Type>().value(row).to_string()),
        DataType::UInt16 => (Kind::Number, column.as_primitive::<UInt16Type>().value(row).to_string()),
        DataType::UInt32 => (Kind::Number, column.as_primitive::<UInt32Type>().value(row).to_string()),
        DataType::UInt64 => (Kind::Number, column.as_primitive::<UInt64Type>().value(row).to_string()),
        DataType::Decimal128(..) => (Kind::Number, column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => (Kind::Number, column.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Float32 => {
            (Kind::Double, format!("{:?}", f64::from(column.as_primitive::<Float32Type>().value(row))))
        }
        DataType::Float64 => (Kind::Double, format!("{:?}", column.as_primitive::<Float64Type>().value(row))),
        DataType::Utf8 => (Kind::Text, column.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => {
            let bytes = column.as_binary::<i32>().value(row);
            (Kind::Bytes, bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        DataType::Date32 => (Kind::Date, day(i64::from(column.as_primitive::<Date32Type>().value(row)))),
        DataType::Duration(_) => (Kind::Time, column.as_primitive::<DurationMicrosecondType>().value(row).to_string()),
        DataType::Timestamp(..) => (Kind::Moment, moment(column.as_primitive::<TimestampMicrosecondType>().value(row))),
        other => panic!("no table has a column of type {other}"),
    };
    spelled(kind, &text).expect("an Arrow value has a spelling")
}

/// Day and time of day in UTC, counted in microseconds from 1970-01-01.
pub fn moment(micros: i64) -> String {
    let of_day = micros.rem_euclid(86_400_000_000);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}.{fraction:06}", day(micros.div_euclid(86_400_000_000)))
}

/// A day of the calendar, counted from 1970-01-01, by walking over years and months.
fn day(mut days: i64) -> String {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days < 0 {
        year -= 1;
        days += 365 + i64::from(leap(year));
    }
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

/// One value's bytes as they lie in the column: equal for values that are the same bit for bit. None for NULL.
pub fn exact(column: &dyn Array, row: usize) -> Option<Vec<u8>> {
    if column.is_null(row) {
        return None;
    }
    let data = column.to_data();
    Some(match (column.data_type(), column.data_type().primitive_width()) {
        (_, Some(width)) => {
            let start = (data.offset() + row) * width;
            data.buffers()[0][start..start + width].to_vec()
        }
        (DataType::Utf8, None) => column.as_string::<i32>().value(row).as_bytes().to_vec(),
        (DataType::Binary, None) => column.as_binary::<i32>().value(row).to_vec(),
        (other, None) => panic!("no table has a column of type {other}"),
    })
}
