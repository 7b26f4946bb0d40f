//! Patterns of table names: `database.table`, each part a regular expression.

use regex::Regex;

/// Which tables a list of patterns stands for.
///
/// A table is matched when at least one pattern matches it and none that begins with `!` does. A part that is only `*`
/// matches every name; a pattern always matches the whole name.
#[derive(Clone, Debug)]
pub struct TablePatterns {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    excludes: bool,
    database: Regex,
    table: Regex,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TablePatternError {
    /// There is no dot between database and table.
    #[error("table pattern `{0}` has no dot between database and table")]
    NoDot(String),
    /// It cannot be told which dot parts database and table.
    #[error("table pattern `{0}` has more than one dot that could part database and table")]
    ManyDots(String),
    /// A part is empty.
    #[error("table pattern `{0}` has an empty database or table")]
    EmptyPart(String),
    /// A part is no regular expression.
    #[error("table pattern `{pattern}` is not a regular expression: {reason}")]
    NotRegex {
        /// The whole pattern.
        pattern: String,
        /// What the parser says.
        reason: String,
    },
}

impl TablePatternError {
    /// What to do about it.
    pub fn instruction(&self) -> &'static str {
        match self {
            Self::NoDot(_) | Self::EmptyPart(_) => "write `database.table`, or `database.*` for all of its tables",
            Self::ManyDots(_) => "write a dot that belongs to a name as `\\.`, and any one character as `[^.]`",
            Self::NotRegex { .. } => "mend the expression; a part that is only `*` stands for every name",
        }
    }
}

impl TablePatterns {
    /// Reads patterns as they stand in the pipeline file.
    pub fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Self, TablePatternError> {
        let patterns = patterns.iter().map(|text| Pattern::parse(text.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { patterns })
    }

    /// Whether the table is one of those meant.
    pub fn matches(&self, database: &str, table: &str) -> bool {
        self.hits(false, database, table) && !self.leaves_out(database, table)
    }

    /// Whether the table is one of those that are not meant, by a pattern that begins with `!`.
    pub fn leaves_out(&self, database: &str, table: &str) -> bool {
        self.hits(true, database, table)
    }

    fn hits(&self, excludes: bool, database: &str, table: &str) -> bool {
        let hits = |p: &Pattern| p.excludes == excludes && p.database.is_match(database) && p.table.is_match(table);
        self.patterns.iter().any(hits)
    }

    /// The patterns that include and match none of these tables, given as database and table.
    pub fn unmet<'a>(&'a self, tables: &[(&str, &str)]) -> impl Iterator<Item = &'a str> {
        let meets = |p: &&Pattern| tables.iter().any(|(d, t)| p.database.is_match(d) && p.table.is_match(t));
        self.patterns.iter().filter(|p| !p.excludes).filter(move |p| !meets(p)).map(|p| p.text.as_str())
    }

    /// The pattern that leaves one table out, as it is written in the pipeline file, in quotes.
    pub fn leaving_out(database: &str, table: &str) -> String {
        let pattern = format!("!{}.{}", regex::escape(database), regex::escape(table));
        let is_plain = !pattern.contains(['\\', '"']) && !pattern.contains(char::is_control);
        match pattern.contains(['\'', '\n']) {
            _ if is_plain => format!("\"{pattern}\""),
            false => format!("'{pattern}'"),
            true => toml::Value::String(pattern).to_string(),
        }
    }

    /// Whether there is any pattern that includes.
    pub fn can_match(&self) -> bool {
        self.patterns.iter().any(|p| !p.excludes)
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, TablePatternError> {
        let (excludes, body) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (database, table) = split(text, body)?;
        if database.is_empty() || table.is_empty() {
            return Err(TablePatternError::EmptyPart(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), excludes, database: compile(text, database)?, table: compile(text, table)? })
    }
}

fn compile(pattern: &str, part: &str) -> Result<Regex, TablePatternError> {
    let part = if part == "*" { ".*" } else { part };
    // Checked alone first, so that the message speaks of what the user wrote.
    Regex::new(part).and_then(|_| Regex::new(&format!("^(?s:{part})$"))).map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        TablePatternError::NotRegex { pattern: pattern.to_owned(), reason }
    })
}

/// Parts a pattern at the dot between its names: a dot that is not escaped, not inside brackets, and not repeated by
/// what follows it. Where every dot is repeated, as in `sales.*`, the last one parts.
fn split<'a>(pattern: &str, body: &'a str) -> Result<(&'a str, &'a str), TablePatternError> {
    let dots = plain_dots(body);
    let repeated = |at: &usize| matches!(body.as_bytes().get(at + 1), Some(b'*' | b'+' | b'?' | b'{'));
    let single: Vec<usize> = dots.iter().copied().filter(|at| !repeated(at)).collect();
    let at = match (single.as_slice(), dots.last()) {
        ([at], _) => *at,
        ([], Some(last)) => *last,
        ([], None) => return Err(TablePatternError::NoDot(pattern.to_owned())),
        _ => return Err(TablePatternError::ManyDots(pattern.to_owned())),
    };
    let (database, rest) = body.split_at(at);
    Ok((database, &rest[1..]))
}

fn plain_dots(body: &str) -> Vec<usize> {
    let (mut dots, mut depth, mut escaped) = (Vec::new(), 0_i32, false);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'.' if depth == 0 => dots.push(at),
            _ => {}
        }
    }
    dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], yes: &[(&str, &str)], no: &[(&str, &str)]) {
        let patterns = TablePatterns::parse(patterns).unwrap();
        for (database, table) in yes {
            assert!(patterns.matches(database, table), "{database}.{table} should match");
        }
        for (database, table) in no {
            assert!(!patterns.matches(database, table), "{database}.{table} should not match");
        }
    }

    #[test]
    fn each_part_matches_the_whole_name() {
        check(
            &["sales.orders"],
            &[("sales", "orders")],
            &[("sales", "orders2"), ("sales2", "orders"), ("s", "orders")],
        );
        check(&["sales.*"], &[("sales", "a"), ("sales", "a.b"), ("sales", "")], &[("sale", "a")]);
        check(&["*.orders"], &[("x", "orders")], &[("x", "order")]);
        check(&[".*.*"], &[("x", "y")], &[]);
        check(&["crm.customers_[0-9]+"], &[("crm", "customers_12")], &[("crm", "customers_"), ("crm", "customers_1a")]);
        check(&["sales_.*.orders"], &[("sales_eu", "orders")], &[("sales", "orders")]);
        check(&["sales.o.*"], &[("sales", "orders")], &[("sales", "items")]);
        check(&["a|b.t"], &[("a", "t"), ("b", "t")], &[("ab", "t")]);
    }

    #[test]
    fn dots_of_names_are_escaped() {
        check(&["odd\\.db.t"], &[("odd.db", "t")], &[("oddxdb", "t")]);
        check(&["odd[.]db.t"], &[("odd.db", "t")], &[("oddxdb", "t")]);
    }

    #[test]
    fn a_table_of_any_name_can_be_left_out() {
        assert_eq!(TablePatterns::leaving_out("sales", "orders_1"), "\"!sales.orders_1\"");
        assert_eq!(TablePatterns::leaving_out("sales", "k.l (2)"), r"'!sales.k\.l \(2\)'");
        for (database, table) in [("a.b", "c*"), ("it's", "a.b"), ("x\"", "y\\z"), ("ü", "-$ "), ("n", "a\n.'b")] {
            let written = TablePatterns::leaving_out(database, table);
            let read: toml::Table = format!("p = [{written}, \".*.*\"]").parse().unwrap();
            let patterns: Vec<String> = read["p"].clone().try_into().unwrap();
            check(&patterns.iter().map(String::as_str).collect::<Vec<_>>(), &[("a", "b")], &[(database, table)]);
        }
    }

    #[test]
    fn exclusion_wins_wherever_it_stands() {
        check(&["!sales.tmp_.*", "sales.*"], &[("sales", "orders")], &[("sales", "tmp_1")]);
        assert!(!TablePatterns::parse(&["!sales.*"]).unwrap().can_match());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |text| TablePatterns::parse(&[text]).unwrap_err();
        assert_eq!(error("orders"), TablePatternError::NoDot("orders".into()));
        assert_eq!(error("a.b.c"), TablePatternError::ManyDots("a.b.c".into()));
        assert_eq!(error(".t"), TablePatternError::EmptyPart(".t".into()));
        assert_eq!(error("db."), TablePatternError::EmptyPart("db.".into()));
        let unclosed = error("db.(a").to_string();
        assert_eq!(unclosed, "table pattern `db.(a` is not a regular expression: unclosed group");
    }

    #[test]
    fn a_pattern_without_a_table_can_be_told() {
        let patterns = TablePatterns::parse(&["a.x", "!a.y", "b.x"]).unwrap();
        assert_eq!(patterns.unmet(&[("b", "x"), ("a", "y")]).collect::<Vec<_>>(), ["a.x"]);
    }
}
