//! What transforms and routes name and no table has: a misspelt name would let pass what was to be changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cdchost_config::{TablePatterns, nearest};
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TableSchema;

use super::lane::Lane;
use crate::setup::PathSetup;

/// Names told in one message.
const NAMES_MAX: usize = 50;

/// A name in a transform or route that meets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// `transform` or `route`.
    pub kind: &'static str,
    /// Its place among those of its kind.
    pub place: usize,
    /// The key that holds the name; none where it is the key of its tables.
    pub option: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl Unmet {
    /// What to do about it.
    pub fn instruction(&self) -> &'static str {
        match self.option {
            None => "mend the pattern, or take it out; it must match a table that is captured now",
            Some(_) => "mend the name, or take it out",
        }
    }
}

/// All of these tables and all transforms and routes; columns only where each table could be shown to all of its.
pub(super) fn all(path: &PathSetup, tables: &[Arc<TableSchema>], lane: &Lane, shown: bool) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    let transforms = path.transforms.iter().map(|step| ("transform", step.transform.id(), &step.tables)).enumerate();
    let routes = path.routes.iter().map(|step| ("route", step.route.id(), &step.tables)).enumerate();
    for (place, (kind, id, patterns)) in transforms.chain(routes) {
        let messages = patterns_unmet(patterns, tables).map(|message| format!("{kind} {id}: {message}"));
        unmet.extend(messages.map(|message| Unmet { kind, place, option: None, message }));
    }
    for (place, step) in path.transforms.iter().enumerate().filter(|_| shown) {
        let known: BTreeSet<&str> =
            lane.reaching(place).flat_map(|table| &table.fields).map(|field| field.name.as_str()).collect();
        // Where it reaches no table, the pattern is what is wrong.
        for column in step.columns.iter().filter(|column| !known.is_empty() && !known.contains(column.name.as_str())) {
            let (id, option, name) = (step.transform.id(), &column.option, &column.name);
            let near = nearest(name, known.iter().copied()).map(|near| format!(", did you mean {near}?"));
            let near = near.unwrap_or_else(|| format!("; they have {}", listed(known.iter().copied())));
            let message =
                format!("transform {id}: {option} names the column {name:?}, which none of its tables has{near}");
            unmet.push(Unmet { kind: "transform", place, option: Some(option.clone()), message });
        }
    }
    unmet
}

/// All as one error, a line each.
pub(super) fn refusal(unmet: &[Unmet]) -> ConnectorError {
    let lines = |line: fn(&Unmet) -> &str| unmet.iter().map(line).collect::<Vec<_>>().join("\n");
    let error = ConnectorError::stop(StopClass::Config, "name-unmet", lines(|unmet| &unmet.message));
    error.with_instruction(lines(|unmet| unmet.instruction()))
}

fn patterns_unmet<'a>(
    patterns: &'a TablePatterns,
    tables: &'a [Arc<TableSchema>],
) -> impl Iterator<Item = String> + 'a {
    let names: Vec<_> = tables.iter().map(|t| (t.table.database.as_str(), t.table.table.as_str())).collect();
    let unmet: Vec<&str> = patterns.unmet(&names).collect();
    unmet.into_iter().map(move |pattern| {
        let captured: Vec<String> = tables.iter().map(|table| table.table.to_string()).collect();
        let captured = listed(captured.iter().map(String::as_str));
        format!("the pattern {pattern:?} matches none of the tables that are captured: {captured}")
    })
}

fn listed<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let mut first: Vec<&str> = names.by_ref().take(NAMES_MAX).collect();
    first.extend(names.next().map(|_| "…"));
    first.join(", ")
}
