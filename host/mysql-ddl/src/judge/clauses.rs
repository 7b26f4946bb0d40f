//! The clauses of an ALTER TABLE: which of them leave columns, key, name and contents alone.

use crate::lex::Token;

/// Options of a table that may be written without `DEFAULT` and with or without `=`.
const OPTIONS: [&str; 28] = [
    "ENGINE",
    "COMMENT",
    "AUTO_INCREMENT",
    "ROW_FORMAT",
    "AVG_ROW_LENGTH",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "KEY_BLOCK_SIZE",
    "CHECKSUM",
    "COMPRESSION",
    "ENCRYPTION",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "DELAY_KEY_WRITE",
    "INSERT_METHOD",
    "CONNECTION",
    "PASSWORD",
    "SECONDARY_ENGINE",
    "ALGORITHM",
    "LOCK",
    "CHARSET",
    "COLLATE",
    "CHARACTER",
    "DEFAULT",
    "AUTOEXTEND_SIZE",
    "ENGINE_ATTRIBUTE",
];

/// Whether a partition changes places with another table.
pub(super) fn exchanges(tokens: &[Token<'_>]) -> bool {
    word(tokens, 0) == "EXCHANGE" && word(tokens, 1) == "PARTITION"
}

/// Work on partitions that leaves every row in the table.
const PARTITION_WORK: [&str; 7] = ["REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR", "COALESCE"];

/// What all clauses do, in a word, if none of them touches columns, key, name or contents; none if one may.
pub(super) fn harmless(tokens: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    // Such a clause stands alone, and the commas in it part partitions.
    if PARTITION_WORK.contains(&word(tokens, 0).as_str()) && word(tokens, 1) == "PARTITION" {
        return Some("partition");
    }
    let mut reason = "option";
    for clause in split(tokens) {
        reason = harmless_clause(clause, by_primary_key)?;
    }
    Some(reason)
}

/// Where a new name begins, if a clause gives the table one.
pub(super) fn new_name(tokens: &[Token<'_>]) -> Option<usize> {
    let mut start = 0;
    for clause in split(tokens) {
        if word(clause, 0) == "RENAME" && !matches!(word(clause, 1).as_str(), "INDEX" | "KEY" | "COLUMN") {
            let skipped = usize::from(matches!(word(clause, 1).as_str(), "TO" | "AS"))
                + usize::from(clause.get(1) == Some(&Token::Mark('=')));
            return Some(start + 1 + skipped);
        }
        start += clause.len() + 1;
    }
    None
}

fn harmless_clause(clause: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    let first = word(clause, 0);
    let second = word(clause, 1);
    match first.as_str() {
        "ADD" => added(clause),
        "DROP" => dropped(clause, by_primary_key),
        "RENAME" if matches!(second.as_str(), "INDEX" | "KEY") => Some("index"),
        "ALTER" if matches!(second.as_str(), "INDEX" | "CHECK" | "CONSTRAINT") => Some("index"),
        "ENABLE" | "DISABLE" if second == "KEYS" => Some("index"),
        "ORDER" if second == "BY" => Some("option"),
        "FORCE" | "WITH" | "WITHOUT" => Some("option"),
        // Rows only change their place.
        "PARTITION" if second == "BY" => Some("partition"),
        "REMOVE" if second == "PARTITIONING" => Some("partition"),
        option if OPTIONS.contains(&option) => only_options(clause).then_some("option"),
        _ => None,
    }
}

fn added(clause: &[Token<'_>]) -> Option<&'static str> {
    // ADD [CONSTRAINT [name]] …
    let mut at = 1;
    if word(clause, at) == "CONSTRAINT" {
        at += 1;
        if !matches!(word(clause, at).as_str(), "FOREIGN" | "CHECK" | "UNIQUE" | "PRIMARY") {
            at += 1;
        }
    }
    match word(clause, at).as_str() {
        "PARTITION" => Some("partition"),
        "FULLTEXT" | "SPATIAL" | "UNIQUE" | "FOREIGN" => Some("index"),
        // Without quotes these are no names of columns.
        "INDEX" | "KEY" | "CHECK" => Some("index"),
        _ => None,
    }
}

fn dropped(clause: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    let named_primary = match clause.get(2) {
        Some(Token::Word(name)) => name.eq_ignore_ascii_case("PRIMARY"),
        Some(Token::Name(name)) => name.eq_ignore_ascii_case("PRIMARY"),
        _ => true,
    };
    match word(clause, 1).as_str() {
        "INDEX" | "KEY" | "CONSTRAINT" if by_primary_key && !named_primary => Some("index"),
        "FOREIGN" | "CHECK" => Some("index"),
        _ => None,
    }
}

/// Options may follow each other without commas; whatever else stands among them is not understood.
fn only_options(clause: &[Token<'_>]) -> bool {
    let mut at = 0;
    while at < clause.len() {
        let name = word(clause, at);
        if !OPTIONS.contains(&name.as_str()) {
            return false;
        }
        at += 1;
        if name == "DEFAULT" {
            continue;
        }
        if name == "CHARACTER" {
            if word(clause, at) != "SET" {
                return false;
            }
            at += 1;
        }
        if clause.get(at) == Some(&Token::Mark('=')) {
            at += 1;
        }
        // An engine that keeps nothing.
        if name == "ENGINE" && word(clause, at) == "BLACKHOLE" {
            return false;
        }
        at += 1;
    }
    true
}

/// Clauses between the commas that stand in no bracket.
fn split<'t, 's>(tokens: &'t [Token<'s>]) -> impl Iterator<Item = &'t [Token<'s>]> {
    let mut depth = 0u32;
    tokens.split(move |token| {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Mark(',')
    })
}

/// The keyword at a place, in capitals; empty for anything else.
fn word(clause: &[Token<'_>], at: usize) -> String {
    match clause.get(at) {
        Some(Token::Word(word)) => word.to_ascii_uppercase(),
        _ => String::new(),
    }
}
