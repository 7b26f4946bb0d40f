//! One column of a batch: checked when it arrives, seen through typed views without a copy.

use std::sync::Arc;

use super::{Bits, Buffer, ByteStrings, LogicalType, Schema, Texts};
use crate::{PluginError, Result};

/// A column as it crosses the contract: Arrow's buffers, little-endian. An empty list = the buffer is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawColumn {
    /// How many values are NULL.
    pub null_count: u32,
    /// A bit a row, set where there is a value.
    pub validity: Vec<u8>,
    /// int32, one more than rows; only for text, bytes, json, geometry.
    pub offsets: Vec<u8>,
    /// The values.
    pub data: Vec<u8>,
}

/// One column of a batch.
///
/// The views (`as_…`, [`Column::values`]) cost nothing: they are slices over the bytes that came. Whether a row is NULL
/// is asked apart ([`Column::is_null`]); what a view shows at a NULL is any value of its type.
#[derive(Clone, Debug)]
pub struct Column {
    /// The table and the place of its field; none for metadata.
    of: Option<(Arc<Schema>, u32)>,
    ty: LogicalType,
    rows: usize,
    null_count: usize,
    validity: Buffer,
    offsets: Buffer,
    data: Buffer,
}

/// All values of a column, by type.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Boolean.
    Boolean(Bits<'a>),
    /// Int8.
    Int8(&'a [i8]),
    /// Int16.
    Int16(&'a [i16]),
    /// Int32.
    Int32(&'a [i32]),
    /// Int64.
    Int64(&'a [i64]),
    /// Uint8.
    Uint8(&'a [u8]),
    /// Uint16.
    Uint16(&'a [u16]),
    /// Uint32.
    Uint32(&'a [u32]),
    /// Uint64.
    Uint64(&'a [u64]),
    /// Float32.
    Float32(&'a [f32]),
    /// Float64.
    Float64(&'a [f64]),
    /// Decimal up to 38 digits: the digits without the point, and how many stand behind it.
    Decimal128(&'a [i128], i8),
    /// Decimal above 38 digits: the digits without the point as a little-endian two's complement integer.
    Decimal256(&'a [[u8; 32]], i8),
    /// Text.
    Text(Texts<'a>),
    /// Json.
    Json(Texts<'a>),
    /// Bytes.
    Bytes(ByteStrings<'a>),
    /// Geometry.
    Geometry(ByteStrings<'a>),
    /// Days since 1970-01-01.
    Date(&'a [i32]),
    /// Signed microseconds, and fraction digits.
    Time(&'a [i64], u8),
    /// Microseconds without zone, and fraction digits.
    Timestamp(&'a [i64], u8),
    /// Microseconds since the epoch, and fraction digits.
    TimestampUtc(&'a [i64], u8),
}

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident: $value:ty = $pattern:pat,)*) => {$(
        $(#[$doc])*
        ///
        /// Fails on a column of another type.
        pub fn $name(&self) -> Result<&[$value]> {
            match self.ty {
                $pattern => Ok(self.data.values()),
                _ => Err(self.other_type(stringify!($name))),
            }
        }
    )*};
}

impl Column {
    /// Checks that the buffers hold `rows` values of this type.
    pub fn new(ty: LogicalType, rows: usize, raw: RawColumn) -> Result<Self> {
        let alignment = match ty.width() {
            Some(width) => width.min(16),
            None => 1,
        };
        let column = Self {
            of: None,
            ty,
            rows,
            null_count: raw.null_count as usize,
            validity: Buffer::aligned(raw.validity, 1),
            offsets: Buffer::aligned(raw.offsets, 4),
            data: Buffer::aligned(raw.data, alignment),
        };
        column.check()?;
        Ok(column)
    }

    /// As that of a table: errors name it.
    pub(super) fn of(self, schema: &Arc<Schema>, place: u32) -> Self {
        Self { of: Some((Arc::clone(schema), place)), ..self }
    }

    /// What its values mean.
    pub fn ty(&self) -> &LogicalType {
        &self.ty
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many of them are NULL.
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Whether the row is NULL. Panics beyond the end, as a slice does.
    pub fn is_null(&self, row: usize) -> bool {
        self.validity().is_some_and(|bits| !bits.get(row))
    }

    /// A bit a row, set where there is a value; none if every row has one.
    pub fn validity(&self) -> Option<Bits<'_>> {
        (self.null_count > 0).then(|| Bits::new(self.validity.as_slice(), self.rows))
    }

    /// Bytes that its buffers take.
    pub fn bytes(&self) -> usize {
        self.validity.len() + self.offsets.len() + self.data.len()
    }

    views! {
        /// Values of an int8 column.
        as_i8: i8 = LogicalType::Int8,
        /// Values of an int16 column.
        as_i16: i16 = LogicalType::Int16,
        /// Values of an int32 or date column.
        as_i32: i32 = LogicalType::Int32 | LogicalType::Date,
        /// Values of an int64, time, timestamp or timestamp-utc column.
        as_i64: i64 = LogicalType::Int64 | LogicalType::Time { .. } | LogicalType::Timestamp { .. }
            | LogicalType::TimestampUtc { .. },
        /// Values of a uint8 column.
        as_u8: u8 = LogicalType::Uint8,
        /// Values of a uint16 column.
        as_u16: u16 = LogicalType::Uint16,
        /// Values of a uint32 column.
        as_u32: u32 = LogicalType::Uint32,
        /// Values of a uint64 column.
        as_u64: u64 = LogicalType::Uint64,
        /// Values of a float32 column.
        as_f32: f32 = LogicalType::Float32,
        /// Values of a float64 column.
        as_f64: f64 = LogicalType::Float64,
        /// Values of a decimal column of at most 38 digits, without the point.
        as_decimal128: i128 = LogicalType::Decimal { precision: ..=38, .. },
        /// Values of a decimal column of more than 38 digits, without the point: little-endian two's complement.
        as_decimal256: [u8; 32] = LogicalType::Decimal { precision: 39.., .. },
    }

    /// Values of a boolean column.
    pub fn as_bool(&self) -> Result<Bits<'_>> {
        match self.ty {
            LogicalType::Boolean => Ok(Bits::new(self.data.as_slice(), self.rows)),
            _ => Err(self.other_type("as_bool")),
        }
    }

    /// Values of a text or json column; all of it is checked to be UTF-8 once a call.
    pub fn as_text(&self) -> Result<Texts<'_>> {
        match self.ty {
            LogicalType::Text { .. } | LogicalType::Json => self.texts(),
            _ => Err(self.other_type("as_text")),
        }
    }

    /// Values of a bytes, geometry, text or json column.
    pub fn as_bytes(&self) -> Result<ByteStrings<'_>> {
        if !self.ty.has_offsets() {
            return Err(self.other_type("as_bytes"));
        }
        Ok(self.byte_strings())
    }

    /// All values, by type: what code that takes columns of any type matches on, once a batch.
    pub fn values(&self) -> Result<Values<'_>> {
        let data = &self.data;
        Ok(match self.ty {
            LogicalType::Boolean => Values::Boolean(Bits::new(data.as_slice(), self.rows)),
            LogicalType::Int8 => Values::Int8(data.values()),
            LogicalType::Int16 => Values::Int16(data.values()),
            LogicalType::Int32 => Values::Int32(data.values()),
            LogicalType::Int64 => Values::Int64(data.values()),
            LogicalType::Uint8 => Values::Uint8(data.values()),
            LogicalType::Uint16 => Values::Uint16(data.values()),
            LogicalType::Uint32 => Values::Uint32(data.values()),
            LogicalType::Uint64 => Values::Uint64(data.values()),
            LogicalType::Float32 => Values::Float32(data.values()),
            LogicalType::Float64 => Values::Float64(data.values()),
            LogicalType::Decimal { precision: ..=38, scale } => Values::Decimal128(data.values(), scale),
            LogicalType::Decimal { scale, .. } => Values::Decimal256(data.values(), scale),
            LogicalType::Text { .. } => Values::Text(self.texts()?),
            LogicalType::Json => Values::Json(self.texts()?),
            LogicalType::Bytes { .. } => Values::Bytes(self.byte_strings()),
            LogicalType::Geometry => Values::Geometry(self.byte_strings()),
            LogicalType::Date => Values::Date(data.values()),
            LogicalType::Time { fraction } => Values::Time(data.values(), fraction),
            LogicalType::Timestamp { fraction } => Values::Timestamp(data.values(), fraction),
            LogicalType::TimestampUtc { fraction } => Values::TimestampUtc(data.values(), fraction),
        })
    }

    /// The buffers: validity (empty if every row has a value), offsets, data.
    pub fn into_buffers(self) -> (Buffer, Buffer, Buffer) {
        (self.validity, self.offsets, self.data)
    }

    fn texts(&self) -> Result<Texts<'_>> {
        let text = std::str::from_utf8(self.data.as_slice())
            .ok()
            .filter(|text| offsets_of(&self.offsets).iter().all(|&end| text.is_char_boundary(end as usize)))
            .ok_or_else(|| broken("text that is not utf-8".into()))?;
        Ok(Texts::new(self.offsets.as_slice(), text))
    }

    fn byte_strings(&self) -> ByteStrings<'_> {
        ByteStrings::new(self.offsets.as_slice(), self.data.as_slice())
    }

    fn check(&self) -> Result<()> {
        let rows = self.rows;
        if self.null_count > rows || (self.null_count > 0 && self.validity.len() * 8 < rows) {
            return Err(broken(format!(
                "{} nulls in {rows} rows, {} bytes say which",
                self.null_count,
                self.validity.len()
            )));
        }
        if self.ty.has_offsets() {
            return self.check_offsets();
        }
        let fits = match self.ty.width() {
            Some(width) => self.data.len() == rows * width,
            None => self.data.len() >= rows.div_ceil(8),
        };
        if fits { Ok(()) } else { Err(broken(format!("{} bytes for {rows} rows of {:?}", self.data.len(), self.ty))) }
    }

    fn check_offsets(&self) -> Result<()> {
        let (rows, length) = (self.rows, self.data.len());
        if rows == 0 && self.offsets.is_empty() {
            return Ok(());
        }
        if self.offsets.len() != (rows + 1) * size_of::<i32>() {
            return Err(broken(format!("{} bytes of offsets for {rows} rows", self.offsets.len())));
        }
        let offsets = offsets_of(&self.offsets);
        let rises = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let first = offsets.first().copied().unwrap_or_default();
        let last = offsets.last().copied().unwrap_or_default();
        match usize::try_from(last) {
            Ok(last) if rises && first >= 0 && last <= length => Ok(()),
            _ => Err(broken(format!("offsets that leave the {length} bytes of data"))),
        }
    }

    fn other_type(&self, view: &str) -> PluginError {
        let of = self.of.as_ref().and_then(|(schema, place)| Some((schema, schema.fields.get(*place as usize)?)));
        let error =
            |name: String| PluginError::bug("column-type", format!("{view} asked of {name} of type {:?}", self.ty));
        match of {
            Some((schema, field)) => error(format!("column {}.{}", schema.table, field.name)).with_table(&schema.table),
            None => error("a column".into()),
        }
    }
}

fn offsets_of(offsets: &Buffer) -> &[i32] {
    offsets.values()
}

fn broken(what: String) -> PluginError {
    PluginError::bug("column-broken", format!("a column came with {what}"))
}

#[cfg(test)]
mod tests;
