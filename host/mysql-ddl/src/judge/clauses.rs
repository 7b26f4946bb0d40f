//! The clauses of an ALTER TABLE: which of them leave columns, key, name and contents alone.

use crate::lex::Token;

/// Options of a table that may be written without `DEFAULT` and with or without `=`.
const OPTIONS: [&str; 34] = [
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
    "TRANSACTIONAL",
    "PAGE_CHECKSUM",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "ENCRYPTED",
    "ENCRYPTION_KEY_ID",
];

/// Engines that keep every row, and tell of each change.
const KEEPING_ENGINES: [&str; 7] = ["INNODB", "MYISAM", "ARIA", "ROCKSDB", "TOKUDB", "NDB", "NDBCLUSTER"];

/// Engines that may lose rows or columns where a table is changed to them, and log what they keep.
const LOGGING_ENGINES: [&str; 3] = ["MEMORY", "ARCHIVE", "CSV"];

/// Other words that clauses begin with that name no other table, or only read it as a foreign key does.
const OF_THE_TABLE_ALONE: [&str; 24] = [
    "ADD",
    "ALTER",
    "CHANGE",
    "MODIFY",
    "DROP",
    "ORDER",
    "FORCE",
    "WITH",
    "WITHOUT",
    "ENABLE",
    "DISABLE",
    "PARTITION",
    "REMOVE",
    "DISCARD",
    "IMPORT",
    "TRUNCATE",
    "REORGANIZE",
    "REBUILD",
    "OPTIMIZE",
    "ANALYZE",
    "CHECK",
    "REPAIR",
    "COALESCE",
    "UNION",
];

/// Whether a clause concerns nothing but the table that is altered.
pub(super) fn is_of_the_table_alone(clause: &[Token<'_>]) -> bool {
    let first = word(clause, 0);
    OF_THE_TABLE_ALONE.contains(&first.as_str())
        || OPTIONS.contains(&first.as_str())
        || (first == "CONVERT" && word(clause, 1) == "TO")
}

/// Work on partitions that leaves every row in the table.
const PARTITION_WORK: [&str; 7] = ["REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR", "COALESCE"];

/// The word for a foreign key whose changes of rows are in no log.
pub const CASCADE: &str = "cascading-foreign-key";

/// What all clauses do, in a word, if none of them touches columns, key, name or contents; none if one may.
pub(super) fn harmless(tokens: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    // Such a clause stands alone, and the commas in it part partitions.
    if PARTITION_WORK.contains(&word(tokens, 0).as_str()) && word(tokens, 1) == "PARTITION" {
        return Some("partition");
    }
    let mut reason = "option";
    for clause in split(tokens) {
        let found = harmless_clause(clause, by_primary_key)?;
        reason = if reason == CASCADE { reason } else { found };
    }
    Some(reason)
}

/// Where the clauses stand.
pub(super) fn places(tokens: &[Token<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut start = 0;
    let place = |clause: &[Token<'_>]| {
        let place = start..start + clause.len();
        start = place.end + 1;
        place
    };
    split(tokens).map(place).collect()
}

fn harmless_clause(clause: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    let first = word(clause, 0);
    let second = word(clause, 1);
    match first.as_str() {
        "ADD" => added(clause),
        "DROP" => dropped(clause, by_primary_key),
        "RENAME" if matches!(second.as_str(), "INDEX" | "KEY") => Some("index"),
        "ALTER" if matches!(second.as_str(), "INDEX" | "KEY" | "CHECK" | "CONSTRAINT") => Some("index"),
        "ENABLE" | "DISABLE" if second == "KEYS" => Some("index"),
        "ORDER" if second == "BY" => Some("option"),
        "FORCE" | "WITH" | "WITHOUT" | "SECONDARY_LOAD" | "SECONDARY_UNLOAD" => Some("option"),
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
        if word(clause, at) == "IF" {
            // NOT EXISTS
            at += 3;
        }
        if !matches!(word(clause, at).as_str(), "FOREIGN" | "CHECK" | "UNIQUE" | "PRIMARY") {
            at += 1;
        }
    }
    match word(clause, at).as_str() {
        "PARTITION" => Some("partition"),
        "FULLTEXT" | "SPATIAL" | "UNIQUE" => Some("index"),
        "FOREIGN" if cascades(&clause[at..]) => Some(CASCADE),
        "FOREIGN" => Some("index"),
        // Without quotes these are no names of columns.
        "INDEX" | "KEY" | "CHECK" => Some("index"),
        _ => None,
    }
}

/// Whether rows change with those that a foreign key points to.
fn cascades(clause: &[Token<'_>]) -> bool {
    (0..clause.len()).any(|at| {
        word(clause, at) == "ON"
            && matches!(word(clause, at + 1).as_str(), "DELETE" | "UPDATE")
            && matches!(word(clause, at + 2).as_str(), "CASCADE" | "SET")
    })
}

fn dropped(clause: &[Token<'_>], by_primary_key: bool) -> Option<&'static str> {
    let name = if word(clause, 2) == "IF" { clause.get(4) } else { clause.get(2) };
    let named_primary = match name {
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
        if name == "ENGINE" && !keeps(clause.get(at)) {
            return false;
        }
        at += 1;
    }
    true
}

fn keeps(engine: Option<&Token<'_>>) -> bool {
    let name = match engine {
        Some(Token::Word(name)) => name,
        Some(Token::Name(name) | Token::Literal(name)) => name.as_str(),
        _ => return false,
    };
    is_one_of(&KEEPING_ENGINES, name)
}

/// Whether all rows of an engine's tables are its own, and all of their changes in the log.
pub fn logs_its_rows(engine: &str) -> bool {
    is_one_of(&KEEPING_ENGINES, engine) || is_one_of(&LOGGING_ENGINES, engine)
}

fn is_one_of(engines: &[&str], name: &str) -> bool {
    engines.iter().any(|engine| name.eq_ignore_ascii_case(engine))
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
