//! Rows of a chunk's query, from the binary protocol straight into columns: the same values as from the log.

use std::sync::Arc;

use cdchost_mysql_wire::Column as ResultColumn;
use cdchost_mysql_wire::column_type::{
    BIT, BLOB, DATE, DATETIME, DOUBLE, FLOAT, GEOMETRY, INT24, JSON, LONG, LONGLONG, NEWDECIMAL, SHORT, STRING, TIME,
    TIMESTAMP, TINY, VAR_STRING, VECTOR, YEAR,
};

use self::bound::Bound;
use crate::KeyValue;
use crate::charset::Charset;
use crate::column::bytes::{fixed, length_coded, take};
use crate::column::moment::{push_date, push_moment};
use crate::column::temporal::{Clock, Day, duration};
use crate::column::{
    Column, ColumnError, ColumnKind, ColumnReading, ShownBytes, TableLayout, ValueError, ZeroDate, decimal,
};

mod bound;

/// How one value is read.
#[derive(Clone, Debug)]
enum Step {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Float,
    Double,
    Decimal { scale: u8 },
    WideDecimal { scale: u8 },
    Counted,
    Text(Arc<Charset>),
    Date(ZeroDate),
    Time,
    Moment { zero_date: ZeroDate, fraction: u8 },
}

/// A column of the result.
#[derive(Debug)]
struct PlannedColumn {
    step: Step,
    nullable: bool,
    /// How it is bound, where it belongs to the key.
    bound: Option<Bound>,
}

/// How a chunk's rows are read: compiled once for a prepared statement.
#[derive(Debug)]
pub struct ResultPlan {
    columns: Vec<PlannedColumn>,
    /// For each column of the key, in the key's order: its place among the key's columns in row order, and the type
    /// that it is bound as.
    key: Vec<(usize, u8, bool)>,
    /// The key of the row read last, column by column in row order.
    key_bytes: Vec<u8>,
    key_ends: Vec<usize>,
}

impl ResultPlan {
    /// Checks a result's columns against the table as it is known; the error names the first that differs.
    pub fn compile(found: &[ResultColumn], layout: &TableLayout) -> Result<Self, String> {
        if found.len() != layout.kinds.len() {
            return Err(format!("{} columns in place of {}", found.len(), layout.kinds.len()));
        }
        let in_key = |place| layout.key().any(|key| key == place);
        let mut columns = Vec::with_capacity(found.len());
        for (place, (kind, column)) in layout.kinds.iter().zip(found).enumerate() {
            let field = &layout.schema.fields[place];
            let reading = &layout.readings[place];
            let step = step(kind, reading, column).ok_or_else(|| {
                format!("column `{}` is of type {}, known as {}", field.name, column.column_type, field.native_type)
            })?;
            let bound = in_key(place).then(|| Bound::new(kind, reading, column));
            columns.push(PlannedColumn { step, nullable: field.nullable, bound });
        }
        let row_order: Vec<usize> = (0..columns.len()).filter(|&place| in_key(place)).collect();
        let key = layout
            .key()
            .map(|place| {
                let order =
                    row_order.iter().position(|&other| other == place).expect("the key's columns are in the row");
                let bound = columns[place].bound.as_ref().expect("it is of the key");
                (order, bound.column_type, bound.unsigned)
            })
            .collect();
        Ok(Self { columns, key, key_bytes: Vec::new(), key_ends: Vec::new() })
    }

    /// Reads one row. At an error the columns hold part of it.
    pub fn read_row(&mut self, row: &[u8], columns: &mut [Column]) -> Result<(), ColumnError> {
        let short = ColumnError { column: 0, error: ValueError::Short };
        let (nulls, mut bytes) = row.split_at_checked((self.columns.len() + 9) / 8).ok_or(short)?;
        self.key_bytes.clear();
        self.key_ends.clear();
        for (place, (planned, column)) in self.columns.iter().zip(columns).enumerate() {
            // The first two bits of the bitmap are reserved.
            let bit = place + 2;
            let before = bytes;
            let read = if nulls.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 0) {
                read_value(&planned.step, &mut bytes, column)
            } else {
                column.push_null(planned.nullable)
            };
            let of_column = |error| ColumnError { column: place, error };
            read.map_err(of_column)?;
            if let Some(bound) = &planned.bound {
                bound.put(&before[..before.len() - bytes.len()], &mut self.key_bytes).map_err(of_column)?;
                self.key_ends.push(self.key_bytes.len());
            }
        }
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(ColumnError { column: self.columns.len() - 1, error: ValueError::Malformed("end of a row") })
        }
    }

    /// The key of the row read last.
    pub fn last_key(&self) -> Option<Vec<KeyValue>> {
        let value = |&(order, column_type, unsigned): &(usize, u8, bool)| {
            let start = if order == 0 { 0 } else { *self.key_ends.get(order - 1)? };
            let bytes = self.key_bytes.get(start..*self.key_ends.get(order)?)?.to_vec();
            Some(KeyValue { column_type, unsigned, bytes })
        };
        self.key.iter().map(value).collect()
    }
}

/// How a column of a kind is read where the result says what it is; none where they do not fit.
fn step(kind: &ColumnKind, reading: &ColumnReading, column: &ResultColumn) -> Option<Step> {
    let found = column.column_type;
    let zero_date = reading.zero_date;
    let text = || reading.charset.as_ref().map_or(Step::Counted, |charset| Step::Text(Arc::clone(charset)));
    match *kind {
        ColumnKind::Integer { unsigned, .. } if unsigned != column.is_unsigned() => None,
        ColumnKind::Integer { bytes, unsigned } => match (found, bytes, unsigned) {
            (TINY, 1, false) => Some(Step::I8),
            (TINY, 1, true) => Some(Step::U8),
            (SHORT, 2, false) => Some(Step::I16),
            (SHORT, 2, true) => Some(Step::U16),
            (INT24, 3, false) | (LONG, 4, false) => Some(Step::I32),
            (INT24, 3, true) | (LONG, 4, true) => Some(Step::U32),
            (LONGLONG, 8, false) => Some(Step::I64),
            (LONGLONG, 8, true) => Some(Step::U64),
            _ => None,
        },
        ColumnKind::Float => (found == FLOAT).then_some(Step::Float),
        ColumnKind::Double => (found == DOUBLE).then_some(Step::Double),
        ColumnKind::Decimal { precision, scale } => {
            let step = if precision <= 38 { Step::Decimal { scale } } else { Step::WideDecimal { scale } };
            (found == NEWDECIMAL && column.decimals == scale).then_some(step)
        }
        ColumnKind::Text { .. } => matches!(found, BLOB | VAR_STRING | STRING).then(text),
        ColumnKind::Bytes { .. } | ColumnKind::Binary { .. } => {
            matches!(found, BLOB | VAR_STRING | STRING).then_some(Step::Counted)
        }
        ColumnKind::Enum(_) | ColumnKind::Set(_) => (found == STRING).then(text),
        ColumnKind::Json => (found == JSON).then_some(Step::Counted),
        ColumnKind::Bit { .. } => (found == BIT).then_some(Step::Counted),
        ColumnKind::Geometry => (found == GEOMETRY).then_some(Step::Counted),
        ColumnKind::Vector { .. } => (found == VECTOR).then_some(Step::Counted),
        ColumnKind::Shown(ShownBytes::Uuid | ShownBytes::Inet4 | ShownBytes::Inet6) => {
            matches!(found, VAR_STRING | STRING).then_some(Step::Counted)
        }
        ColumnKind::Date => (found == DATE).then_some(Step::Date(zero_date)),
        ColumnKind::Time { .. } => (found == TIME).then_some(Step::Time),
        ColumnKind::Datetime { fraction } => (found == DATETIME).then_some(Step::Moment { zero_date, fraction }),
        ColumnKind::Timestamp { fraction } => (found == TIMESTAMP).then_some(Step::Moment { zero_date, fraction }),
        ColumnKind::Year => (found == YEAR).then_some(Step::U16),
    }
}

#[inline]
fn read_value(step: &Step, bytes: &mut &[u8], column: &mut Column) -> Result<(), ValueError> {
    match *step {
        Step::I8 => column.push_i8(i8::from_le_bytes(fixed(bytes)?)),
        Step::U8 => column.push_u8(u8::from_le_bytes(fixed(bytes)?)),
        Step::I16 => column.push_i16(i16::from_le_bytes(fixed(bytes)?)),
        Step::U16 => column.push_u16(u16::from_le_bytes(fixed(bytes)?)),
        Step::I32 => column.push_i32(i32::from_le_bytes(fixed(bytes)?)),
        Step::U32 => column.push_u32(u32::from_le_bytes(fixed(bytes)?)),
        Step::I64 => column.push_i64(i64::from_le_bytes(fixed(bytes)?)),
        Step::U64 => column.push_u64(u64::from_le_bytes(fixed(bytes)?)),
        Step::Float => column.push_f32(f32::from_le_bytes(fixed(bytes)?)),
        Step::Double => column.push_f64(f64::from_le_bytes(fixed(bytes)?)),
        Step::Decimal { scale } => column.push_i128(decimal::text(length_coded(bytes)?, scale)?),
        Step::WideDecimal { scale } => column.push_i256(decimal::text(length_coded(bytes)?, scale)?),
        Step::Counted => return column.push_bytes(length_coded(bytes)?),
        Step::Text(ref charset) => {
            let text = length_coded(bytes)?;
            return column.push_with(|out| charset.decode(text, out));
        }
        Step::Date(zero_date) => return push_date(column, zero_date, moment(bytes)?.0),
        Step::Moment { zero_date, fraction } => return push_moment(column, zero_date, fraction, moment(bytes)?),
        Step::Time => column.push_i64(time(bytes)?),
    }
    Ok(())
}

/// DATE, DATETIME and TIMESTAMP: fields that are zero at the end are left out.
fn moment(bytes: &mut &[u8]) -> Result<(Day, Clock), ValueError> {
    let [length] = fixed(bytes)?;
    let fields = take(bytes, length.into())?;
    let (mut day, mut clock) = (Day { year: 0, month: 0, day: 0 }, Clock::default());
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(ValueError::Malformed("date"));
    }
    if let Some((&[low, high, month, of_month], _)) = fields.split_first_chunk::<4>() {
        day = Day { year: u16::from_le_bytes([low, high]).into(), month: month.into(), day: of_month.into() };
    }
    if let Some(&[hour, minute, second]) = fields.get(4..7) {
        clock = Clock { hour: hour.into(), minute: minute.into(), second: second.into(), micro: 0 };
    }
    if let Some(&[a, b, c, d]) = fields.get(7..11) {
        clock.micro = u32::from_le_bytes([a, b, c, d]);
    }
    Ok((day, clock))
}

/// TIME: a sign, days, and the fields of a clock.
fn time(bytes: &mut &[u8]) -> Result<i64, ValueError> {
    let [length] = fixed(bytes)?;
    let fields = take(bytes, length.into())?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(ValueError::Malformed("time"));
    }
    let Some((&[negative, d0, d1, d2, d3, hour, minute, second], rest)) = fields.split_first_chunk::<8>() else {
        return Ok(0);
    };
    let days = u32::from_le_bytes([d0, d1, d2, d3]);
    let hour = days.checked_mul(24).and_then(|hours| hours.checked_add(hour.into()));
    let micro = rest.first_chunk::<4>().map_or(0, |micro| u32::from_le_bytes(*micro));
    let hour = hour.ok_or(ValueError::Malformed("time"))?;
    duration(negative != 0, Clock { hour, minute: minute.into(), second: second.into(), micro })
}

#[cfg(test)]
mod tests;
