//! The tables that sinks get, and names in their options that fit none of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use cdchost_config::{Finding, Loaded, nearest};
use cdchost_model::TableSchema;
use cdchost_pipeline::PlannedTable;
use cdchost_plugin::Manifest;

/// All target tables, each once; those that rows choose as far as they are known.
pub(super) fn targets(planned: &[PlannedTable]) -> Vec<Arc<TableSchema>> {
    let mut seen = BTreeSet::new();
    let known = planned.iter().flat_map(|table| &table.targets);
    let all = known.chain(planned.iter().flat_map(|table| &table.choices));
    all.filter(|target| seen.insert(target.table.clone())).cloned().collect()
}

/// A finding for each name that options of the sink at this place have for tables, and no table fits: what it says would
/// not be done, and once a table is made it is too late. Where rows choose their tables it is no more than a warning.
pub(super) fn unmet(loaded: &Loaded, (index, manifest): (usize, &Manifest), planned: &[PlannedTable]) -> Vec<Finding> {
    let Some(sink) = loaded.config.sinks.get(index) else { return Vec::new() };
    let tables: Vec<String> = targets(planned).iter().map(|target| target.table.to_string()).collect();
    let may_choose_others = planned.iter().any(|table| table.by_row);
    let unmet = manifest.named_tables(&sink.options).filter(|(_, name)| !tables.iter().any(|table| fits(name, table)));
    let finding = |(option, name): (&str, &str)| {
        let near = nearest(name, tables.iter().map(String::as_str));
        let near = near.map(|near| format!(", did you mean {near}?")).unwrap_or_default();
        let message =
            format!("sink {}: {option} names {name:?}, which fits none of the tables that it gets{near}", sink.id);
        let place = loaded.places.find(&format!("sink.{index}.{option}"));
        if may_choose_others {
            let instruction = "mend the name, unless rows will choose such a table";
            return Finding::warning(message, instruction).at(place);
        }
        Finding::error(message, "mend the name, or take it out; `cdchost check` shows the tables").at(place)
    };
    unmet.map(finding).collect()
}

/// Whether a table fits a name in which `*` stands for any text.
fn fits(name: &str, table: &str) -> bool {
    let Some((first, rest)) = name.split_once('*') else { return name == table };
    let Some(mut left) = table.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some((_, behind)) = left.split_once(part) else { return false };
        left = behind;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        for (name, table, expected) in [
            ("shop.orders", "shop.orders", true),
            ("shop.orders", "shop.orders2", false),
            ("shop.*", "shop.orders", true),
            ("*.orders_*", "a.orders_1", true),
            ("*.orders_*", "a.orders", false),
            ("*", "a.b", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b", "a.b.c", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(fits(name, table), expected, "{name} {table}");
        }
    }
}
