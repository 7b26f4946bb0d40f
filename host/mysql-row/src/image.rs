//! Row images: values out of the log's bytes, appended to columns, or passed over.

use self::plan::{Plan, Step};
use self::reach::{PassPlan, Reach};
use crate::column::bytes::{fixed, take};
use crate::column::moment::{push_date, push_instant, push_moment};
use crate::column::{Column, ColumnError, Labels, ShownBytes, ValueError, decimal, temporal};
use crate::json;

mod compressed;
pub(crate) mod partial;
pub(crate) mod plan;
pub(crate) mod reach;

/// Reads one image off the front of `rest`. All columns stand in it. At an error the columns hold part of a row.
#[inline]
pub fn read_image(plan: &Plan, rest: &mut &[u8], columns: &mut [Column]) -> Result<(), ColumnError> {
    let short = ColumnError { column: 0, error: ValueError::Short };
    let (nulls, mut bytes) = rest.split_at_checked(plan.columns.len().div_ceil(8)).ok_or(short)?;
    for (place, (planned, column)) in plan.columns.iter().zip(columns).enumerate() {
        let read = if is_null(nulls, place) {
            column.push_null(planned.nullable)
        } else {
            read_value(&planned.step, &mut bytes, column)
        };
        read.map_err(|error| ColumnError { column: place, error })?;
    }
    *rest = bytes;
    Ok(())
}

/// A bitmap's bit, the lowest of a byte first.
#[inline]
fn is_null(nulls: &[u8], place: usize) -> bool {
    nulls.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
}

/// Passes over one image that holds the first `count` columns.
pub fn pass_image(plan: &PassPlan, count: usize, rest: &mut &[u8]) -> Result<(), ValueError> {
    let (nulls, mut bytes) = rest.split_at_checked(count.div_ceil(8)).ok_or(ValueError::Short)?;
    for (place, reach) in plan.columns.iter().take(count).enumerate() {
        if is_null(nulls, place) {
            continue;
        }
        match *reach {
            Reach::Fixed(length) => take(&mut bytes, length)?,
            Reach::Counted(width) | Reach::Json(width) => counted(&mut bytes, width)?,
        };
    }
    *rest = bytes;
    Ok(())
}

#[inline]
fn read_value(step: &Step, bytes: &mut &[u8], column: &mut Column) -> Result<(), ValueError> {
    match *step {
        Step::I8 => column.push_i8(i8::from_le_bytes(fixed(bytes)?)),
        Step::U8 => column.push_u8(u8::from_le_bytes(fixed(bytes)?)),
        Step::I16 => column.push_i16(i16::from_le_bytes(fixed(bytes)?)),
        Step::U16 => column.push_u16(u16::from_le_bytes(fixed(bytes)?)),
        Step::I24 => {
            let [low, middle, high] = fixed(bytes)?;
            // Shifted up and back so that the sign spreads.
            column.push_i32(i32::from_le_bytes([0, low, middle, high]) >> 8);
        }
        Step::U24 => {
            let [low, middle, high] = fixed(bytes)?;
            column.push_u32(u32::from_le_bytes([low, middle, high, 0]));
        }
        Step::I32 => column.push_i32(i32::from_le_bytes(fixed(bytes)?)),
        Step::U32 => column.push_u32(u32::from_le_bytes(fixed(bytes)?)),
        Step::I64 => column.push_i64(i64::from_le_bytes(fixed(bytes)?)),
        Step::U64 => column.push_u64(u64::from_le_bytes(fixed(bytes)?)),
        Step::Float => column.push_f32(f32::from_le_bytes(fixed(bytes)?)),
        Step::Double => column.push_f64(f64::from_le_bytes(fixed(bytes)?)),
        Step::Counted { width } => return column.push_bytes(counted(bytes, width)?),
        _ => return read_composed(step, bytes, column),
    }
    Ok(())
}

/// Values that are put together from their bytes.
#[inline]
fn read_composed(step: &Step, bytes: &mut &[u8], column: &mut Column) -> Result<(), ValueError> {
    match *step {
        Step::Decimal { precision, scale, bytes: length } => {
            let packed = take(bytes, length)?;
            if precision <= 38 {
                column.push_i128(decimal::packed(packed, precision, scale)?);
            } else {
                column.push_i256(decimal::packed(packed, precision, scale)?);
            }
        }
        Step::Text { width, ref charset } => {
            let text = counted(bytes, width)?;
            return column.push_with(|out| charset.decode(text, out));
        }
        Step::Compressed { width, ref charset } => {
            let packed = counted(bytes, width)?;
            return column.push_with(|out| compressed::unpack(packed, charset.as_deref(), out));
        }
        Step::Fixed { bytes: length } => return column.push_bytes(take(bytes, length)?),
        Step::Shown(shown) => {
            let value = counted(bytes, 1)?;
            return column.push_with(|out| print_shown(shown, value, out));
        }
        Step::Padded { width, length } => {
            let value = counted(bytes, width)?;
            return column.push_with(|out| pad(value, length, out));
        }
        Step::Enum { bytes: 1, ref labels } => {
            let [number] = fixed(bytes)?;
            return column.push_bytes(label(number.into(), labels)?);
        }
        Step::Enum { ref labels, .. } => {
            let number = u16::from_le_bytes(fixed(bytes)?);
            return column.push_bytes(label(number, labels)?);
        }
        Step::Set { bytes: length, ref labels } => {
            let bits = take(bytes, length.into())?;
            return column.push_with(|out| join_labels(bits, labels, out));
        }
        Step::Json { width } => {
            let document = counted(bytes, width)?;
            return column.push_with(|out| json::print(document, out));
        }
        _ => return read_moment(step, bytes, column),
    }
    Ok(())
}

/// Dates and times.
#[inline]
fn read_moment(step: &Step, bytes: &mut &[u8], column: &mut Column) -> Result<(), ValueError> {
    match *step {
        Step::Date(zero_date) => return push_date(column, zero_date, temporal::packed_date(fixed(bytes)?)),
        Step::Time { fraction } => {
            let packed = take(bytes, 3 + temporal::fraction_bytes(fraction))?;
            column.push_i64(temporal::packed_time(packed, fraction)?);
        }
        Step::Datetime { fraction, zero_date } => {
            let packed = take(bytes, 5 + temporal::fraction_bytes(fraction))?;
            return push_moment(column, zero_date, fraction, temporal::packed_datetime(packed, fraction)?);
        }
        Step::Timestamp { fraction, zero_date } => {
            let packed = take(bytes, 4 + temporal::fraction_bytes(fraction))?;
            return push_instant(column, zero_date, fraction, temporal::packed_timestamp(packed, fraction)?);
        }
        Step::OldTime { fraction } => {
            let packed = take(bytes, temporal::old_time_bytes(fraction))?;
            column.push_i64(temporal::old_time(packed, fraction)?);
        }
        Step::OldDatetime { fraction, zero_date } => {
            let packed = take(bytes, temporal::old_datetime_bytes(fraction))?;
            return push_moment(column, zero_date, fraction, temporal::old_datetime(packed, fraction)?);
        }
        Step::OldTimestamp { fraction, zero_date } => {
            let packed = take(bytes, temporal::old_timestamp_bytes(fraction))?;
            return push_instant(column, zero_date, fraction, temporal::old_timestamp(packed, fraction)?);
        }
        Step::Year => {
            let [year] = fixed(bytes)?;
            column.push_u16(temporal::packed_year(year));
        }
        _ => unreachable!("all other steps are read by those who call"),
    }
    Ok(())
}

#[inline]
fn counted<'a>(bytes: &mut &'a [u8], width: u8) -> Result<&'a [u8], ValueError> {
    let length = match width {
        1 => usize::from(u8::from_le_bytes(fixed(bytes)?)),
        2 => usize::from(u16::from_le_bytes(fixed(bytes)?)),
        3 => {
            let [low, middle, high] = fixed(bytes)?;
            u32::from_le_bytes([low, middle, high, 0]) as usize
        }
        _ => u32::from_le_bytes(fixed(bytes)?) as usize,
    };
    take(bytes, length)
}

fn pad(value: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let missing = length.checked_sub(value.len()).ok_or(ValueError::Malformed("BINARY"))?;
    out.extend_from_slice(value);
    out.resize(out.len() + missing, 0);
    Ok(())
}

/// The log leaves out the zeros at the end.
fn print_shown(shown: ShownBytes, value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut whole = Vec::with_capacity(shown.bytes());
    pad(value, shown.bytes(), &mut whole)?;
    shown.print(&whole, out)
}

/// The label by its number; number 0 is what the server stores for a value that was none, and shows as empty.
fn label(number: u16, labels: &Labels) -> Result<&[u8], ValueError> {
    match number.checked_sub(1) {
        None => Ok(b""),
        Some(place) => {
            labels.get(usize::from(place)).map(|label| label.as_bytes()).ok_or(ValueError::Malformed("ENUM"))
        }
    }
}

fn join_labels(bits: &[u8], labels: &Labels, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut first = true;
    for place in 0..bits.len() * 8 {
        if bits[place / 8] >> (place % 8) & 1 == 0 {
            continue;
        }
        let label = labels.get(place).ok_or(ValueError::Malformed("SET"))?;
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(label.as_bytes());
    }
    Ok(())
}
