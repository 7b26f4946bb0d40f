//! How the images of one table map are read: compiled once, after the map was checked against the table as we know it.

use cdchost_mysql_wire::binlog::{TableMap, TableMapColumn};
use cdchost_mysql_wire::column_type::{
    BIT, BLOB, DATE, DATETIME2, DOUBLE, ENUM, FLOAT, GEOMETRY, INT24, JSON, LONG, LONGLONG, NEWDATE, NEWDECIMAL, SET,
    SHORT, STRING, TIME2, TIMESTAMP2, TINY, VAR_STRING, VARCHAR, VECTOR, YEAR,
};

use crate::column::temporal::fraction_bytes;
use crate::column::{ColumnKind, Labels, TableLayout, decimal};

/// How one value is read.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Text or bytes behind a length of so many bytes.
    Counted {
        width: u8,
    },
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
    Date,
    Time {
        fraction: u8,
    },
    Datetime {
        fraction: u8,
    },
    Timestamp {
        fraction: u8,
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
}

/// How far one value reaches, where it is only passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// So many bytes.
    Fixed(usize),
    /// As many as a length of so many bytes says.
    Counted(u8),
}

/// How the images of a table are passed over. Needs nothing but the table map.
#[derive(Debug)]
pub struct PassPlan {
    pub(crate) columns: Vec<Reach>,
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
    /// An ENUM or SET with other labels.
    #[error("column `{column}` has other labels in the log than it is known with")]
    Labels {
        /// Its name.
        column: String,
    },
}

impl Plan {
    /// Columns of an image.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Checks a table map against the table as it is known, and compiles how its images are read.
    pub fn compile(map: &TableMap, layout: &TableLayout) -> Result<Self, Mismatch> {
        let known = &layout.schema.fields;
        if map.columns.len() != known.len() {
            return Err(Mismatch::Count { known: known.len(), found: map.columns.len() });
        }
        let mut columns = Vec::with_capacity(known.len());
        for (place, ((field, kind), logged)) in known.iter().zip(&layout.kinds).zip(&map.columns).enumerate() {
            if let Some(found) = logged.name.as_ref().filter(|found| **found != field.name) {
                let (known, found) = (field.name.clone(), found.clone());
                return Err(Mismatch::Name { place: place + 1, known, found });
            }
            let step = step(kind, logged).ok_or_else(|| Mismatch::Type {
                column: field.name.clone(),
                known: field.native_type.clone(),
                found: logged.column_type,
                metadata: logged.metadata,
            })?;
            if let (Step::Enum { labels, .. } | Step::Set { labels, .. }, Some(found)) = (&step, &logged.labels)
                && !labels.iter().map(|label| label.as_bytes()).eq(found.iter().map(Vec::as_slice))
            {
                return Err(Mismatch::Labels { column: field.name.clone() });
            }
            columns.push(PlannedColumn { step, nullable: field.nullable });
        }
        Ok(Self { columns })
    }
}

/// How a column of a kind is read where the log says it is of a type; none where they do not fit.
fn step(kind: &ColumnKind, logged: &TableMapColumn) -> Option<Step> {
    let (found, metadata) = (logged.column_type, logged.metadata);
    let small = u8::try_from(metadata).ok();
    let fits = |types: &[u8]| types.contains(&found);
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
        ColumnKind::Text { .. } | ColumnKind::Bytes { .. } => {
            let width = if fits(&[VARCHAR, VAR_STRING, STRING, BLOB]) { counted_width(found, metadata) } else { None };
            width.map(|width| Step::Counted { width })
        }
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
        ColumnKind::Json => {
            let width = small.filter(|width| found == JSON && (1..=4).contains(width))?;
            Some(Step::Json { width })
        }
        ColumnKind::Date => fits(&[DATE, NEWDATE]).then_some(Step::Date),
        ColumnKind::Time { fraction } => {
            (found == TIME2 && metadata == u16::from(fraction)).then_some(Step::Time { fraction })
        }
        ColumnKind::Datetime { fraction } => {
            (found == DATETIME2 && metadata == u16::from(fraction)).then_some(Step::Datetime { fraction })
        }
        ColumnKind::Timestamp { fraction } => {
            (found == TIMESTAMP2 && metadata == u16::from(fraction)).then_some(Step::Timestamp { fraction })
        }
        ColumnKind::Year => (found == YEAR).then_some(Step::Year),
    }
}

/// Bytes of the length in front of texts and bytes.
fn counted_width(found: u8, metadata: u16) -> Option<u8> {
    match found {
        BLOB => u8::try_from(metadata).ok().filter(|width| (1..=4).contains(width)),
        _ => Some(if metadata > 255 { 2 } else { 1 }),
    }
}

impl PassPlan {
    /// Columns of an image.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Compiles how images are passed over; none for a type whose values' lengths are not known.
    pub fn compile(map: &TableMap) -> Option<Self> {
        Some(Self { columns: map.columns.iter().map(reach).collect::<Option<_>>()? })
    }
}

fn reach(column: &TableMapColumn) -> Option<Reach> {
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
        VARCHAR | VAR_STRING | STRING => Reach::Counted(counted_width(column.column_type, metadata)?),
        BLOB | JSON | GEOMETRY | VECTOR => Reach::Counted(digits.filter(|width| (1..=4).contains(width))?),
        _ => return None,
    })
}
