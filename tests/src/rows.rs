//! A table's rows in the one spelling, and what differs between two sets of them.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::value::{Kind, canonical};

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub kind: Kind,
}

/// What has to be known of a table to compare it.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its database.
    pub database: String,
    /// Its name there.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Places of the primary key's columns.
    pub key: Vec<usize>,
}

impl Table {
    /// The key of a row of this table, spelled.
    pub fn key_of(&self, values: &[String]) -> String {
        self.key.iter().map(|&at| values[at].as_str()).collect::<Vec<_>>().join("|")
    }
}

/// Rows of one table: key to all values, and the keys that occurred more than once.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    by_key: BTreeMap<String, Vec<String>>,
    /// Without a key: how often each row has come.
    equal: BTreeMap<String, usize>,
    doubled: Vec<String>,
}

impl Rows {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Takes one row: all values in the table's order, spelled.
    pub fn put(&mut self, table: &Table, values: Vec<String>) -> Result<()> {
        ensure!(values.len() == table.columns.len(), "{table}: a row of {} values", values.len());
        let key = if table.key.is_empty() {
            let row = values.join("|");
            let count = self.equal.entry(row.clone()).or_default();
            *count += 1;
            format!("{row} (number {count})")
        } else {
            table.key_of(&values)
        };
        if self.by_key.insert(key.clone(), values).is_some() {
            self.doubled.push(key);
        }
        Ok(())
    }

    /// Takes one row as a reader gave it: by the names of the columns, no more and no fewer.
    pub fn put_named(&mut self, table: &Table, cells: &Map<String, Value>) -> Result<()> {
        ensure!(cells.len() == table.columns.len(), "{table}: a row of {} cells: {:?}", cells.len(), cells.keys());
        let values = table.columns.iter().map(|column| {
            let value = cells.get(&column.name).with_context(|| format!("{table}: no cell {}", column.name))?;
            canonical(column.kind, value).with_context(|| format!("{table}: column {}", column.name))
        });
        self.put(table, values.collect::<Result<_>>()?)
    }

    /// Takes the row of a key a second time.
    pub fn double(&mut self, table: &Table, key: &str) -> Result<()> {
        let row = self.by_key.get(key).with_context(|| format!("{table}: no row {key}"))?.clone();
        self.put(table, row)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

/// One way in which a target is not its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The source has this key, the target does not.
    Lost(String),
    /// The target has this key, the source does not.
    Extra(String),
    /// The target has this key more than once.
    Doubled(String),
    /// The key's row has other values in these columns.
    Changed(String, Vec<String>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(key) => write!(f, "lost: {key}"),
            Self::Extra(key) => write!(f, "extra: {key}"),
            Self::Doubled(key) => write!(f, "doubled: {key}"),
            Self::Changed(key, columns) => write!(f, "changed: {key} in {}", columns.join("; ")),
        }
    }
}

/// All differences, key by key and value by value.
pub fn differences(table: &Table, source: &Rows, target: &Rows) -> Vec<Difference> {
    let mut found = Vec::new();
    for (key, expected) in &source.by_key {
        let Some(got) = target.by_key.get(key) else {
            found.push(Difference::Lost(key.clone()));
            continue;
        };
        let unlike = expected.iter().zip(got).zip(&table.columns).filter(|((a, b), _)| a != b);
        let columns: Vec<_> = unlike.map(|((a, b), c)| format!("{}: {a} is {b}", c.name)).collect();
        if !columns.is_empty() {
            found.push(Difference::Changed(key.clone(), columns));
        }
    }
    found.extend(target.by_key.keys().filter(|k| !source.by_key.contains_key(*k)).cloned().map(Difference::Extra));
    found.extend(target.doubled.iter().cloned().map(Difference::Doubled));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Table {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let columns = vec![column("id", Kind::Number), column("v", Kind::Text)];
        Table { database: "d".to_owned(), name: "t".to_owned(), columns, key: vec![0] }
    }

    fn rows(cells: &[(u32, &str)]) -> Rows {
        let mut rows = Rows::default();
        for (id, v) in cells {
            let row = json!({"v": v, "id": id});
            rows.put_named(&table(), row.as_object().unwrap()).unwrap();
        }
        rows
    }

    #[test]
    fn order_has_no_meaning() {
        assert_eq!(differences(&table(), &rows(&[(1, "a"), (2, "b")]), &rows(&[(2, "b"), (1, "a")])), []);
    }

    #[test]
    fn each_kind_of_difference_is_found() {
        let source = rows(&[(1, "a"), (2, "b"), (3, "c")]);
        let target = rows(&[(2, "b"), (2, "b"), (3, "x"), (4, "d")]);
        let found = differences(&table(), &source, &target);
        let expected = [
            Difference::Lost("1".to_owned()),
            Difference::Changed("3".to_owned(), vec!["v: 'c is 'x".to_owned()]),
            Difference::Extra("4".to_owned()),
            Difference::Doubled("2".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn equal_rows_are_counted_where_there_is_no_key() {
        let table = Table { key: vec![], ..table() };
        let rows = |values: &[&str]| {
            let mut rows = Rows::default();
            values.iter().for_each(|v| rows.put(&table, vec!["1".to_owned(), (*v).to_owned()]).unwrap());
            rows
        };
        assert_eq!(differences(&table, &rows(&["a", "b", "a"]), &rows(&["b", "a", "a"])), []);
        let found = differences(&table, &rows(&["a", "b", "b"]), &rows(&["a", "a", "b"]));
        assert_eq!(found, [Difference::Lost("1|b (number 2)".into()), Difference::Extra("1|a (number 2)".into())]);
    }

    #[test]
    fn a_row_with_other_columns_is_refused() {
        let more = json!({"id": 1, "v": "a", "w": 2});
        assert!(Rows::default().put_named(&table(), more.as_object().unwrap()).is_err());
        let other = json!({"id": 1, "w": 2});
        assert!(Rows::default().put_named(&table(), other.as_object().unwrap()).is_err());
    }
}
