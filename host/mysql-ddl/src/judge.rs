//! Whether a statement changes captured tables, and whether that can be carried.

use super::lex::{Quoting, Token, masked, tokens};

mod clauses;

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
    /// A table came to be whose name the patterns match.
    NewTable {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
    /// An XA transaction begins: its rows come with it, but its end is another transaction.
    XaStart,
    /// An XA transaction that was prepared is committed, or rolled back.
    XaEnd {
        /// It is committed.
        commits: bool,
    },
}

/// A table's name as a statement gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TableName {
    database: String,
    table: String,
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

    /// The statement without its literals, to be shown.
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
        let Some(Token::Word(first)) = self.tokens.first() else {
            return if self.tokens.is_empty() { Judgement::Pass } else { self.unknown() };
        };
        self.at = 1;
        match first.to_ascii_uppercase().as_str() {
            "BEGIN" => Judgement::Begin,
            "START" if self.word("TRANSACTION") => Judgement::Begin,
            "COMMIT" => Judgement::Commit,
            "ROLLBACK" => {
                self.word("WORK");
                if self.word("TO") { Judgement::Pass } else { Judgement::Rollback }
            }
            "SAVEPOINT" | "RELEASE" => Judgement::Pass,
            "XA" if self.word("START") || self.word("BEGIN") => Judgement::XaStart,
            "XA" if self.word("COMMIT") => Judgement::XaEnd { commits: true },
            "XA" if self.word("ROLLBACK") => Judgement::XaEnd { commits: false },
            "XA" => Judgement::Pass,
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "TRUNCATE" => {
                self.word("TABLE");
                self.change_of_next()
            }
            "RENAME" => self.rename(),
            "INSERT" | "REPLACE" => self.insert(),
            "DELETE" | "UPDATE" | "LOAD" | "WITH" | "CALL" | "DO" => self.rows_by_statement(),
            "GRANT" | "REVOKE" | "SET" | "FLUSH" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECK" | "USE" | "INSTALL"
            | "UNINSTALL" | "SHUTDOWN" | "RESET" | "CHANGE" | "STOP" | "KILL" => Judgement::Pass,
            _ => self.unknown(),
        }
    }

    fn create(&mut self) -> Judgement {
        let mut replaces = false;
        if self.word("OR") {
            replaces = self.word("REPLACE");
        }
        if self.word("TEMPORARY") {
            return Judgement::Pass;
        }
        if self.word("TABLE") {
            let if_absent = self.words(&["IF", "NOT", "EXISTS"]);
            let Some(name) = self.name() else { return self.unknown() };
            return match (self.lookup)(&name.database, &name.table) {
                // Where it is captured it is there, so nothing happened.
                Captured::Yes { .. } if if_absent && !replaces => Judgement::Ignore("create-if-absent"),
                Captured::Yes { .. } => name.changed(),
                Captured::Matched => Judgement::NewTable { database: name.database, table: name.table },
                Captured::No => Judgement::Pass,
            };
        }
        if self.find_before_end("INDEX", 3) {
            return self.index_on_table();
        }
        Judgement::Pass
    }

    /// `INDEX name … ON table`, from behind INDEX.
    fn index_on_table(&mut self) -> Judgement {
        while self.at < self.tokens.len() && !self.word("ON") {
            self.at += 1;
        }
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => Judgement::Ignore("index"),
            _ => Judgement::Pass,
        }
    }

    fn alter(&mut self) -> Judgement {
        if self.word("DATABASE") || self.word("SCHEMA") {
            return Judgement::Pass;
        }
        self.word("ONLINE");
        self.word("IGNORE");
        if !self.word("TABLE") {
            return Judgement::Pass;
        }
        self.words(&["IF", "EXISTS"]);
        let Some(name) = self.name() else { return self.unknown() };
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { by_primary_key } => match clauses::harmless(rest, by_primary_key) {
                Some(reason) => Judgement::Ignore(reason),
                None => name.changed(),
            },
            // Its rows go into the other table that is named, and that one's come here.
            _ if clauses::exchanges(rest) => self.unknown(),
            _ => match clauses::new_name(rest) {
                Some(at) => {
                    self.at += at;
                    self.becomes_known()
                }
                None => Judgement::Pass,
            },
        }
    }

    fn drop(&mut self) -> Judgement {
        if self.word("TEMPORARY") {
            return Judgement::Pass;
        }
        if self.word("DATABASE") || self.word("SCHEMA") {
            self.words(&["IF", "EXISTS"]);
            let Some(database) = self.part() else { return self.unknown() };
            return match (self.any_captured_in)(&database) {
                Some((database, table)) => Judgement::Change { database, table },
                None => Judgement::Pass,
            };
        }
        if self.word("INDEX") {
            let index = self.part().unwrap_or_default();
            self.word("ON");
            let Some(name) = self.name() else { return self.unknown() };
            return match (self.lookup)(&name.database, &name.table) {
                Captured::Yes { by_primary_key: true } if !index.eq_ignore_ascii_case("PRIMARY") => {
                    Judgement::Ignore("index")
                }
                Captured::Yes { .. } => name.changed(),
                _ => Judgement::Pass,
            };
        }
        if !self.word("TABLE") && !self.word("TABLES") {
            return Judgement::Pass;
        }
        self.words(&["IF", "EXISTS"]);
        loop {
            let Some(name) = self.name() else { return self.unknown() };
            if let Captured::Yes { .. } = (self.lookup)(&name.database, &name.table) {
                return name.changed();
            }
            if !self.mark(',') {
                return Judgement::Pass;
            }
        }
    }

    fn rename(&mut self) -> Judgement {
        if !self.word("TABLE") && !self.word("TABLES") {
            return Judgement::Pass;
        }
        let mut new = Judgement::Pass;
        loop {
            let Some(from) = self.name() else { return self.unknown() };
            if let Captured::Yes { .. } = (self.lookup)(&from.database, &from.table) {
                return from.changed();
            }
            self.word("TO");
            match self.becomes_known() {
                change @ Judgement::Change { .. } => return change,
                Judgement::NewTable { database, table } => new = Judgement::NewTable { database, table },
                _ => {}
            }
            if !self.mark(',') {
                return new;
            }
        }
    }

    /// The next name is one that a table gets.
    fn becomes_known(&mut self) -> Judgement {
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => name.changed(),
            Captured::Matched => Judgement::NewTable { database: name.database, table: name.table },
            Captured::No => Judgement::Pass,
        }
    }

    /// The next name is one of a table that is changed.
    fn change_of_next(&mut self) -> Judgement {
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => name.changed(),
            _ => Judgement::Pass,
        }
    }

    /// INSERT and REPLACE write to the first table they name; others are read.
    fn insert(&mut self) -> Judgement {
        while ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"].iter().any(|word| self.word(word)) {}
        let Some(name) = self.name() else { return self.rows_by_statement() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => Judgement::RowsByStatement { database: name.database, table: name.table },
            _ => Judgement::RowsElsewhere,
        }
    }

    /// A statement that changes rows of tables it names in many places: any captured one counts.
    fn rows_by_statement(&mut self) -> Judgement {
        match self.mentioned() {
            Some(TableName { database, table }) => Judgement::RowsByStatement { database, table },
            None => Judgement::RowsElsewhere,
        }
    }

    /// A statement of a form that is not known: it stops where it names a captured table.
    fn unknown(&mut self) -> Judgement {
        match self.mentioned() {
            Some(name) => name.changed(),
            None => Judgement::Pass,
        }
    }

    /// The first captured table whose name stands anywhere in the statement.
    fn mentioned(&mut self) -> Option<TableName> {
        for at in 0..self.tokens.len() {
            self.at = at;
            let Some(name) = self.name() else { continue };
            if let Captured::Yes { .. } = (self.lookup)(&name.database, &name.table) {
                return Some(name);
            }
        }
        None
    }

    /// Takes a keyword if it stands next.
    fn word(&mut self, keyword: &str) -> bool {
        let found = is_word(self.tokens.get(self.at), keyword);
        self.at += usize::from(found);
        found
    }

    /// Takes several keywords if all stand next.
    fn words(&mut self, keywords: &[&str]) -> bool {
        let start = self.at;
        let found = keywords.iter().all(|keyword| self.word(keyword));
        if !found {
            self.at = start;
        }
        found
    }

    fn mark(&mut self, mark: char) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// Moves behind a keyword that stands among the next few tokens.
    fn find_before_end(&mut self, keyword: &str, tokens: usize) -> bool {
        let found = (self.at..self.at + tokens).find(|&at| is_word(self.tokens.get(at), keyword));
        self.at = found.map_or(self.at, |at| at + 1);
        found.is_some()
    }

    /// One part of a name.
    fn part(&mut self) -> Option<String> {
        let part = match self.tokens.get(self.at)? {
            Token::Word(word) => (*word).to_owned(),
            Token::Name(name) => name.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(part)
    }

    /// `table` or `database.table`, blanks around the dot as the server allows them.
    fn name(&mut self) -> Option<TableName> {
        let first = self.part()?;
        if self.mark('.') {
            Some(TableName { database: first, table: self.part()? })
        } else {
            Some(TableName { database: self.database.to_owned(), table: first })
        }
    }
}

impl TableName {
    fn changed(self) -> Judgement {
        Judgement::Change { database: self.database, table: self.table }
    }
}

fn is_word(token: Option<&Token<'_>>, keyword: &str) -> bool {
    matches!(token, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
}

#[cfg(test)]
mod tests;
