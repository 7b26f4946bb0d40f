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
        let found = self.patterns.iter().find_map(|pattern| pattern.captures(&name));
        let captures = found.ok_or_else(|| refuse("table-unmatched", &format!("no pattern matches table {name}")))?;
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
            (&["a.(.*)"], "t.$2", "target-unusable"),
            (&["b.*"], "t.x", "table-unmatched"),
        ] {
            assert_eq!(target(patterns, to, "a.b").unwrap_err().code, code);
        }
    }

    #[test]
    fn the_readme_has_the_options_as_they_are() {
        check_readme_of(&Patterns::manifest(), env!("CARGO_MANIFEST_DIR"));
    }
}
