//! What a column is on the server, read from its type as the server writes it.

use std::sync::Arc;

use cdchost_model::LogicalType;

/// A column's type with all that its values need to be read: from a row of a query and from a row in the log alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// TINYINT to BIGINT.
    Integer {
        /// 1 for TINYINT to 8 for BIGINT.
        bytes: u8,
        /// UNSIGNED or ZEROFILL.
        unsigned: bool,
    },
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// DECIMAL.
    Decimal {
        /// Digits in all, up to 65.
        precision: u8,
        /// Digits behind the point, up to 30.
        scale: u8,
    },
    /// CHAR, VARCHAR, TEXT and their kin.
    Text {
        /// Characters at most, where the server limits them.
        max: Option<u32>,
    },
    /// VARBINARY, BLOB and their kin.
    Bytes {
        /// Bytes at most, where the server limits them.
        max: Option<u32>,
    },
    /// BINARY, which the log holds without its trailing zeros.
    Binary {
        /// Bytes of every value.
        length: u32,
    },
    /// ENUM, with its labels from number 1 on.
    Enum(Labels),
    /// SET, with the label of each bit.
    Set(Labels),
    /// JSON.
    Json,
    /// DATE.
    Date,
    /// TIME.
    Time {
        /// Digits of fraction, up to 6.
        fraction: u8,
    },
    /// DATETIME.
    Datetime {
        /// Digits of fraction, up to 6.
        fraction: u8,
    },
    /// TIMESTAMP.
    Timestamp {
        /// Digits of fraction, up to 6.
        fraction: u8,
    },
    /// YEAR.
    Year,
    /// BIT: as many whole bytes as its bits need, the highest first.
    Bit {
        /// 1 to 64.
        bits: u8,
    },
    /// GEOMETRY and its kin: SRID and WKB, as stored.
    Geometry,
    /// VECTOR: four bytes a number, the lowest first, as stored.
    Vector {
        /// Numbers at most.
        dimensions: u32,
    },
    /// MariaDB's types that are stored as bytes and shown as text.
    Shown(ShownBytes),
}

/// Types of MariaDB whose bytes in the log are text in a query's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownBytes {
    /// UUID.
    Uuid,
    /// INET4.
    Inet4,
    /// INET6.
    Inet6,
}

/// Character set and collation of a column's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRules<'a> {
    /// Name of the set.
    pub charset: &'a str,
    /// Name of the collation.
    pub collation: &'a str,
}

impl<'a> TextRules<'a> {
    /// A column's type with its set and collation behind it, as the server writes them in a definition. Sets that are
    /// UTF-8 are left out.
    pub fn append_to(&self, native: &str) -> String {
        format!("{native}{CHARSET_MARK}{}{COLLATION_MARK}{}", self.charset, self.collation)
    }

    /// What [`Self::append_to`] has appended; none for UTF-8 and for what is no text.
    pub fn of(native: &'a str) -> Option<Self> {
        let (_, rules) = native.rsplit_once(CHARSET_MARK)?;
        let (charset, collation) = rules.split_once(COLLATION_MARK)?;
        // Inside of a label it would be followed by a quote.
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name(charset) && is_name(collation)).then_some(Self { charset, collation })
    }
}

const CHARSET_MARK: &str = " character set ";
const COLLATION_MARK: &str = " collate ";

/// The labels of an ENUM or SET.
pub type Labels = Arc<[Box<str>]>;

impl ColumnKind {
    /// Reads `information_schema.columns.column_type`; none for a type that is not offered.
    pub fn parse(native: &str) -> Option<Self> {
        let name_end = native.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(native.len());
        let (name, rest) = native.split_at(name_end);
        let name = name.to_ascii_lowercase();
        if let "enum" | "set" = name.as_str() {
            let labels: Labels = parse_labels(rest)?.into();
            return Some(if name == "enum" { Self::Enum(labels) } else { Self::Set(labels) });
        }
        let (sizes, attributes) = parse_sizes(rest)?;
        let unsigned = attributes.split_ascii_whitespace().any(|word| word == "unsigned" || word == "zerofill");
        let first = sizes.first().copied();
        let fraction = u8::try_from(first.unwrap_or(0)).ok().filter(|&digits| digits <= 6);
        let integer = |bytes| Some(Self::Integer { bytes, unsigned });
        match name.as_str() {
            "tinyint" => integer(1),
            "smallint" => integer(2),
            "mediumint" => integer(3),
            "int" => integer(4),
            "bigint" => integer(8),
            "float" => Some(Self::Float),
            "double" => Some(Self::Double),
            "decimal" => {
                let precision = u8::try_from(first.unwrap_or(10)).ok().filter(|digits| (1..=65).contains(digits))?;
                let scale = u8::try_from(sizes.get(1).copied().unwrap_or(0)).ok().filter(|digits| *digits <= 30)?;
                (scale <= precision).then_some(Self::Decimal { precision, scale })
            }
            "char" | "varchar" => Some(Self::Text { max: Some(first.unwrap_or(1)) }),
            "tinytext" => Some(Self::Text { max: Some(255) }),
            "text" | "mediumtext" | "longtext" => Some(Self::Text { max: None }),
            "binary" => Some(Self::Binary { length: first.unwrap_or(1) }),
            "varbinary" => Some(Self::Bytes { max: first }),
            "tinyblob" => Some(Self::Bytes { max: Some(255) }),
            "blob" | "mediumblob" | "longblob" => Some(Self::Bytes { max: None }),
            "json" => Some(Self::Json),
            "date" => Some(Self::Date),
            "time" => Some(Self::Time { fraction: fraction? }),
            "datetime" => Some(Self::Datetime { fraction: fraction? }),
            "timestamp" => Some(Self::Timestamp { fraction: fraction? }),
            "year" => Some(Self::Year),
            "bit" => {
                let bits = u8::try_from(first.unwrap_or(1)).ok().filter(|bits| (1..=64).contains(bits))?;
                Some(Self::Bit { bits })
            }
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geomcollection" | "geometrycollection" => Some(Self::Geometry),
            "vector" => Some(Self::Vector { dimensions: first? }),
            "uuid" => Some(Self::Shown(ShownBytes::Uuid)),
            "inet4" => Some(Self::Shown(ShownBytes::Inet4)),
            "inet6" => Some(Self::Shown(ShownBytes::Inet6)),
            _ => None,
        }
    }

    /// What its values mean outside of the server.
    pub fn logical(&self) -> LogicalType {
        match *self {
            Self::Integer { bytes: 1, unsigned: false } => LogicalType::Int8,
            Self::Integer { bytes: 1, unsigned: true } => LogicalType::Uint8,
            Self::Integer { bytes: 2, unsigned: false } => LogicalType::Int16,
            Self::Integer { bytes: 2, unsigned: true } | Self::Year => LogicalType::Uint16,
            Self::Integer { bytes: 3 | 4, unsigned: false } => LogicalType::Int32,
            Self::Integer { bytes: 3 | 4, unsigned: true } => LogicalType::Uint32,
            Self::Integer { unsigned: false, .. } => LogicalType::Int64,
            Self::Integer { unsigned: true, .. } => LogicalType::Uint64,
            Self::Float => LogicalType::Float32,
            Self::Double => LogicalType::Float64,
            Self::Decimal { precision, scale } => {
                LogicalType::Decimal { precision, scale: i8::try_from(scale).expect("a scale is 30 at most") }
            }
            Self::Text { max } => LogicalType::Text { max },
            Self::Enum(_) | Self::Set(_) => LogicalType::Text { max: None },
            Self::Bytes { max } => LogicalType::Bytes { max },
            Self::Binary { length } => LogicalType::Bytes { max: Some(length) },
            Self::Json => LogicalType::Json,
            Self::Date => LogicalType::Date,
            Self::Time { fraction } => LogicalType::Time { fraction },
            Self::Datetime { fraction } => LogicalType::Timestamp { fraction },
            Self::Timestamp { fraction } => LogicalType::TimestampUtc { fraction },
            Self::Bit { bits } => LogicalType::Bytes { max: Some(u32::from(bits.div_ceil(8))) },
            Self::Geometry => LogicalType::Geometry,
            Self::Vector { dimensions } => LogicalType::Bytes { max: dimensions.checked_mul(4) },
            Self::Shown(shown) => LogicalType::Text { max: Some(shown.characters()) },
        }
    }

    /// Whether its values are text in a character set of the column's own.
    pub fn has_charset(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Enum(_) | Self::Set(_))
    }

    /// Whether its values may be zero dates.
    pub fn is_date(&self) -> bool {
        matches!(self, Self::Date | Self::Datetime { .. } | Self::Timestamp { .. })
    }
}

impl ShownBytes {
    /// Characters of the longest text.
    fn characters(self) -> u32 {
        match self {
            Self::Uuid => 36,
            Self::Inet4 => 15,
            Self::Inet6 => 39,
        }
    }

    /// Bytes in the log.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Inet4 => 4,
            Self::Uuid | Self::Inet6 => 16,
        }
    }
}

/// `(10,2) unsigned zerofill` as sizes and the rest.
fn parse_sizes(rest: &str) -> Option<(Vec<u32>, &str)> {
    let Some(inner) = rest.trim_start().strip_prefix('(') else {
        return Some((Vec::new(), rest));
    };
    let (sizes, attributes) = inner.split_once(')')?;
    let sizes = sizes.split(',').map(|size| size.trim().parse().ok()).collect::<Option<Vec<u32>>>()?;
    Some((sizes, attributes))
}

/// `('a','it''s')` as labels, whatever follows. The server doubles quotes inside of labels, and writes
/// backslashes, ends of lines and NUL behind a backslash; all else as it is.
fn parse_labels(rest: &str) -> Option<Vec<Box<str>>> {
    let mut chars = rest.trim().strip_prefix('(')?.chars().peekable();
    let mut labels = Vec::new();
    loop {
        if chars.next()? != '\'' {
            return None;
        }
        let mut label = String::new();
        loop {
            match chars.next()? {
                '\'' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    label.push('\'');
                }
                '\'' => break,
                '\\' => label.push(match chars.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    '0' => '\0',
                    'Z' => '\u{1a}',
                    other => other,
                }),
                other => label.push(other),
            }
        }
        labels.push(label.into());
        match chars.next()? {
            ',' => {}
            ')' => return Some(labels),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
