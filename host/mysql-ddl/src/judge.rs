//! Whether a statement changes captured tables, and whether that can be carried.

use super::lex::{Quoting, Token, masked, tokens};
pub use clauses::logs_its_rows;

mod clauses;
mod definitions;
mod names;

pub use clauses::CASCADE;
use names::is_word;

/// A statement and what its meaning depends on.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Its text.
    pub text: &'a str,
    /// The session's default database.
    pub database: &'a str,
    /// How the session read quotes.
    pub quoting: Quoting,
}

/// What is known of a table that a statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// It is captured; its key is the primary key or not.
    Yes {
        /// It is the primary key.
        by_primary_key: bool,
    },
    /// It is not, but the patterns match its name.
    Matched,
    /// It is of no concern.
    No,
}

/// What a statement means for the captured tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A transaction begins.
    Begin,
    /// The transaction is committed.
    Commit,
    /// The transaction is rolled back, but for what cannot be.
    Rollback,
    /// A place in the transaction gets a name.
    Savepoint(String),
    /// The transaction is rolled back to the place of this name.
    RollbackTo(String),
    /// Nothing.
    Pass,
    /// It changes a captured table in a way that no row notices; the word says how.
    Ignore(&'static str),
    /// It changes columns, key, name or contents of this table.
    Change {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// It changes rows of this table, and the log holds only the statement.
    RowsByStatement {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// It changes rows of tables that are not captured, and the log holds only the statement: what views and triggers
    /// make of it is in no log.
    RowsElsewhere,
    /// It calls a routine, which changed rows of any tables, and the log holds only the statement.
    RowsByRoutine,
    /// A table came to be whose name the patterns match.
    NewTable {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// An XA transaction that was prepared is committed, or rolled back.
    XaEnd {
        /// It is committed.
        commits: bool,
    },
}

/// Judges a statement. Whatever is not understood passes only if it names no captured table.
pub fn judge(
    statement: &Statement<'_>,
    lookup: &dyn Fn(&str, &str) -> Captured,
    any_captured_in: &dyn Fn(&str) -> Option<(String, String)>,
) -> Judgement {
    let tokens = tokens(statement.text, statement.quoting);
    let mut judge = Judge { tokens: &tokens, at: 0, database: statement.database, lookup, any_captured_in };
    judge.statement()
}

impl Statement<'_> {
    /// Whether the statement's last words are these, whatever comment stands behind them.
    pub fn ends_with(&self, words: &[&str]) -> bool {
        let tokens = tokens(self.text, self.quoting);
        let end = tokens.len().checked_sub(words.len());
        end.is_some_and(|end| words.iter().zip(&tokens[end..]).all(|(word, token)| is_word(Some(token), word)))
    }

    /// The id of the XA transaction that an XA statement names, as the server writes it.
    pub fn xa_id(&self) -> Option<&str> {
        self.text.trim().splitn(3, ' ').nth(2)
    }

    /// The statement without what may be values of rows, to be shown.
    pub fn shown(&self) -> String {
        masked(self.text, self.quoting)
    }
}

struct Judge<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    database: &'a str,
    lookup: &'a dyn Fn(&str, &str) -> Captured,
    any_captured_in: &'a dyn Fn(&str) -> Option<(String, String)>,
}

impl Judge<'_> {
    fn statement(&mut self) -> Judgement {
        self.skip_prefixes();
        let Some(Token::Word(first)) = self.tokens.get(self.at) else {
            return if self.at == self.tokens.len() { Judgement::Pass } else { self.unknown() };
        };
        let first = first.to_ascii_uppercase();
        self.at += 1;
        match first.as_str() {
            "BEGIN" if self.word("WORK") || self.at == self.tokens.len() => Judgement::Begin,
            "START" if self.word("TRANSACTION") => Judgement::Begin,
            "COMMIT" => Judgement::Commit,
            "ROLLBACK" => self.rollback(),
            "SAVEPOINT" => Judgement::Savepoint(self.part().unwrap_or_default()),
            "XA" if self.word("START") || self.word("BEGIN") => Judgement::Begin,
            "XA" if self.word("COMMIT") => Judgement::XaEnd { commits: true },
            "XA" if self.word("ROLLBACK") => Judgement::XaEnd { commits: false },
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "TRUNCATE" => {
                self.word("TABLE");
                self.change_of_next()
            }
            "RENAME" => self.rename(),
            "REPAIR" => self.repair(),
            "INSERT" | "REPLACE" => self.insert(),
            "LOAD" if self.word("INDEX") => Judgement::Pass,
            "DELETE" | "UPDATE" | "LOAD" => self.rows_by_statement(Judgement::RowsElsewhere),
            "WITH" if self.has_word("UPDATE") || self.has_word("DELETE") => {
                self.rows_by_statement(Judgement::RowsElsewhere)
            }
            "SET" if self.word("PASSWORD") || !self.calls() => Judgement::Pass,
            // By themselves they change nothing: they stand in the log for what a function did.
            "CALL" | "DO" | "SELECT" | "SET" | "VALUES" | "WITH" | "HANDLER" | "EXECUTE" => {
                self.rows_by_statement(Judgement::RowsByRoutine)
            }
            // A name that is released is rolled back to no more.
            "RELEASE" => Judgement::Pass,
            "XA" | "GRANT" | "REVOKE" | "FLUSH" | "ANALYZE" | "OPTIMIZE" | "CHECK" | "CHECKSUM" | "USE" | "INSTALL"
            | "UNINSTALL" | "SHUTDOWN" | "RESET" | "CHANGE" | "START" | "STOP" | "KILL" => Judgement::Pass,
            _ => self.unknown(),
        }
    }

    /// Moves behind what may stand before a statement: SET STATEMENT … FOR, and words that show how it is run.
    fn skip_prefixes(&mut self) {
        loop {
            let start = self.at;
            if self.words(&["SET", "STATEMENT"]) {
                self.skip_settings();
            } else if self.word("ANALYZE") {
                if ["TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"].iter().any(|word| self.word(word)) {
                    self.at = start;
                    return;
                }
                self.skip_format();
            } else if ["EXPLAIN", "DESCRIBE", "DESC"].iter().any(|word| self.word(word)) {
                while ["EXTENDED", "PARTITIONS", "ANALYZE"].iter().any(|word| self.word(word)) {}
                self.skip_format();
            } else {
                return;
            }
        }
    }

    /// Moves behind the FOR that stands in no bracket.
    fn skip_settings(&mut self) {
        let mut depth = 0u32;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Mark('(') => depth += 1,
                Token::Mark(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && self.word("FOR") {
                return;
            }
            self.at += 1;
        }
    }

    fn skip_format(&mut self) {
        if self.word("FORMAT") {
            self.mark('=');
            self.at += 1;
        }
    }

    fn rollback(&mut self) -> Judgement {
        self.word("WORK");
        if !self.word("TO") {
            return Judgement::Rollback;
        }
        self.word("SAVEPOINT");
        Judgement::RollbackTo(self.part().unwrap_or_default())
    }

    /// INSERT and REPLACE write to the first table they name; others are read.
    fn insert(&mut self) -> Judgement {
        while ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"].iter().any(|word| self.word(word)) {}
        let Some(name) = self.name() else { return self.rows_by_statement(Judgement::RowsElsewhere) };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => Judgement::RowsByStatement { database: name.database, table: name.table },
            _ => Judgement::RowsElsewhere,
        }
    }

    /// A statement that changes rows of tables it names in many places: any captured one counts.
    fn rows_by_statement(&mut self, otherwise: Judgement) -> Judgement {
        match self.mentioned_in(0, self.tokens.len()) {
            Some(name) => Judgement::RowsByStatement { database: name.database, table: name.table },
            None => otherwise,
        }
    }

    /// Whether a function is called.
    fn calls(&self) -> bool {
        self.tokens.windows(2).any(|pair| matches!(pair, [Token::Word(_) | Token::Name(_), Token::Mark('(')]))
    }

    /// A statement of a form that is not known: it stops where it names a captured table.
    fn unknown(&mut self) -> Judgement {
        self.mentioned_in(0, self.tokens.len()).map_or(Judgement::Pass, names::TableName::changed)
    }
}

#[cfg(test)]
mod tests;
