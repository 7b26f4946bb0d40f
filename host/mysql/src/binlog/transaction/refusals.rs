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
        let table = self.named(database, table);
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

    /// The captured table that a statement's name may be, or the name.
    pub(super) fn named(&self, database: &str, table: &str) -> TableId {
        let captured = self.find(database, table).map(|place| self.tables.layout(place).schema.table.clone());
        captured.unwrap_or_else(|| TableId::new(database, table))
    }

    fn here(&self) -> String {
        match &self.current {
            Some(current) => place(&current.facts),
            None => format!(" (at {})", self.position),
        }
    }
}

/// What the server takes bytes 0x80 to 0x9f of latin1 for: those of Windows' code page 1252.
const WINDOWS: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}',
    '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}',
    '\u{17e}', '\u{178}',
];

/// How a session writes its statements, by the number of a collation of its character set.
enum Writing {
    Utf8,
    Latin1,
    /// Characters of two bytes, of which the second may look like a quote or a backslash; which bytes begin one.
    Pairs(fn(u8) -> bool),
    /// ASCII is ASCII, and nothing else is.
    OverAscii,
}

impl Writing {
    fn of(collation: Option<u16>) -> Self {
        // What a server writes by itself is in UTF-8. MariaDB's collations that do not pad are numbered 1024 higher.
        let Some(number) = collation.map(|number| if matches!(number, 1024..2048) { number - 1024 } else { number })
        else {
            return Self::Utf8;
        };
        match number {
            33 | 45 | 46 | 76 | 83 | 192..=247 | 255..=327 | 576..=578 | 608..=610 | 2048..=2559 => Self::Utf8,
            5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => Self::Latin1,
            // big5
            1 | 84 => Self::Pairs(|byte| matches!(byte, 0xa1..=0xf9)),
            // sjis, cp932
            13 | 88 | 95 | 96 => Self::Pairs(|byte| matches!(byte, 0x81..=0x9f | 0xe0..=0xfc)),
            // gbk, gb18030
            28 | 87 | 248..=250 => Self::Pairs(|byte| matches!(byte, 0x81..=0xfe)),
            _ => Self::OverAscii,
        }
    }
}

/// A character of which nothing more is known than that it is not ASCII.
pub(super) const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// A statement's text out of the bytes of its session's character set. ASCII keeps its meaning; what else is neither in
/// UTF-8 nor latin1 becomes unknown characters.
pub(super) fn decode(text: &[u8], collation: Option<u16>) -> String {
    match Writing::of(collation) {
        Writing::Utf8 => String::from_utf8_lossy(text).into_owned(),
        Writing::Latin1 => text.iter().map(|&byte| of_latin1(byte)).collect(),
        Writing::Pairs(is_lead) => decode_pairs(text, is_lead),
        Writing::OverAscii => decode_pairs(text, |_| false),
    }
}

/// Whether a name in a statement may be that of a table or database that is known.
pub(super) fn may_be(name: &str, known: &str) -> bool {
    // Unknown characters may be of several bytes, so what is next to each other counts as one.
    let outline = |text: &str| {
        text.chars().fold(String::new(), |mut outline, char| {
            if char.is_ascii() {
                outline.push(char.to_ascii_lowercase());
            } else if !outline.ends_with(UNKNOWN) {
                outline.push(UNKNOWN);
            }
            outline
        })
    };
    if name.contains(UNKNOWN) { outline(name) == outline(known) } else { name.eq_ignore_ascii_case(known) }
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
        assert_eq!(decode(b"DROP TABLE `t\xe4`", None), "DROP TABLE `t\u{fffd}`");
        assert_eq!(decode(b"t\xe4", Some(1032)), "t\u{e4}", "latin1_swedish_nopad_ci");
        assert_eq!(decode("`\u{430}\u{431}`".as_bytes(), Some(51)), "`\u{fffd}\u{fffd}\u{fffd}\u{fffd}`", "cp1251");
        assert_eq!(decode(b"'\x95\x5c', `a\xb1`, b", Some(13)), "'\u{fffd}', `a\u{fffd}`, b", "sjis");
        assert_eq!(decode(b"'\x95\x5c', `a\xb1\x60`", Some(28)), "'\u{fffd}', `a\u{fffd}`", "gbk");
    }

    #[test]
    fn names_that_are_half_known_are_compared_by_what_is_known() {
        for (name, known, expected) in [
            ("t\u{fffd}", "t\u{e4}\u{f6}", true),
            ("\u{fffd}\u{fffd}1", "\u{442}1", true),
            ("\u{fffd}", "t\u{e4}", false),
            ("\u{fffd}", "t", false),
            ("t", "T", true),
            ("t", "t\u{e4}", false),
        ] {
            assert_eq!(may_be(name, known), expected, "{name} {known}");
        }
    }
}
