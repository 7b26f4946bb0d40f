//! A place in one server's log.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use cdchost_model::SourcePosition;

/// File and byte. Two are comparable only if they are of one server (one uuid).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogPosition {
    /// Name of the file.
    pub file: Arc<str>,
    /// Byte in it.
    pub offset: u64,
    /// The number that ends the file's name.
    number: u64,
}

impl BinlogPosition {
    /// A place; the file's name ends in a number that grows from file to file.
    pub fn new(file: &str, offset: u64) -> Self {
        let digits = file.rsplit('.').next().unwrap_or_default();
        Self { file: file.into(), offset, number: digits.parse().unwrap_or(0) }
    }

    /// Moves on to the end of an event, of which the log has only the lower 32 bits.
    pub fn advance(&mut self, end: u32) {
        let base = self.offset & !u64::from(u32::MAX);
        let near = base | u64::from(end);
        if near >= self.offset {
            self.offset = near;
        } else if self.offset - near > 1 << 31 {
            // The lower half began anew: the file is above 4 GiB.
            self.offset = near + (1 << 32);
        }
    }
}

impl Default for BinlogPosition {
    fn default() -> Self {
        Self::new("", 0)
    }
}

impl PartialOrd for BinlogPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some((self.number, self.offset).cmp(&(other.number, other.offset)))
    }
}

impl fmt::Display for BinlogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl From<&BinlogPosition> for SourcePosition {
    fn from(position: &BinlogPosition) -> Self {
        Self { file: Arc::clone(&position.file), offset: position.offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_by_number() {
        let at = BinlogPosition::new;
        assert!(at("binlog.999999", 500) < at("binlog.1000000", 4));
        assert!(at("binlog.000002", 500) < at("binlog.000002", 501));
    }

    #[test]
    fn positions_pass_four_gigabytes() {
        let mut position = BinlogPosition::new("binlog.000001", (1 << 32) - 100);
        position.advance(50);
        assert_eq!(position.offset, (1 << 32) + 50);
        position.advance(40);
        assert_eq!(position.offset, (1 << 32) + 50, "an older place changes nothing");
        position.advance(u32::MAX);
        assert_eq!(position.offset, (2 << 32) - 1);
    }
}
