//! `cdchost check`: says all that is wrong with a pipeline, and what it would write where; starts nothing.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use cdchost_model::{Field, TableSchema};
use cdchost_pipeline::PlannedTable;
use serde_json::{Value, json};

use super::{print, print_json};
use crate::cli::{CheckArguments, LogFormat};
use crate::process::Process;
use crate::server::hex;
use crate::telemetry::{Screen, printable};
use crate::wiring::{Contract, Examined, examine};

/// Runs the command.
pub(crate) fn run(arguments: &CheckArguments, process: Process) -> ExitCode {
    let screen = Screen::start(LogFormat::Text);
    process.run(&screen, async {
        let examined = examine(&arguments.pipeline, &arguments.plugins).await;
        if arguments.json {
            print_json(&as_json(&examined, arguments.show_config));
        } else {
            print(&as_text(&examined, arguments.show_config));
        }
        examined.findings.exit_code().unwrap_or(0)
    })
}

fn as_json(examined: &Examined, show_config: bool) -> Value {
    let loaded = examined.loaded.as_ref();
    let contract = |contract: &Contract| {
        let Contract { sink, version, .. } = contract;
        json!({
            "id": sink.id, "plugin": sink.plugin, "version": version, "digest": hex(&sink.digest),
            "parallelism": sink.parallelism, "contract": contract.lines_as_json(),
        })
    };
    json!({
        "pipeline": loaded.map(|loaded| &loaded.config.name),
        "startable": examined.findings.exit_code().is_none(),
        "findings": examined.findings.iter().map(|(_, finding)| finding).collect::<Vec<_>>(),
        "steps": examined.steps,
        "tables": examined.tables.as_ref().map(|all| all.iter().map(table_json).collect::<Vec<_>>()),
        "sinks": examined.contracts.as_ref().map(|all| all.iter().map(contract).collect::<Vec<_>>()),
        "config": loaded.filter(|_| show_config).map(|loaded| &loaded.shown),
    })
}

fn table_json(table: &PlannedTable) -> Value {
    let target = |schema: &Arc<TableSchema>| {
        let columns = schema.fields.iter().map(|field| {
            let Field { name, ty, nullable, native_type, .. } = field;
            json!({ "name": name, "type": ty.to_string(), "nullable": nullable, "source-type": native_type })
        });
        json!({
            "table": schema.table.to_string(),
            "columns": columns.collect::<Vec<_>>(),
            "key": key(schema),
        })
    };
    json!({
        "source": table.source.to_string(),
        "targets": table.targets.iter().map(target).collect::<Vec<_>>(),
        "by-row": table.by_row,
    })
}

fn key(schema: &TableSchema) -> Vec<&str> {
    let name = |&place: &u32| schema.fields.get(place as usize).map(|field| field.name.as_str());
    schema.primary_key.iter().filter_map(name).collect()
}

fn as_text(examined: &Examined, show_config: bool) -> String {
    let mut text = String::new();
    if let Some(loaded) = examined.loaded.as_ref().filter(|_| show_config) {
        text.push_str(&loaded.shown_as_toml());
        text.push('\n');
    }
    for (_, finding) in examined.findings.iter() {
        text.push_str(&printable(&finding.to_string()));
    }
    examined.steps.iter().for_each(|step| text.push_str(&printable(step)));
    for table in examined.tables.iter().flatten() {
        text.push_str(&printable(&table_text(table)));
    }
    for contract in examined.contracts.iter().flatten() {
        contract.text_lines().for_each(|line| text.push_str(&printable(&line)));
    }
    // Writing to a String cannot fail.
    let _ = match examined.findings.exit_code() {
        None => writeln!(text, "the pipeline can be started; nothing was"),
        Some(_) => writeln!(text, "{}: the pipeline cannot be started", examined.findings.error_count()),
    };
    text
}

/// A table and what becomes of it, columns a line each.
fn table_text(table: &PlannedTable) -> String {
    let mut text = format!("table {}", table.source);
    for schema in &table.targets {
        let key = key(schema);
        let key = if key.is_empty() { "no key".to_owned() } else { format!("key {}", key.join(", ")) };
        let _ = write!(text, "\n    -> {}: {key}", schema.table);
        for field in &schema.fields {
            let null = if field.nullable { "" } else { " not null" };
            let _ = write!(text, "\n        {} {}{null}", field.name, field.ty);
            if !field.native_type.is_empty() {
                let _ = write!(text, " ({})", field.native_type);
            }
        }
    }
    match (table.by_row, table.targets.is_empty()) {
        (true, _) => text.push_str("\n    -> tables that its rows choose"),
        (false, true) => text.push_str("\n    -> nowhere"),
        (false, false) => {}
    }
    text
}
