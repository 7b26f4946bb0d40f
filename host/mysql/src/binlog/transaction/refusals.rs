//! Why a stream cannot go on, in words.

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TableId;
use cdchost_mysql_ddl::Statement;

use super::Transactions;
use crate::binlog::tables::place;
use crate::remedy::{ANEW, leave_out};

impl Transactions {
    /// An XA transaction was prepared that cannot be held until its end.
    #[cold]
    pub(super) fn prepared_on_captured(&self) -> ConnectorError {
        let instruction = format!(
            "XA transactions on captured tables are not offered yet: leave the tables out and start the pipeline again, \
             or change them by ordinary transactions and {ANEW}"
        );
        self.refused("mysql-xa", "an XA transaction changed captured tables", &instruction)
    }

    /// A final stop at the open transaction.
    #[cold]
    pub(super) fn refused(&self, code: &str, what: &str, instruction: &str) -> ConnectorError {
        let message = format!("{what}{}", self.here());
        ConnectorError::stop(StopClass::Source, code, message).with_instruction(instruction)
    }

    /// A captured table was changed in a way that cannot be carried.
    #[cold]
    pub(super) fn changed(&self, statement: &Statement<'_>, database: &str, table: &str) -> ConnectorError {
        let table = TableId::new(database, table);
        let message =
            format!("table {table} was changed in a way that is not carried yet{}: {}", self.here(), statement.shown());
        let instruction = leave_out(&table);
        ConnectorError::stop(StopClass::Schema, "mysql-table-changed", message)
            .with_table(table)
            .with_instruction(instruction)
    }

    /// Bytes or an order of events that no healthy server sends. The connection may have been at fault: try again.
    #[cold]
    pub(super) fn malformed(&self, error: impl ToString) -> ConnectorError {
        let message = format!("the log cannot be read{}: {}", self.here(), error.to_string());
        ConnectorError::restart(StopClass::Source, "mysql-malformed-log", message)
            .with_instruction(format!("if it comes again: check the file with mysqlbinlog, then {ANEW}"))
    }

    fn here(&self) -> String {
        match &self.current {
            Some(current) => place(&current.facts),
            None => format!(" (at {})", self.position),
        }
    }
}

/// Collations of the character set latin1.
const LATIN1: [u16; 8] = [5, 8, 15, 31, 47, 48, 49, 94];
/// What the server takes bytes 0x80 to 0x9f of latin1 for: those of Windows' code page 1252.
const WINDOWS: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}',
    '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}',
    '\u{17e}', '\u{178}',
];

/// Which bytes begin a character of two in character sets whose second bytes may look like a quote or a backslash.
fn leads(collation: u16) -> Option<fn(u8) -> bool> {
    match collation {
        // big5
        1 | 84 => Some(|byte| matches!(byte, 0xa1..=0xf9)),
        // sjis, cp932
        13 | 88 | 95 | 96 => Some(|byte| matches!(byte, 0x81..=0x9f | 0xe0..=0xfc)),
        // gbk, gb18030
        28 | 87 | 248..=250 => Some(|byte| matches!(byte, 0x81..=0xfe)),
        _ => None,
    }
}

/// A character of which nothing more is known than that it is not ASCII.
pub(super) const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// A statement's text out of the bytes of its session's character set. Where that is neither latin1 nor UTF-8 each byte
/// is taken for a character, so that ASCII keeps its meaning; where ASCII may be half of a character, both halves are an
/// unknown one.
pub(super) fn decode(text: &[u8], collation: Option<u16>) -> String {
    if let Some(is_lead) = collation.and_then(leads) {
        return decode_pairs(text, is_lead);
    }
    let is_latin1 = collation.is_some_and(|collation| LATIN1.contains(&collation));
    match std::str::from_utf8(text) {
        Ok(text) if !is_latin1 || text.is_ascii() => text.to_owned(),
        _ => text.iter().map(|&byte| of_latin1(byte)).collect(),
    }
}

fn decode_pairs(text: &[u8], is_lead: fn(u8) -> bool) -> String {
    let mut bytes = text.iter().copied().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(if byte.is_ascii() { byte.into() } else { UNKNOWN });
        bytes.next_if(|&next| is_lead(byte) && next >= 0x40 && next != 0x7f);
    }
    out
}

fn of_latin1(byte: u8) -> char {
    WINDOWS.get(usize::from(byte).wrapping_sub(0x80)).copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_in_their_sessions_character_set() {
        assert_eq!(decode("t\u{e4}".as_bytes(), Some(45)), "t\u{e4}");
        assert_eq!(decode("t\u{e4}".as_bytes(), Some(8)), "t\u{c3}\u{a4}", "valid UTF-8 by chance");
        assert_eq!(decode(b"t\xe4\x80\x9f", Some(8)), "t\u{e4}\u{20ac}\u{178}");
        assert_eq!(decode(b"DROP TABLE `t\xe4`", None), "DROP TABLE `t\u{e4}`");
        assert_eq!(decode(b"'\x95\x5c', `a\xb1`, b", Some(13)), "'\u{fffd}', `a\u{fffd}`, b", "sjis");
        assert_eq!(decode(b"'\x95\x5c', `a\xb1\x60`", Some(28)), "'\u{fffd}', `a\u{fffd}`", "gbk");
    }
}
