//! Statements in the log: which begin and end transactions, which are of no concern, which cannot be carried.

use cdchost_connector::{ConnectorError, StopClass, Verdict};
use cdchost_model::TableId;
use cdchost_mysql_ddl::{CASCADE, Captured, Judgement, Quoting, Statement, judge};
use cdchost_mysql_position::Reached;
use cdchost_mysql_wire::binlog::{EventHeader, QueryEvent};

use super::refusals::{UNKNOWN, decode, may_be};
use super::{Seen, Transactions};
use crate::binlog::tables::place;
use crate::remedy::{ANEW, leave_out};

const SQL_MODE_ANSI_QUOTES: u64 = 1 << 2;
const SQL_MODE_NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
/// How the first statement ends in the log of a CREATE TABLE … SELECT of 8.0.21 and later: its rows follow.
const ROWS_FOLLOW: [&str; 2] = ["START", "TRANSACTION"];
const ROWS_FOR_GOOD: &str = "SET GLOBAL binlog_format = 'ROW', see that no session sets another one";

/// What a statement does to the open transaction.
enum Effect {
    /// More of it follows.
    Begins,
    /// It ends.
    Ends,
    /// It ends if nothing has begun it: a statement alone is a transaction of its own.
    EndsIfAlone,
}

/// Whether a character set hides which table is meant.
fn is_half_known(database: &str, table: &str) -> bool {
    database.contains(UNKNOWN) || table.contains(UNKNOWN)
}

impl Transactions {
    /// Takes a statement that is not the usual BEGIN.
    pub(super) fn query(&mut self, query: &QueryEvent<'_>, header: &EventHeader) -> Result<Seen, ConnectorError> {
        let Some(current) = &self.current else {
            return Err(self.malformed("a statement outside of any transaction"));
        };
        let (has_begun, is_known) = (current.has_begun, current.is_known);
        let status = query.status().unwrap_or_default();
        let text = decode(query.text, status.client_collation);
        let database = String::from_utf8_lossy(query.database);
        let mode = status.sql_mode.unwrap_or(0);
        let quoting = Quoting {
            ansi: mode & SQL_MODE_ANSI_QUOTES != 0,
            plain_backslash: mode & SQL_MODE_NO_BACKSLASH_ESCAPES != 0,
            mariadb: matches!(self.executed, Reached::Domains(_)),
        };
        let statement = Statement { text: &text, database: &database, quoting };
        let effect = self.obey(&statement, is_known)?;
        let ends = match effect {
            Effect::Ends => true,
            Effect::Begins => false,
            Effect::EndsIfAlone => !has_begun && !statement.ends_with(&ROWS_FOLLOW),
        };
        if ends {
            self.moved(header);
            return self.end();
        }
        if let Some(current) = &mut self.current {
            current.has_begun = true;
        }
        Ok(Seen::Event)
    }

    /// Judges a statement. A transaction that was handed on before is only followed to its end.
    fn obey(&mut self, statement: &Statement<'_>, is_known: bool) -> Result<Effect, ConnectorError> {
        match self.judge(statement) {
            Judgement::Begin => return Ok(Effect::Begins),
            Judgement::XaEnd { commits } => {
                let was_seen = statement.xa_id().is_some_and(|id| self.prepared.remove(id));
                if commits && !was_seen && !is_known {
                    let what = "an XA transaction is committed that was prepared before this pipeline read the log";
                    return Err(self.refused("mysql-xa", what, ANEW));
                }
            }
            Judgement::Commit => return Ok(Effect::Ends),
            Judgement::Rollback => {
                self.take_back_all()?;
                return Ok(Effect::Ends);
            }
            _ if is_known => {}
            Judgement::Savepoint(name) => self.set_savepoint(&name),
            Judgement::RollbackTo(name) => self.take_back_to(&name)?,
            Judgement::Pass => {}
            Judgement::Ignore(reason) => self.ignore(reason, statement),
            Judgement::RowsElsewhere => {
                *self.ignored.entry("rows-by-statement-elsewhere").or_default() += 1;
                tracing::warn!(
                    statement = statement.shown(),
                    position = %self.position,
                    "rows were changed by a statement, not row by row: what its views and triggers changed is not known"
                );
            }
            Judgement::Change { database, table } => {
                if !self.is_known_change(&database, &table) {
                    return Err(self.changed(statement, &database, &table));
                }
                self.ignore("known-already", statement);
            }
            Judgement::RowsByStatement { database, table } => {
                let table = self.named(&database, &table);
                let what = format!("the log holds a statement in place of the rows that it changed in {table}");
                let instruction = format!("{ROWS_FOR_GOOD}, and {}", leave_out(&table));
                return Err(self.refused("mysql-statement-format", &what, &instruction).with_table(table));
            }
            Judgement::RowsByRoutine => {
                let what = format!(
                    "the log holds the call of a routine in place of the rows of any tables that it changed: {}",
                    statement.shown()
                );
                let instruction = format!("{ROWS_FOR_GOOD}, and {ANEW}");
                return Err(self.refused("mysql-statement-format", &what, &instruction));
            }
            Judgement::NewTable { database, table } => self.new_table(statement, &database, &table)?,
        }
        Ok(Effect::EndsIfAlone)
    }

    /// Whether a table was looked at after the open transaction.
    fn is_known_change(&self, database: &str, table: &str) -> bool {
        let place = self.find(database, table);
        let is_new = place.is_some_and(|place| self.tables.is_new(place));
        is_new && self.current.as_ref().is_some_and(|current| self.start.known.has(&current.name))
    }

    /// Whether all transactions were handed on that the tables were looked at after.
    pub(crate) fn has_passed_known(&mut self) -> bool {
        if !self.has_passed_known {
            self.has_passed_known = self.executed.contains(&self.start.known);
        }
        self.has_passed_known
    }

    /// Place of a table as a statement names it.
    pub(super) fn find(&self, database: &str, table: &str) -> Option<usize> {
        if is_half_known(database, table) {
            return self.tables.find_such(|id| may_be(database, &id.database) && may_be(table, &id.table));
        }
        if self.start.lower_case_names {
            self.tables.find(database.to_lowercase().as_bytes(), table.to_lowercase().as_bytes())
        } else {
            self.tables.find(database.as_bytes(), table.as_bytes())
        }
    }

    fn judge(&self, statement: &Statement<'_>) -> Judgement {
        let lookup = |database: &str, table: &str| match self.find(database, table) {
            Some(place) => Captured::Yes { by_primary_key: self.tables.layout(place).has_primary_key() },
            None if is_half_known(database, table) || self.start.patterns.matches(database, table) => Captured::Matched,
            None => Captured::No,
        };
        let any_captured_in = |database: &str| {
            let layout = if database.contains(UNKNOWN) {
                self.tables.find_such(|id| may_be(database, &id.database)).map(|place| self.tables.layout(place))
            } else if self.start.lower_case_names {
                self.tables.any_in(&database.to_lowercase())
            } else {
                self.tables.any_in(database)
            };
            layout.map(|layout| (layout.schema.table.database.clone(), layout.schema.table.table.clone()))
        };
        judge(statement, &lookup, &any_captured_in)
    }

    fn ignore(&mut self, reason: &'static str, statement: &Statement<'_>) {
        *self.ignored.entry(reason).or_default() += 1;
        if reason == CASCADE {
            tracing::warn!(
                statement = statement.shown(),
                position = %self.position,
                "rows that this foreign key changes are in no log, so these changes will be missing"
            );
            return;
        }
        tracing::info!(reason, statement = statement.shown(), position = %self.position, "statement ignored");
    }

    /// A table came to be that the patterns match. What was there when the schemas were read is known; for others the
    /// tables are looked for again.
    fn new_table(&mut self, statement: &Statement<'_>, database: &str, table: &str) -> Result<(), ConnectorError> {
        let Some(current) = &self.current else { return Ok(()) };
        if self.start.known.has(&current.name) {
            self.ignore("table-gone-since", statement);
            return Ok(());
        }
        let message = format!("table {database}.{table} was created{}; it is looked at now", place(&current.facts));
        Err(ConnectorError::new(Verdict::Reopen, StopClass::Schema, "mysql-table-created", message)
            .with_table(TableId::new(database, table))
            .with_instruction("nothing: the pipeline goes on by itself"))
    }
}
