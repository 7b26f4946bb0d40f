//! What stands in the files that the component `file` writes, by what its README promises and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::rows::{Rows, Table};
use crate::value::{Kind, canonical};

/// A file of lines.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name in its table's folder.
    pub name: String,
    /// Its lines, as they are.
    pub lines: Vec<String>,
}

/// What one line says.
#[derive(Clone, Debug)]
pub struct Line {
    /// `read`, `insert`, `update-after` or `delete`.
    pub op: String,
    /// The row, spelled.
    pub row: Vec<String>,
    /// Its key.
    pub key: String,
    /// A number that grows with each change.
    pub change_seq: i64,
    /// The transaction; none for a row that was read.
    pub transaction: Option<String>,
    /// Place among the table's changes in the transaction.
    pub ordinal: u64,
    /// Where the transaction ends in the server's log.
    pub position: Option<String>,
    /// Which file, and which line in it, both from 0.
    pub place: (usize, usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Raw {
    op: String,
    table: String,
    row: Map<String, Value>,
    change_seq: i64,
    transaction: Option<String>,
    ordinal: u64,
    position: Option<String>,
}

/// The files of a table, in the order of their names: that of their epochs.
pub fn parts(folder: &Path, table: &Table) -> Result<Vec<Part>> {
    let folder = folder.join(&table.database).join(&table.name);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
        // Nothing was committed of it.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| folder.display().to_string()),
    };
    let mut parts = Vec::new();
    for entry in entries {
        let text = fs::read_to_string(entry.path()).with_context(|| entry.path().display().to_string())?;
        ensure!(text.ends_with('\n'), "{} is empty, or ends inside a line", entry.path().display());
        let name = entry.file_name().to_string_lossy().into_owned();
        parts.push(Part { name, lines: text.lines().map(str::to_owned).collect() });
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parts)
}

/// The lines of a table's files, in order.
pub fn lines(table: &Table, parts: &[Part]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        for (number, text) in part.lines.iter().enumerate() {
            let line = line(table, text).with_context(|| format!("{table}: {} line {}", part.name, number + 1))?;
            lines.push(Line { place: (at, number), ..line });
        }
    }
    Ok(lines)
}

fn line(table: &Table, text: &str) -> Result<Line> {
    let Raw { op, table: name, row, change_seq, transaction, ordinal, position } = serde_json::from_str(text)?;
    ensure!(name == table.to_string(), "a line of {name}");
    ensure!(matches!(op.as_str(), "read" | "insert" | "update-after" | "delete"), "a line of what nobody asked for");
    ensure!((op == "read") == transaction.is_none(), "{op} with transaction {transaction:?}");
    ensure!(row.len() == table.columns.len(), "a row of {} cells", row.len());
    let cells = table.columns.iter().map(|column| {
        let value = row.get(&column.name).with_context(|| format!("no cell {}", column.name))?;
        cell(column.kind, value).with_context(|| format!("column {}", column.name))
    });
    let row = cells.collect::<Result<Vec<_>>>()?;
    let key = table.key_of(&row);
    Ok(Line { op, row, key, change_seq, transaction, ordinal, position, place: (0, 0) })
}

/// A value in the one spelling.
fn cell(kind: Kind, value: &Value) -> Result<String> {
    match (kind, value) {
        (Kind::Bytes | Kind::Bits(_), Value::String(text)) => {
            let bytes = STANDARD.decode(text).context("not base64")?;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            canonical(kind, &hex.into())
        }
        (Kind::Moment, Value::String(text)) => canonical(kind, &text.strip_suffix('Z').unwrap_or(text).into()),
        _ => canonical(kind, value),
    }
}

/// What the lines leave of the table: of each key the last.
pub fn fold(table: &Table, lines: &[Line]) -> Result<Rows> {
    let mut last = BTreeMap::new();
    for line in lines {
        match line.op.as_str() {
            "delete" => last.remove(&line.key),
            _ => last.insert(&line.key, &line.row),
        };
    }
    let mut rows = Rows::default();
    last.into_values().try_for_each(|row| rows.put(table, row.clone()))?;
    Ok(rows)
}

/// What a stopped pipeline may not leave behind: anything but whole files and one marker of progress at its last epoch.
pub fn litter(folder: &Path, pipeline: &str, epoch: u64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut markers = Vec::new();
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for path in files(folder)? {
        let shown = path.display().to_string();
        if path.starts_with("_progress") {
            markers.push(path);
        } else if let Some((of, part_epoch, number)) = part_name(&shown) {
            numbers.entry(of).or_default().push(number);
            if part_epoch > epoch {
                found.push(format!("{shown} is beyond epoch {epoch}"));
            }
        } else {
            found.push(format!("{shown} was left behind"));
        }
    }
    for (of, mut numbers) in numbers {
        numbers.sort_unstable();
        if !numbers.iter().copied().eq(0..numbers.len() as u64) {
            found.push(format!("{of} has the numbers {numbers:?}"));
        }
    }
    let [marker] = &markers[..] else {
        found.push(format!("{} markers of progress", markers.len()));
        return Ok(found);
    };
    let told: Value = serde_json::from_slice(&fs::read(folder.join(marker))?)?;
    let name = format!("_progress/{epoch:020}-{:020}.json", told["cut"]["generation"].as_u64().unwrap_or(0));
    if told["pipeline"] != pipeline || told["cut"]["epoch"] != epoch || marker != Path::new(&name) {
        found.push(format!("{} is not of {pipeline}'s epoch {epoch}: {told}", marker.display()));
    }
    Ok(found)
}

/// `DATABASE/TABLE/part-EPOCH-SUBTASK-NUMBER.jsonl`: all before the number, the epoch, the number.
fn part_name(path: &str) -> Option<(String, u64, u64)> {
    let (folder, name) = path.rsplit_once('/')?;
    let (of, number) = name.strip_prefix("part-")?.strip_suffix(".jsonl")?.rsplit_once('-')?;
    let (epoch, _subtask) = of.split_once('-')?;
    let is_of_table = folder.split('/').count() == 2 && !folder.starts_with(['_', '.']);
    is_of_table.then_some((format!("{folder}/part-{of}"), epoch.parse().ok()?, number.parse().ok()?))
}

/// All files below a folder, by their paths in it.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let part = |epoch: u64, number: u64| format!("d/t/part-{epoch:020}-00000-{number:05}.jsonl");
        let marker = format!("_progress/{:020}-{:020}.json", 7, 2);
        put(&marker, r#"{"pipeline":"p","cut":{"epoch":7,"generation":2}}"#);
        put(&part(7, 0), "{}\n");
        put(&part(7, 1), "{}\n");
        assert_eq!(litter(folder.path(), "p", 7).unwrap(), [""; 0]);
        assert_eq!(litter(folder.path(), "q", 7).unwrap().len(), 1);
        assert_eq!(litter(folder.path(), "p", 6).unwrap().len(), 3, "two files and the marker are beyond");
        put("_staging/p/target/00000000000000000002/00000-0000000001", "{}\n");
        put(&part(6, 1), "{}\n");
        put(".staging/1/2", "");
        put(&format!("_progress/{:020}-{:020}.json", 6, 1), "{}");
        let found = litter(folder.path(), "p", 7).unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
