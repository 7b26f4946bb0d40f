//! Faults planted in lines, to show that they would be found.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Books, Fault};
use crate::lines::{self, Line, Part};
use crate::rows::Difference;
use crate::verdict::Verdict;

/// Damages lines behind the pipeline's back, one fault at a time: a lost line, a doubled one, a changed value, and a lost
/// change that a later one of its key hides from all who look at rows only. Adds a difference for each that is not found
/// as what it is, where it is.
pub fn plant(books: &[Books], verdict: &mut Verdict) -> Result<()> {
    for of_table in books {
        let lines = lines::lines(&of_table.table, &of_table.parts)?;
        let Some(key) = busy_key(&lines) else { continue };
        let [.., hidden, last] = key[..] else { continue };
        let faults = [
            ("a lost line", true, Fault::Lost, without(&of_table.parts, last)),
            ("a doubled line", false, Fault::Doubled, twice(&of_table.parts, last)),
            ("a changed value", true, Fault::Changed, with_other_value(of_table, last)?),
            ("a lost change that a later one hides", false, Fault::Lost, without(&of_table.parts, hidden)),
        ];
        for (name, shows_in_rows, fault, parts) in faults {
            let (differences, findings) = of_table.audit(&parts)?;
            let in_rows = match &differences[..] {
                [] => !shows_in_rows,
                [Difference::Changed(key, _)] => shows_in_rows && *key == last.key,
                _ => false,
            };
            let in_changes = matches!(&findings[..], [finding] if finding.fault == fault && finding.key == last.key);
            if !(in_rows && in_changes) {
                verdict.add(format!("planted {name} at key {}: found {differences:?} and {findings:?}", last.key));
            }
        }
        return Ok(());
    }
    verdict.add("no row was changed often enough to plant faults in");
    Ok(())
}

/// The changes of a key that has three or more and ends with an update: the table's first transaction stays where it is,
/// whichever of the last two is lost.
fn busy_key(lines: &[Line]) -> Option<Vec<&Line>> {
    let mut keys: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.transaction.is_some()) {
        keys.entry(&line.key).or_default().push(line);
    }
    keys.into_values().find(|lines| lines.len() >= 3 && lines.last().is_some_and(|last| last.op == "update-after"))
}

fn without(parts: &[Part], line: &Line) -> Vec<Part> {
    let mut parts = parts.to_vec();
    parts[line.place.0].lines.remove(line.place.1);
    parts
}

fn twice(parts: &[Part], line: &Line) -> Vec<Part> {
    let mut parts = parts.to_vec();
    let lines = &mut parts[line.place.0].lines;
    lines.insert(line.place.1, lines[line.place.1].clone());
    parts
}

/// The first value outside of the key that there is becomes none.
fn with_other_value(books: &Books, line: &Line) -> Result<Vec<Part>> {
    let mut parts = books.parts.clone();
    let text = &mut parts[line.place.0].lines[line.place.1];
    let mut told: Value = serde_json::from_str(text)?;
    let columns = books.table.columns.iter().enumerate().filter(|(at, _)| !books.table.key.contains(at));
    let full = columns.map(|(_, column)| &column.name).find(|name| !told["row"][name.as_str()].is_null());
    let name = full.context("the row has no values")?;
    told["row"][name.as_str()] = Value::Null;
    *text = told.to_string();
    Ok(parts)
}
