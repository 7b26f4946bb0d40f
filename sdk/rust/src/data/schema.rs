//! The shape of a table's rows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId {
    /// The source's namespace.
    pub database: String,
    /// The table in it.
    pub table: String,
}

impl TableId {
    /// The table `table` of `database`.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// What a column's values mean, and so how they lie in memory (Arrow's layout, little-endian).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogicalType {
    /// True or false; a bit each.
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
    /// Days since 1970-01-01, 32 bits.
    Date,
    /// A signed duration in microseconds, 64 bits.
    Time {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// Microseconds since 1970-01-01 00:00:00 on a clock without zone, 64 bits.
    Timestamp {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// Microseconds since the epoch, UTC, 64 bits.
    TimestampUtc {
        /// Fraction digits, 0 to 6.
        fraction: u8,
    },
    /// SRID (u32, little-endian) followed by WKB.
    Geometry,
}

impl LogicalType {
    /// Bytes a value takes; `None` for bits and for values of varying length.
    pub fn width(&self) -> Option<usize> {
        Some(match *self {
            Self::Boolean | Self::Text { .. } | Self::Bytes { .. } | Self::Json | Self::Geometry => return None,
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 | Self::Date => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
            Self::Time { .. } | Self::Timestamp { .. } | Self::TimestampUtc { .. } => 8,
            Self::Decimal { precision, .. } if precision <= 38 => 16,
            Self::Decimal { .. } => 32,
        })
    }

    /// Whether values vary in length and have offsets.
    pub fn has_offsets(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Bytes { .. } | Self::Json | Self::Geometry)
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

/// The columns and keys of one table at one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The table.
    pub table: TableId,
    /// Grows with each change of the table.
    pub version: u64,
    /// All columns, in the table's order.
    pub fields: Vec<Field>,
    /// Places in `fields` of the key that identifies a row, in key order; empty = no key.
    pub primary_key: Vec<u32>,
    /// Places in `fields` of the columns that partition the target.
    pub partition_key: Vec<u32>,
    /// Options for the target.
    pub options: Vec<(String, String)>,
}

impl Schema {
    /// Place of the column with this exact name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}
