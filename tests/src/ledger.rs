//! Whether files of lines hold what their source holds, and exactly the changes that it made.
//!
//! What must stand there follows from how tables are read while they change. A table is silent until its first window
//! opens, for what changed by then will be read. The window opens between two transactions, and from then on all of the
//! table's changes are handed on, also those of rows that are not read yet. A run that dies before its opening is durable
//! is as if it had not been: the next one opens again, later. So for each table
//!
//! - there is a first transaction: of it and of each one behind it, up to the log's end, every change stands there once
//!   (so transactions are whole), and of those before it none;
//! - a key's lines are in the log's order, and their change-seqs grow;
//! - a row is read at most once, anywhere among its key's lines: not where a change came between the window's opening and
//!   its end, since the change then takes the row's place. What was read is the row as the change before left it, and as
//!   the change behind found it. So nothing is read between a delete and an insert.

mod plant;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Result;

pub use self::plant::plant;
use crate::binlog::{self, Change, Place};
use crate::lines::{self, Line, Part};
use crate::origin;
use crate::rows::{Difference, Rows, Table, differences};
use crate::server::Server;
use crate::verdict::Verdict;

/// How lines are not the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A change is missing.
    Lost,
    /// A change stands there more than once.
    Doubled,
    /// A line tells of a change that the log does not have, or of one before the table's first.
    Extra,
    /// A line has another row or position than the change.
    Changed,
    /// Lines are not in the log's order, or their numbers do not grow.
    Disordered,
    /// A row was read twice, or as it was at another time.
    Read,
}

/// One fault at one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub fault: Fault,
    /// Where.
    pub key: String,
    /// The change or line.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: key {}: {}", self.fault, self.key, self.what)
    }
}

/// A table, what its server says, and what stands in its files.
#[derive(Debug)]
pub struct Books {
    /// The table.
    pub table: Table,
    source: Rows,
    log: Vec<Change>,
    parts: Vec<Part>,
}

impl Books {
    /// Opens those of every table of `database`: the log from `from` on, the files below `folder`. Nothing may change
    /// meanwhile.
    pub async fn open(server: &Server, folder: &Path, database: &str, from: &Place) -> Result<Vec<Self>> {
        let mut connection = server.connect().await?;
        let tables = origin::describe_all(&mut connection, database).await?;
        let mut logs = binlog::changes(server, &tables, from).await?;
        let mut books = Vec::new();
        for table in tables {
            let source = origin::rows(&mut connection, &table).await?;
            let log = logs.remove(&table.name).unwrap_or_default();
            books.push(Self { source, log, parts: lines::parts(folder, &table)?, table });
        }
        connection.disconnect().await?;
        Ok(books)
    }

    /// What is wrong with these files: in what they leave of the table, and in what they say of its changes.
    fn audit(&self, parts: &[Part]) -> Result<(Vec<Difference>, Vec<Finding>)> {
        let lines = lines::lines(&self.table, parts)?;
        let target = lines::fold(&self.table, &lines)?;
        Ok((differences(&self.table, &self.source, &target), check(&self.log, &lines)))
    }
}

/// Compares every table with its files.
pub fn compare(books: &[Books]) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for of_table in books {
        let (differences, findings) = of_table.audit(&of_table.parts)?;
        verdict.rows += of_table.source.len();
        verdict.equal += usize::from(differences.is_empty() && findings.is_empty());
        differences.iter().for_each(|difference| verdict.add(format!("{} (lines): {difference}", of_table.table)));
        findings.iter().for_each(|finding| verdict.add(format!("{} (lines): {finding}", of_table.table)));
    }
    Ok(verdict)
}

/// Holds the lines of a table, in order, against the log's changes of it.
pub fn check(log: &[Change], lines: &[Line]) -> Vec<Finding> {
    let mut begins: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, change) in log.iter().enumerate() {
        begins.entry(&change.transaction).or_insert(at);
    }
    let told = lines.iter().filter_map(|line| begins.get(line.transaction.as_deref()?).copied());
    let first = told.min().unwrap_or(log.len());
    let mut keys: BTreeMap<&str, KeyBooks<'_>> = BTreeMap::new();
    log[first..].iter().for_each(|change| keys.entry(&change.key).or_default().log.push(change));
    lines.iter().for_each(|line| keys.entry(&line.key).or_default().lines.push(line));
    keys.into_iter().flat_map(|(key, books)| books.check(key)).collect()
}

/// What log and lines say of one key.
#[derive(Default)]
struct KeyBooks<'a> {
    log: Vec<&'a Change>,
    lines: Vec<&'a Line>,
}

impl KeyBooks<'_> {
    fn check(&self, key: &str) -> Vec<Finding> {
        let mut found = self.count();
        if found.is_empty() {
            found = self.order();
        }
        if found.is_empty() {
            found = self.reads();
        }
        let finding = |(fault, what)| Finding { fault, key: key.to_owned(), what };
        found.into_iter().map(finding).collect()
    }

    /// Each change once, as it was.
    fn count(&self) -> Vec<(Fault, String)> {
        let mut found = Vec::new();
        for change in &self.log {
            let of_change: Vec<_> = self.lines.iter().filter(|line| is_of(line, change)).collect();
            let what = format!("{} {} of {}", change.op, change.ordinal, change.transaction);
            match of_change[..] {
                [] => found.push((Fault::Lost, what)),
                [line] if line.row != change.row => {
                    found.push((Fault::Changed, format!("{what}: {:?} is {:?}", change.row, line.row)));
                }
                [line] if line.position.as_ref() != Some(&change.position) => {
                    found.push((Fault::Changed, format!("{what}: {} is {:?}", change.position, line.position)));
                }
                [_] => {}
                _ => found.push((Fault::Doubled, what)),
            }
        }
        let changes = self.lines.iter().filter(|line| line.transaction.is_some());
        for line in changes.filter(|line| !self.log.iter().any(|change| is_of(line, change))) {
            found.push((Fault::Extra, format!("{} {} of {:?}", line.op, line.ordinal, line.transaction)));
        }
        if self.lines.iter().filter(|line| line.transaction.is_none()).count() > 1 {
            found.push((Fault::Read, "read more than once".to_owned()));
        }
        found
    }

    /// The lines of changes are the log's, one by one, and numbers grow. A row that is read takes no number.
    fn order(&self) -> Vec<(Fault, String)> {
        let changes = self.lines.iter().filter(|line| line.transaction.is_some());
        let is_in_order = changes.zip(&self.log).all(|(line, change)| is_of(line, change));
        let grows = self.lines.windows(2).all(|pair| {
            let is_read = pair[1].transaction.is_none();
            pair[0].change_seq < pair[1].change_seq || is_read && pair[0].change_seq == pair[1].change_seq
        });
        let words = |line: &&Line| format!("{} {:?} {}", line.op, line.transaction, line.change_seq);
        let shown = || self.lines.iter().map(words).collect::<Vec<_>>().join(", ");
        if is_in_order && grows { Vec::new() } else { vec![(Fault::Disordered, shown())] }
    }

    /// What was read is what the change before left and the one behind found.
    fn reads(&self) -> Vec<(Fault, String)> {
        let mut found = Vec::new();
        let mut log = self.log.iter();
        // The key's row as the lines so far leave it; none where they say nothing yet.
        let mut left: Option<Option<&Vec<String>>> = None;
        for line in &self.lines {
            let change = line.transaction.as_ref().and_then(|_| log.next());
            let expected = change.map_or(Some(&line.row), |change| change.before.as_ref());
            if let Some(left) = left.filter(|left| *left != expected) {
                let by = if change.is_some() { "the change behind found" } else { "was read behind the change" };
                found.push((Fault::Read, format!("{left:?} is left, {expected:?} {by}")));
            }
            left = Some((line.op != "delete").then_some(&line.row));
        }
        found
    }
}

fn is_of(line: &Line, change: &Change) -> bool {
    line.transaction.as_ref() == Some(&change.transaction) && line.ordinal == change.ordinal && line.op == change.op
}

#[cfg(test)]
mod tests;
