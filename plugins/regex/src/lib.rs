//! The standard route: a table goes to a target whose name is made of its own.

mod config;

use std::sync::Arc;

use cdchost_sdk::{Manifest, PluginError, Result, Route, Schema, TableId, TableRoute};
use regex::Regex;

pub use config::Options;

/// The route.
#[derive(Debug)]
pub struct Patterns {
    patterns: Vec<Regex>,
    to: String,
}

cdchost_sdk::export_route!(Patterns);

impl Route for Patterns {
    type Options = Options;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "regex", options: Options }
    }

    fn open(options: Options) -> Result<Self> {
        if !options.to.contains('.') {
            return Err(refuse("target-without-dot", "`to` has no dot between database and table"));
        }
        // Those that exclude say only for which tables it is not: the host has looked at them.
        let including = options.tables.iter().filter(|pattern| !pattern.starts_with('!'));
        let patterns = including.map(|pattern| compile(pattern)).collect::<Result<_>>()?;
        Ok(Self { patterns, to: options.to })
    }

    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<TableRoute> {
        let name = schema.table.to_string();
        let found = self.patterns.iter().find_map(|pattern| Some((pattern, pattern.captures(&name)?)));
        let (pattern, captures) =
            found.ok_or_else(|| refuse("table-unmatched", &format!("no pattern matches table {name}")))?;
        if let Some(group) = groups_of(&self.to).find(|group| !has_group(pattern, group)) {
            return Err(group_missing(group, &name));
        }
        let mut target = String::new();
        captures.expand(&self.to, &mut target);
        match target.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok(TableRoute::To(vec![TableId::new(database, table)]))
            }
            _ => Err(refuse("target-unusable", &format!("`to` makes {target:?} of table {name}, which is no table"))),
        }
    }
}

/// The groups that `to` names, told apart as [`regex::Captures::expand`] does.
fn groups_of(to: &str) -> impl Iterator<Item = &str> {
    let mut rest = to;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once('$')?;
            if let Some(escaped) = after.strip_prefix('$') {
                rest = escaped;
                continue;
            }
            if let Some((group, behind)) = after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
                rest = behind;
                return Some(group);
            }
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            rest = &after[end..];
            if end > 0 {
                return Some(&after[..end]);
            }
        }
    })
}

fn has_group(pattern: &Regex, group: &str) -> bool {
    match group.parse::<usize>() {
        Ok(number) => number < pattern.captures_len(),
        Err(_) => pattern.capture_names().flatten().any(|name| name == group),
    }
}

/// Says how a group is written before a letter, in the pipeline file, where a plain `${` is a reference.
fn group_missing(group: &str, table: &str) -> PluginError {
    let digits = group.find(|c: char| !c.is_ascii_digit()).unwrap_or(group.len());
    let hint = match group.split_at(digits) {
        ("", _) | (_, "") => String::new(),
        (number, text) => format!("; write `$${{{number}}}{text}` for group {number} and {text:?} behind it"),
    };
    let message = format!("`to` names the group {group:?}, which the pattern that matches table {table} has not{hint}");
    refuse("group-missing", &message)
}

/// A pattern of the pipeline file over the whole `database.table`; a part that is only `*` matches every name.
fn compile(pattern: &str) -> Result<Regex> {
    let starred = |text: &str| {
        let text = text.strip_prefix("*.").map_or_else(|| text.to_owned(), |rest| format!("[^.]*.{rest}"));
        text.strip_suffix(".*").map_or(text.clone(), |rest| format!("{rest}.(?s:.*)"))
    };
    let unusable = |error: regex::Error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().to_owned();
        refuse("pattern-unusable", &format!("table pattern {pattern:?}: {reason}"))
    };
    Regex::new(&format!("^(?:{})$", starred(pattern))).map_err(unusable)
}

fn refuse(code: &str, message: &str) -> PluginError {
    PluginError::config(code, message)
}

#[cfg(test)]
mod tests {
    use cdchost_sdk::LogicalType;
    use cdchost_sdk::harness::{RouteHarness, Table, check_readme_of};
    use serde_json::json;

    use super::*;

    fn target(patterns: &[&str], to: &str, table: &str) -> Result<TableRoute> {
        let mut route = RouteHarness::<Patterns>::open(json!({ "tables": patterns, "to": to }))?;
        route.table(&Table::new(table).key("id", LogicalType::Int64))
    }

    #[test]
    fn targets_are_made_of_names() {
        for (patterns, to, table, expect) in [
            (&["crm.customers_(.*)"][..], "ods.customers", "crm.customers_7", "ods.customers"),
            (&["crm.customers_(.*)"], "ods.c_$1", "crm.customers_7", "ods.c_7"),
            (&["crm.(?<name>[a-z]+)_[0-9]+"], "ods.${name}_all", "crm.orders_12", "ods.orders_all"),
            (&["!crm.x", "crm.*"], "ods.one", "crm.any thing", "ods.one"),
            (&["*.*"], "ods.$0", "a.b", "ods.a.b"),
            (&["a.b", "c.(.*)"], "t.${1}x", "c.d", "t.dx"),
        ] {
            let expect = expect.split_once('.').map(|(database, table)| TableId::new(database, table)).unwrap();
            assert_eq!(target(patterns, to, table).unwrap(), TableRoute::To(vec![expect]), "{to}");
        }
    }

    #[test]
    fn what_makes_no_target_is_refused() {
        for (patterns, to, code) in [
            (&["a.*"][..], "nowhere", "target-without-dot"),
            (&["a.(.*"], "t.x", "pattern-unusable"),
            (&["a.(.*)"], "t.$2", "group-missing"),
            (&["a.(.*)"], "t.x$1_y", "group-missing"),
            (&["a.(?<one>.*)"], "t.${on}", "group-missing"),
            (&["a.(x?).*"], "t.$1", "target-unusable"),
            (&["b.*"], "t.x", "table-unmatched"),
        ] {
            assert_eq!(target(patterns, to, "a.b").unwrap_err().code, code);
        }
    }

    #[test]
    fn a_group_that_a_letter_follows_is_shown_as_it_is_written() {
        let said = |to| target(&["crm.(.*)"], to, "crm.a").unwrap_err().message.clone();
        assert_eq!(
            said("ods.$1_x"),
            "`to` names the group \"1_x\", which the pattern that matches table crm.a has not; write `$${1}_x` for group 1 \
             and \"_x\" behind it"
        );
        for to in ["ods.$7", "ods.$name"] {
            assert!(said(to).ends_with("has not"), "{to}");
        }
        let groups = |to| groups_of(to).collect::<Vec<_>>();
        assert_eq!(groups("$$1.${a}$0x$-$b${c"), ["a", "0x", "b"]);
    }

    #[test]
    fn the_readme_has_the_options_as_they_are() {
        check_readme_of(&Patterns::manifest(), env!("CARGO_MANIFEST_DIR"));
    }
}
