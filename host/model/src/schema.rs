//! The shape of a table's rows, and how each logical type lies in Arrow.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::TableId;

/// The number of a table's schema within one pipeline; grows by one with each change. The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SchemaVersion(pub u64);

/// What a column's values mean. The Arrow type of each is fixed by [`LogicalType::arrow`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogicalType {
    /// True or false.
    Boolean,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
    /// IEEE 754 single.
    Float32,
    /// IEEE 754 double.
    Float64,
    /// Exact decimal; 16 bytes up to 38 digits, 32 bytes up to 76.
    Decimal {
        /// Digits in all, 1 to 76.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// UTF-8 text.
    Text {
        /// Characters at most, where the source has a limit.
        max: Option<u32>,
    },
    /// Bytes.
    Bytes {
        /// Bytes at most, where the source has a limit.
        max: Option<u32>,
    },
    /// UTF-8, the server's own text of a JSON document.
    Json,
    /// Days since 1970-01-01.
    Date,
    /// A signed duration in microseconds (MySQL's TIME reaches ±838:59:59).
    Time {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// Microseconds since 1970-01-01 00:00:00 on a clock without zone (MySQL's DATETIME).
    Timestamp {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// Microseconds since the epoch, UTC (MySQL's TIMESTAMP).
    TimestampUtc {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// SRID (u32, little-endian) followed by WKB.
    Geometry,
}

impl LogicalType {
    /// The Arrow type that columns of this type have in every batch.
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

/// As the plugin contract names it: `int64`, `decimal(10,2)`, `text(20)`, `timestamp-utc(6)`.
impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Self::Boolean => "boolean",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::Text { max: Some(max) } => return write!(f, "text({max})"),
            Self::Text { max: None } => "text",
            Self::Bytes { max: Some(max) } => return write!(f, "bytes({max})"),
            Self::Bytes { max: None } => "bytes",
            Self::Json => "json",
            Self::Date => "date",
            Self::Time { fraction } => return write!(f, "time({fraction})"),
            Self::Timestamp { fraction } => return write!(f, "timestamp({fraction})"),
            Self::TimestampUtc { fraction } => return write!(f, "timestamp-utc({fraction})"),
            Self::Geometry => "geometry",
        };
        f.write_str(plain)
    }
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The column's name as the source spells it.
    pub name: String,
    /// What its values mean.
    pub ty: LogicalType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// The type as the source wrote it, e.g. `enum('a','b')`.
    pub native_type: String,
    /// The default as the source wrote it.
    pub default_value: Option<String>,
    /// The column's comment.
    pub comment: Option<String>,
}

/// Why a schema cannot be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SchemaError {
    /// Two columns share a name.
    #[error("table {table} has two columns named {column}")]
    DuplicateColumn {
        /// The table.
        table: TableId,
        /// The name that occurs twice.
        column: String,
    },
    /// A key names a column that is not there.
    #[error("key of table {table} names column {index}, the table has {count}")]
    KeyOutOfRange {
        /// The table.
        table: TableId,
        /// Place named by the key.
        index: u32,
        /// Number of columns.
        count: usize,
    },
}

/// The columns and keys of one table at one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The table.
    pub table: TableId,
    /// The version that this is.
    pub version: SchemaVersion,
    /// All columns, in the table's order.
    pub fields: Vec<Field>,
    /// Places in `fields` of the key that identifies a row, in key order; empty = no key.
    pub primary_key: Vec<u32>,
    /// Places in `fields` of the columns that partition the target.
    pub partition_key: Vec<u32>,
    /// Options for the target, passed through to sinks.
    pub options: Vec<(String, String)>,
}

impl TableSchema {
    /// Checks that names are unique and keys in range.
    pub fn check(&self) -> Result<(), SchemaError> {
        let mut names = std::collections::HashSet::new();
        for field in &self.fields {
            if !names.insert(field.name.as_str()) {
                return Err(SchemaError::DuplicateColumn { table: self.table.clone(), column: field.name.clone() });
            }
        }
        for &index in self.primary_key.iter().chain(&self.partition_key) {
            if index as usize >= self.fields.len() {
                let count = self.fields.len();
                return Err(SchemaError::KeyOutOfRange { table: self.table.clone(), index, count });
            }
        }
        Ok(())
    }

    /// The Arrow schema of every batch of this version.
    pub fn arrow(&self) -> SchemaRef {
        let fields: Vec<_> =
            self.fields.iter().map(|f| arrow_schema::Field::new(&f.name, f.ty.arrow(), f.nullable)).collect();
        Arc::new(Schema::new(fields))
    }

    /// Place of the column with this exact name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}
