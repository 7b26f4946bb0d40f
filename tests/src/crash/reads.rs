//! What the program asked the server for, by the server's own log of statements.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::server::ACCOUNT;

/// Reads of one run of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// The sets of transactions after which it asked the log to begin, in order.
    pub(crate) starts: Vec<String>,
    /// For each table the conditions of its chunk queries, in order.
    pub(crate) chunks: BTreeMap<String, Vec<String>>,
}

/// The server's log of statements, read run by run.
#[derive(Debug)]
pub(crate) struct Statements {
    path: PathBuf,
    offset: u64,
    /// Connections of the run that is being read. A connection of an earlier run may still write a last line.
    connections: BTreeSet<String>,
}

impl Statements {
    /// Begins at the log's present end.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_owned(), offset: std::fs::metadata(path)?.len(), connections: BTreeSet::new() })
    }

    /// What the run that has just ended read, if `database` is its own.
    pub(crate) fn run(&mut self, database: &str) -> Result<Reads> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.read_to_end(&mut bytes)? as u64;
        self.connections.clear();
        Ok(self.parse(&String::from_utf8_lossy(&bytes), database))
    }

    fn parse(&mut self, text: &str, database: &str) -> Reads {
        let mut reads = Reads::default();
        for line in text.lines() {
            let Some((connection, command, argument)) = parts(line) else { continue };
            match command {
                "Connect" if argument.starts_with(&format!("{ACCOUNT}@")) => {
                    self.connections.insert(connection.to_owned());
                }
                _ if !self.connections.contains(connection) => {}
                "Binlog Dump GTID" => reads.starts.extend(between(argument, "GTIDs: '", "'").map(str::to_owned)),
                "Execute" => {
                    if let Some((table, condition)) = chunk(argument, database) {
                        reads.chunks.entry(table).or_default().push(condition);
                    }
                }
                _ => {}
            }
        }
        reads
    }
}

/// `TIME<tab>CONNECTION COMMAND<tab>ARGUMENT`.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let mut fields = line.splitn(3, '\t');
    let (_time, middle, argument) = (fields.next()?, fields.next()?, fields.next()?);
    let (connection, command) = middle.trim_start().split_once(' ')?;
    Some((connection, command, argument))
}

/// Table and condition of a chunk query: an ordered, limited read of one table. The first of a table has none.
fn chunk(statement: &str, database: &str) -> Option<(String, String)> {
    let after = statement.split(&format!(" FROM `{database}`.`")).nth(1)?;
    let (table, rest) = after.split_once('`')?;
    let (condition, _order) = rest.split_once(" ORDER BY ")?;
    Some((table.to_owned(), condition.trim().to_owned()))
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let after = text.split(from).nth(1)?;
    after.split(to).next()
}

/// Transactions of each server, as ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transactions(BTreeMap<String, Vec<(u64, u64)>>);

impl Transactions {
    /// Reads `uuid:1-5:7,uuid:1`; blanks have no meaning. None where the text is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut all: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let mut pieces = part.split(':');
            let ranges = all.entry(pieces.next()?.to_ascii_lowercase()).or_default();
            for piece in pieces {
                let (from, to) = piece.split_once('-').unwrap_or((piece, piece));
                ranges.push((from.parse().ok()?, to.parse().ok()?));
            }
        }
        Some(Self(all))
    }

    /// Whether every transaction of `other` is here. Ranges are whole, as the server writes them.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let holds = |ranges: &[(u64, u64)], from: u64, to: u64| ranges.iter().any(|r| r.0 <= from && to <= r.1);
        other.0.iter().all(|(server, ranges)| {
            let ours = self.0.get(server).map(Vec::as_slice).unwrap_or_default();
            ranges.iter().all(|&(from, to)| holds(ours, from, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_queries_and_starts_are_found() {
        let log = "2026-01-01T00:00:00.000000Z\t    8 Connect\tcdc_min@127.0.0.1 on  using TCP/IP\n\
                   2026-01-01T00:00:00.000001Z\t    9 Connect\troot@127.0.0.1 on  using TCP/IP\n\
                   2026-01-01T00:00:00.000002Z\t    8 Prepare\tSELECT `a` FROM `d`.`t` WHERE (`a`) > (?) ORDER BY `a` LIMIT 5\n\
                   2026-01-01T00:00:00.000003Z\t    8 Execute\tSELECT `a` FROM `d`.`t` ORDER BY `a` LIMIT 5\n\
                   2026-01-01T00:00:00.000004Z\t    8 Execute\tSELECT `a` FROM `d`.`t` WHERE (`a`) > (5) ORDER BY `a` LIMIT 5\n\
                   2026-01-01T00:00:00.000005Z\t    9 Execute\tSELECT `a` FROM `d`.`t` WHERE (`a`) > (9) ORDER BY `a` LIMIT 5\n\
                   2026-01-01T00:00:00.000006Z\t    8 Binlog Dump GTID\tLog: '' Pos: 4 GTIDs: 'u:1-7'\n";
        let mut statements = Statements { path: PathBuf::new(), offset: 0, connections: BTreeSet::new() };
        let reads = statements.parse(log, "d");
        assert_eq!(reads.starts, ["u:1-7"]);
        assert_eq!(reads.chunks["t"], ["", "WHERE (`a`) > (5)"]);
    }

    #[test]
    fn sets_contain_sets() {
        let set = |text: &str| Transactions::parse(text).unwrap();
        assert!(set("a:1-9:11,B:1").contains(&set("A:2-9,\n b:1")));
        assert!(set("a:1-9").contains(&set("")));
        assert!(!set("a:1-9:11").contains(&set("a:9-11")));
        assert!(!set("a:1-9").contains(&set("b:1")));
        assert!(Transactions::parse("binlog.000001:4").is_some_and(|s| s != set("")));
        assert!(Transactions::parse("a:x").is_none());
    }
}
