//! Statements that make, change, rename and drop tables and indexes.

use super::names::{TableName, is_word};
use super::{Captured, Judge, Judgement, clauses};

/// What CREATE, ALTER and DROP may be about that has no rows of a table in it.
const OTHER_KINDS: [&str; 25] = [
    "DEFINER",
    "ALGORITHM",
    "SQL",
    "AGGREGATE",
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "PACKAGE",
    "TRIGGER",
    "EVENT",
    "USER",
    "ROLE",
    "SERVER",
    "INSTANCE",
    "TABLESPACE",
    "UNDO",
    "LOGFILE",
    "SPATIAL",
    "RESOURCE",
    "LIBRARY",
    "JSON",
    "MATERIALIZED",
    "SEQUENCE",
    "DATABASE",
    "SCHEMA",
];

impl Judge<'_> {
    pub(super) fn create(&mut self) -> Judgement {
        let replaces = self.words(&["OR", "REPLACE"]);
        if self.word("TEMPORARY") {
            return Judgement::Pass;
        }
        self.word("EXTERNAL");
        if self.word("TABLE") {
            return self.create_table(replaces);
        }
        if replaces && (self.word("DATABASE") || self.word("SCHEMA")) {
            return self.drop_database();
        }
        // A sequence is a table to the server, and takes the place of one.
        if replaces && self.word("SEQUENCE") {
            return self.change_of_next();
        }
        if self.find_before_end("INDEX", 3) {
            return self.create_index(replaces);
        }
        self.other_kind()
    }

    fn create_table(&mut self, replaces: bool) -> Judgement {
        let if_absent = self.words(&["IF", "NOT", "EXISTS"]);
        let Some(name) = self.name() else { return self.unknown() };
        let merged = self.merged();
        match (self.lookup)(&name.database, &name.table) {
            // Where it is captured it is there, so nothing happened.
            Captured::Yes { .. } if if_absent && !replaces => Judgement::Ignore("create-if-absent"),
            Captured::Yes { .. } => name.changed(),
            _ if merged.is_some() => merged.map_or(Judgement::Pass, TableName::changed),
            Captured::Matched => Judgement::NewTable { database: name.database, table: name.table },
            Captured::No => Judgement::Pass,
        }
    }

    /// A captured table that becomes a part of another one (`UNION = (…)` of a MERGE table): rows written through that
    /// one are in the log under its name. A SELECT behind UNION gives no name of a captured table.
    fn merged(&mut self) -> Option<TableName> {
        for at in self.at..self.tokens.len() {
            self.at = at;
            if !self.word("UNION") {
                continue;
            }
            self.mark('=');
            while self.mark('(') || self.mark(',') {
                let Some(name) = self.name() else { break };
                if let Captured::Yes { .. } = (self.lookup)(&name.database, &name.table) {
                    return Some(name);
                }
            }
        }
        None
    }

    /// `INDEX name … ON table`, from behind INDEX.
    fn create_index(&mut self, replaces: bool) -> Judgement {
        while self.at < self.tokens.len() && !self.word("ON") {
            self.at += 1;
        }
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            // It may take the place of the key.
            Captured::Yes { by_primary_key: false } if replaces => name.changed(),
            Captured::Yes { .. } => Judgement::Ignore("index"),
            _ => Judgement::Pass,
        }
    }

    pub(super) fn alter(&mut self) -> Judgement {
        let mut ignores = false;
        while self.word("ONLINE") || self.word("OFFLINE") || self.word("IGNORE") {
            ignores |= is_word(self.tokens.get(self.at - 1), "IGNORE");
        }
        if !self.word("TABLE") {
            return self.other_kind();
        }
        self.words(&["IF", "EXISTS"]);
        let Some(name) = self.name() else { return self.unknown() };
        self.skip_wait();
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        match (self.lookup)(&name.database, &name.table) {
            // Rows that do not fit are gone.
            Captured::Yes { .. } if ignores => name.changed(),
            Captured::Yes { by_primary_key } => match clauses::harmless(rest, by_primary_key) {
                Some(reason) => Judgement::Ignore(reason),
                None => name.changed(),
            },
            _ => self.alter_elsewhere(),
        }
    }

    /// The clauses of an ALTER of a table that is not captured: they may still name one that is, or make one.
    fn alter_elsewhere(&mut self) -> Judgement {
        let start = self.at;
        if let Some(name) = self.merged() {
            return name.changed();
        }
        let mut new = Judgement::Pass;
        for clause in clauses::places(self.tokens.get(start..).unwrap_or_default()) {
            self.at = start + clause.start;
            match self.clause_elsewhere(start + clause.end) {
                change @ Judgement::Change { .. } => return change,
                table @ Judgement::NewTable { .. } => new = table,
                _ => {}
            }
        }
        new
    }

    fn clause_elsewhere(&mut self, end: usize) -> Judgement {
        let start = self.at;
        if self.word("RENAME") {
            if self.word("INDEX") || self.word("KEY") || self.word("COLUMN") {
                return Judgement::Pass;
            }
            let _ = self.word("TO") || self.word("AS") || self.mark('=');
            return self.becomes_known();
        }
        if self.words(&["CONVERT", "PARTITION"]) {
            self.part();
            return if self.words(&["TO", "TABLE"]) { self.becomes_known() } else { self.unknown() };
        }
        if clauses::is_of_the_table_alone(&self.tokens[start..end]) {
            return Judgement::Pass;
        }
        // Another table that is named gives its rows away, or gets some.
        self.mentioned_in(start, end).map_or(Judgement::Pass, TableName::changed)
    }

    pub(super) fn drop(&mut self) -> Judgement {
        if self.word("TEMPORARY") {
            return Judgement::Pass;
        }
        if self.word("DATABASE") || self.word("SCHEMA") {
            self.words(&["IF", "EXISTS"]);
            return self.drop_database();
        }
        let _ = self.word("ONLINE") || self.word("OFFLINE");
        if self.word("INDEX") {
            return self.drop_index();
        }
        if !self.word("TABLE") && !self.word("TABLES") {
            return self.other_kind();
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

    /// The next name is one of a database that is gone with all its tables.
    fn drop_database(&mut self) -> Judgement {
        let Some(database) = self.part() else { return self.unknown() };
        match (self.any_captured_in)(&database) {
            Some((database, table)) => Judgement::Change { database, table },
            None => Judgement::Pass,
        }
    }

    fn drop_index(&mut self) -> Judgement {
        self.words(&["IF", "EXISTS"]);
        let index = self.part().unwrap_or_default();
        if !self.word("ON") {
            return self.unknown();
        }
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { by_primary_key: true } if !index.eq_ignore_ascii_case("PRIMARY") => {
                Judgement::Ignore("index")
            }
            Captured::Yes { .. } => name.changed(),
            _ => Judgement::Pass,
        }
    }

    pub(super) fn rename(&mut self) -> Judgement {
        if self.word("USER") {
            return Judgement::Pass;
        }
        if !self.word("TABLE") && !self.word("TABLES") {
            return self.unknown();
        }
        self.words(&["IF", "EXISTS"]);
        let mut new = Judgement::Pass;
        loop {
            let Some(from) = self.name() else { return self.unknown() };
            if let Captured::Yes { .. } = (self.lookup)(&from.database, &from.table) {
                return from.changed();
            }
            self.skip_wait();
            if !self.word("TO") {
                return self.unknown();
            }
            match self.becomes_known() {
                change @ Judgement::Change { .. } => return change,
                table @ Judgement::NewTable { .. } => new = table,
                _ => {}
            }
            if !self.mark(',') {
                return new;
            }
        }
    }

    /// A repair keeps what it can read; one that is told to make the table anew may keep less.
    pub(super) fn repair(&mut self) -> Judgement {
        if self.has_word("USE_FRM") { self.unknown() } else { Judgement::Pass }
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
    pub(super) fn change_of_next(&mut self) -> Judgement {
        self.words(&["IF", "NOT", "EXISTS"]);
        let Some(name) = self.name() else { return self.unknown() };
        match (self.lookup)(&name.database, &name.table) {
            Captured::Yes { .. } => name.changed(),
            _ => Judgement::Pass,
        }
    }

    /// What is no table and no index passes if its kind is known.
    fn other_kind(&mut self) -> Judgement {
        if OTHER_KINDS.iter().any(|kind| self.word(kind)) { Judgement::Pass } else { self.unknown() }
    }

    /// How long MariaDB shall wait for a table.
    fn skip_wait(&mut self) {
        if self.word("WAIT") {
            self.at += 1;
        } else {
            self.word("NOWAIT");
        }
    }
}
