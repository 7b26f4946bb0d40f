//! How far values reach, for images that are passed over.

use cdchost_mysql_wire::binlog::{TableMap, TableMapColumn};
use cdchost_mysql_wire::column_type::{
    BIT, BLOB, BLOB_COMPRESSED, DATE, DATETIME, DATETIME2, DOUBLE, ENUM, FLOAT, GEOMETRY, INT24, JSON, LONG, LONGLONG,
    NEWDATE, NEWDECIMAL, SET, SHORT, STRING, TIME, TIME2, TIMESTAMP, TIMESTAMP2, TINY, VAR_STRING, VARCHAR,
    VARCHAR_COMPRESSED, VECTOR, YEAR,
};

use crate::column::temporal::{fraction_bytes, old_datetime_bytes, old_time_bytes, old_timestamp_bytes};
use crate::column::{ColumnKind, TableLayout, decimal};

/// How far one value reaches, where it is only passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// So many bytes.
    Fixed(usize),
    /// As many as a length of so many bytes says.
    Counted(u8),
    /// The same, of a JSON document.
    Json(u8),
}

/// How the images of a table are passed over.
#[derive(Debug)]
pub struct PassPlan {
    pub(crate) columns: Vec<Reach>,
    /// JSON columns of the log's table.
    pub(crate) json_columns: usize,
    pub(super) logged: usize,
}

/// Bytes of the length in front of texts and bytes.
pub(super) fn counted_width(found: u8, metadata: u16) -> Option<u8> {
    match found {
        BLOB | BLOB_COMPRESSED => u8::try_from(metadata).ok().filter(|width| (1..=4).contains(width)),
        _ => Some(if metadata > 255 { 2 } else { 1 }),
    }
}

impl PassPlan {
    /// Columns of an image.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Compiles how images are passed over; none for a type whose values' lengths are not known.
    pub fn compile(map: &TableMap, layout: &TableLayout) -> Option<Self> {
        let kinds = layout.kinds.iter().map(Some).chain(std::iter::repeat(None));
        let columns = map.columns.iter().zip(kinds).map(|(column, kind)| reach(column, kind));
        let (json_columns, logged) = (json_columns(map), map.columns.len());
        Some(Self { columns: columns.collect::<Option<_>>()?, json_columns, logged })
    }
}

/// JSON columns of a table, hidden ones included.
pub(super) fn json_columns(map: &TableMap) -> usize {
    map.columns.iter().filter(|column| column.column_type == JSON).count()
}

/// How far a column's values reach. Old dates and times with a fraction need the kind: the log does not say it.
pub(super) fn reach(column: &TableMapColumn, kind: Option<&ColumnKind>) -> Option<Reach> {
    let metadata = column.metadata;
    let digits = u8::try_from(metadata).ok();
    let fraction = || digits.filter(|&digits| digits <= 6).map(fraction_bytes);
    Some(match column.column_type {
        TINY | YEAR => Reach::Fixed(1),
        SHORT => Reach::Fixed(2),
        INT24 | DATE | NEWDATE => Reach::Fixed(3),
        LONG => Reach::Fixed(4),
        LONGLONG => Reach::Fixed(8),
        FLOAT | DOUBLE | ENUM | SET => Reach::Fixed(usize::from(metadata)),
        NEWDECIMAL => {
            let [precision, scale] = metadata.to_be_bytes();
            Reach::Fixed(decimal::packed_bytes(precision, scale))
        }
        BIT => Reach::Fixed(usize::from(metadata >> 8) + usize::from(metadata & 0xff > 0)),
        TIME2 => Reach::Fixed(3 + fraction()?),
        TIMESTAMP2 => Reach::Fixed(4 + fraction()?),
        DATETIME2 => Reach::Fixed(5 + fraction()?),
        TIME | TIMESTAMP | DATETIME => match (column.column_type, kind?) {
            (TIME, &ColumnKind::Time { fraction }) => Reach::Fixed(old_time_bytes(fraction)),
            (TIMESTAMP, &ColumnKind::Timestamp { fraction }) => Reach::Fixed(old_timestamp_bytes(fraction)),
            (DATETIME, &ColumnKind::Datetime { fraction }) => Reach::Fixed(old_datetime_bytes(fraction)),
            _ => return None,
        },
        VARCHAR | VAR_STRING | STRING | VARCHAR_COMPRESSED => {
            Reach::Counted(counted_width(column.column_type, metadata)?)
        }
        JSON => Reach::Json(digits.filter(|width| (1..=4).contains(width))?),
        BLOB | BLOB_COMPRESSED | GEOMETRY | VECTOR => Reach::Counted(digits.filter(|width| (1..=4).contains(width))?),
        _ => return None,
    })
}
