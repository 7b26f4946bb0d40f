//! A table's columns in memory: what each is on the server, and its values as they are gathered row by row.

mod buffer;
pub(crate) mod bytes;
pub(crate) mod decimal;
mod kind;
mod layout;
pub(crate) mod moment;
pub(crate) mod shown;
pub(crate) mod temporal;

pub use buffer::Column;
pub use kind::{ColumnKind, Labels, ShownBytes, TextRules};
pub use layout::{ColumnError, ColumnReading, Columns, PRIMARY, TableLayout, ValueRules};
pub use moment::ZeroDate;

/// Why a value cannot be taken. Never holds the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The bytes end inside the value.
    #[error("its bytes end too early")]
    Short,
    /// A date or time that the server stores but no calendar has.
    #[error("it is a date that no calendar has: zero, or of month or day zero, or of a day behind its month's last")]
    ZeroDate,
    /// Bytes that are not the text they are said to be.
    #[error("it is no valid UTF-8")]
    Text,
    /// Bytes that are no character of the column's set.
    #[error("it has bytes that are no character of its character set")]
    Unmapped,
    /// NULL in a column that has none.
    #[error("it is NULL in a column that is NOT NULL")]
    Null,
    /// More bytes than a batch can hold.
    #[error("a batch of its column would pass 2 GiB")]
    TooLarge,
    /// Anything else; names the kind of value.
    #[error("it is no valid {0}")]
    Malformed(&'static str),
}
