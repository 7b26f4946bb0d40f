//! How the images of one table map are read: compiled once, after the map was checked against the table as we know it.

use std::sync::Arc;

use cdchost_mysql_wire::binlog::{TableMap, TableMapColumn};
use cdchost_mysql_wire::column_type::{
    BIT, BLOB, BLOB_COMPRESSED, DATE, DATETIME, DATETIME2, DOUBLE, ENUM, FLOAT, GEOMETRY, INT24, JSON, LONG, LONGLONG,
    NEWDATE, NEWDECIMAL, SET, SHORT, STRING, TIME, TIME2, TIMESTAMP, TIMESTAMP2, TINY, VAR_STRING, VARCHAR,
    VARCHAR_COMPRESSED, VECTOR, YEAR,
};

use super::reach::{PassPlan, counted_width, json_columns, reach};
use crate::charset::Charset;
use crate::column::{ColumnKind, ColumnReading, Labels, ShownBytes, TableLayout, ZeroDate, decimal};

/// How one value is read.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    I8,
    U8,
    I16,
    U16,
    I24,
    U24,
    I32,
    U32,
    I64,
    U64,
    Float,
    Double,
    /// Packed digits in so many bytes.
    Decimal {
        precision: u8,
        scale: u8,
        bytes: usize,
    },
    /// Text in UTF-8, or bytes, behind a length of so many bytes.
    Counted {
        width: u8,
    },
    /// Text of a set that is not UTF-8.
    Text {
        width: u8,
        charset: Arc<Charset>,
    },
    /// The same, or bytes, as MariaDB packs them.
    Compressed {
        width: u8,
        charset: Option<Arc<Charset>>,
    },
    /// So many bytes.
    Fixed {
        bytes: usize,
    },
    /// Bytes without their trailing zeros that are text elsewhere.
    Shown(ShownBytes),
    /// Bytes without their trailing zeros, up to `length`.
    Padded {
        width: u8,
        length: usize,
    },
    /// The number of a label, in one byte or two.
    Enum {
        bytes: u8,
        labels: Labels,
    },
    /// A bit for each label.
    Set {
        bytes: u8,
        labels: Labels,
    },
    /// A binary document behind a length of so many bytes.
    Json {
        width: u8,
    },
    Date(ZeroDate),
    Time {
        fraction: u8,
    },
    Datetime {
        fraction: u8,
        zero_date: ZeroDate,
    },
    Timestamp {
        fraction: u8,
        zero_date: ZeroDate,
    },
    /// These three as servers wrote them before MySQL 5.6.
    OldTime {
        fraction: u8,
    },
    OldDatetime {
        fraction: u8,
        zero_date: ZeroDate,
    },
    OldTimestamp {
        fraction: u8,
        zero_date: ZeroDate,
    },
    Year,
}

/// A step and whether NULL may stand in its place.
#[derive(Clone, Debug)]
pub(crate) struct PlannedColumn {
    pub(crate) step: Step,
    pub(crate) nullable: bool,
}

/// How the images of a table are read.
#[derive(Debug)]
pub struct Plan {
    pub(crate) columns: Vec<PlannedColumn>,
    /// How far the values reach, for those who need some of them alone.
    pub(crate) pass: PassPlan,
}

/// How the log's table differs from the table as we know it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Mismatch {
    /// More or fewer columns.
    #[error("the log has {found} columns, the table is known with {known}")]
    Count {
        /// Columns that the table is known with.
        known: usize,
        /// Columns in the log.
        found: usize,
    },
    /// A column of another name.
    #[error("column {place} is `{found}` in the log, but known as `{known}`")]
    Name {
        /// Its place, from 1 on.
        place: usize,
        /// Its known name.
        known: String,
        /// Its name in the log.
        found: String,
    },
    /// A column of another type.
    #[error("column `{column}` is known as {known}, which does not fit type {found} (metadata {metadata}) of the log")]
    Type {
        /// Its name.
        column: String,
        /// Its known type, as the server writes it.
        known: String,
        /// Its type in the log, by number.
        found: u8,
        /// What the log says with the type.
        metadata: u16,
    },
    /// Labels that the server cannot show.
    #[error("column `{column}` has labels that the server shows with `?`, and the log does not name them")]
    HiddenLabels {
        /// Its name.
        column: String,
    },
    /// An ENUM or SET with other labels.
    #[error("column `{column}` has other labels in the log than it is known with")]
    Labels {
        /// Its name.
        column: String,
    },
}

impl Plan {
    /// Columns of a row of the log, hidden ones included.
    pub fn logged_columns(&self) -> usize {
        self.pass.logged
    }

    /// Columns of an image: the first ones of the log. Behind them the log names columns that the server hides, those of
    /// functional indexes; no image holds them.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Checks a table map against the table as it is known, and compiles how its images are read.
    pub fn compile(map: &TableMap, layout: &TableLayout) -> Result<Self, Mismatch> {
        let known = &layout.schema.fields;
        if map.columns.len() < known.len() {
            return Err(Mismatch::Count { known: known.len(), found: map.columns.len() });
        }
        let mut columns = Vec::with_capacity(known.len());
        let mut reaches = Vec::with_capacity(known.len());
        for (place, (field, logged)) in known.iter().zip(&map.columns).enumerate() {
            if let Some(found) = logged.name.as_ref().filter(|found| **found != field.name) {
                let (known, found) = (field.name.clone(), found.clone());
                return Err(Mismatch::Name { place: place + 1, known, found });
            }
            let (kind, reading) = (&layout.kinds[place], &layout.readings[place]);
            let differs = || Mismatch::Type {
                column: field.name.clone(),
                known: field.native_type.clone(),
                found: logged.column_type,
                metadata: logged.metadata,
            };
            let mut step = step(kind, reading, logged).ok_or_else(differs)?;
            if let Step::Enum { labels, .. } | Step::Set { labels, .. } = &mut step {
                *labels = logged_labels(labels, reading, logged, &field.name)?;
            }
            reaches.push(reach(logged, Some(kind)).ok_or_else(differs)?);
            columns.push(PlannedColumn { step, nullable: field.nullable });
        }
        let (json_columns, logged) = (json_columns(map), map.columns.len());
        Ok(Self { columns, pass: PassPlan { columns: reaches, json_columns, logged } })
    }
}

/// The labels as the log has them. The server shows characters above U+FFFF as `?`, so the log's word counts.
fn logged_labels(
    known: &Labels,
    reading: &ColumnReading,
    logged: &TableMapColumn,
    column: &str,
) -> Result<Labels, Mismatch> {
    let Some(found) = &logged.labels else {
        return match known.iter().any(|label| may_hide(label, reading.charset.as_deref())) {
            true => Err(Mismatch::HiddenLabels { column: column.to_owned() }),
            false => Ok(Labels::clone(known)),
        };
    };
    let decoded = |label: &Vec<u8>| -> Option<Box<str>> {
        let mut text = Vec::with_capacity(label.len());
        match &reading.charset {
            Some(charset) => charset.decode(label, &mut text).ok()?,
            None => text.extend_from_slice(label),
        }
        Some(String::from_utf8(text).ok()?.into())
    };
    let shown = |label: &str| label.chars().map(|c| if c > '\u{ffff}' { '?' } else { c }).collect::<String>();
    let found: Option<Vec<Box<str>>> = found.iter().map(decoded).collect();
    match found {
        Some(found) if found.len() == known.len() && found.iter().zip(&**known).all(|(a, b)| shown(a) == **b) => {
            Ok(found.into())
        }
        _ => Err(Mismatch::Labels { column: column.to_owned() }),
    }
}

/// Whether a label as the server shows it may stand for another one: `?` is also what it shows for all characters above
/// U+FFFF, where the column's set has such.
pub fn may_hide(label: &str, charset: Option<&Charset>) -> bool {
    label.contains('?') && charset.is_none_or(Charset::is_wide)
}

/// How a column of a kind is read where the log says it is of a type; none where they do not fit.
fn step(kind: &ColumnKind, reading: &ColumnReading, logged: &TableMapColumn) -> Option<Step> {
    let (found, metadata) = (logged.column_type, logged.metadata);
    let small = u8::try_from(metadata).ok();
    let zero_date = reading.zero_date;
    match *kind {
        ColumnKind::Integer { bytes, unsigned } => {
            if logged.unsigned.is_some_and(|found| found != unsigned) {
                return None;
            }
            match (found, bytes, unsigned) {
                (TINY, 1, false) => Some(Step::I8),
                (TINY, 1, true) => Some(Step::U8),
                (SHORT, 2, false) => Some(Step::I16),
                (SHORT, 2, true) => Some(Step::U16),
                (INT24, 3, false) => Some(Step::I24),
                (INT24, 3, true) => Some(Step::U24),
                (LONG, 4, false) => Some(Step::I32),
                (LONG, 4, true) => Some(Step::U32),
                (LONGLONG, 8, false) => Some(Step::I64),
                (LONGLONG, 8, true) => Some(Step::U64),
                _ => None,
            }
        }
        ColumnKind::Float => (found == FLOAT && metadata == 4).then_some(Step::Float),
        ColumnKind::Double => (found == DOUBLE && metadata == 8).then_some(Step::Double),
        ColumnKind::Decimal { precision, scale } => {
            let same = found == NEWDECIMAL && metadata == u16::from(precision) * 256 + u16::from(scale);
            same.then(|| Step::Decimal { precision, scale, bytes: decimal::packed_bytes(precision, scale) })
        }
        ColumnKind::Text { .. } | ColumnKind::Bytes { .. } => counted_step(reading, found, metadata),
        ColumnKind::Binary { length } => {
            let width = if found == STRING { counted_width(found, metadata) } else { None };
            let length = usize::try_from(length).ok().filter(|&length| length == usize::from(metadata));
            width.zip(length).map(|(width, length)| Step::Padded { width, length })
        }
        ColumnKind::Enum(ref labels) => {
            let bytes = small.filter(|bytes| found == ENUM && matches!(bytes, 1 | 2))?;
            Some(Step::Enum { bytes, labels: Labels::clone(labels) })
        }
        ColumnKind::Set(ref labels) => {
            let bytes = small.filter(|bytes| found == SET && (1..=8).contains(bytes))?;
            Some(Step::Set { bytes, labels: Labels::clone(labels) })
        }
        ColumnKind::Json => length_of(JSON, logged).map(|width| Step::Json { width }),
        ColumnKind::Geometry => length_of(GEOMETRY, logged).map(|width| Step::Counted { width }),
        ColumnKind::Vector { .. } => length_of(VECTOR, logged).map(|width| Step::Counted { width }),
        ColumnKind::Bit { bits } => {
            let same = found == BIT && metadata >> 8 == u16::from(bits / 8) && metadata & 0xff == u16::from(bits % 8);
            same.then_some(Step::Fixed { bytes: bits.div_ceil(8).into() })
        }
        ColumnKind::Shown(shown) => {
            (found == STRING && usize::from(metadata) == shown.bytes()).then_some(Step::Shown(shown))
        }
        ColumnKind::Date => matches!(found, DATE | NEWDATE).then_some(Step::Date(zero_date)),
        ColumnKind::Time { fraction } => match found {
            TIME2 if metadata == u16::from(fraction) => Some(Step::Time { fraction }),
            TIME => Some(Step::OldTime { fraction }),
            _ => None,
        },
        ColumnKind::Datetime { fraction } => match found {
            DATETIME2 if metadata == u16::from(fraction) => Some(Step::Datetime { fraction, zero_date }),
            DATETIME => Some(Step::OldDatetime { fraction, zero_date }),
            _ => None,
        },
        ColumnKind::Timestamp { fraction } => match found {
            TIMESTAMP2 if metadata == u16::from(fraction) => Some(Step::Timestamp { fraction, zero_date }),
            TIMESTAMP => Some(Step::OldTimestamp { fraction, zero_date }),
            _ => None,
        },
        ColumnKind::Year => (found == YEAR).then_some(Step::Year),
    }
}

/// Text and bytes of variable length.
fn counted_step(reading: &ColumnReading, found: u8, metadata: u16) -> Option<Step> {
    let charset = reading.charset.as_ref().map(Arc::clone);
    match found {
        BLOB_COMPRESSED | VARCHAR_COMPRESSED => {
            Some(Step::Compressed { width: counted_width(found, metadata)?, charset })
        }
        VARCHAR | VAR_STRING | STRING | BLOB => {
            let width = counted_width(found, metadata)?;
            Some(match charset {
                Some(charset) => Step::Text { width, charset },
                None => Step::Counted { width },
            })
        }
        _ => None,
    }
}

/// Bytes of the length of a value, where the log's column is of this type.
fn length_of(expected: u8, logged: &TableMapColumn) -> Option<u8> {
    u8::try_from(logged.metadata).ok().filter(|width| logged.column_type == expected && (1..=4).contains(width))
}
