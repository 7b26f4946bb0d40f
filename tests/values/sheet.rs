//! The files of values: a type, and below it, indented, each value as SQL. `@ NAME…` keeps what follows to servers of
//! these names or families, `@` alone gives it to all again.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use cdchost_tests::server::Server;
use libtest_mimic::Trial;

use super::observed::{Filled, Shared, shared};
use super::{Origin, looks};

/// A type and its values.
#[derive(Debug)]
struct Sheet {
    column: String,
    values: Vec<String>,
}

/// A test for each value.
pub(crate) fn trials(origin: Origin, server: &Arc<Shared<Server>>) -> Vec<Trial> {
    let sheets = read(origin).expect("the files of values can be read");
    let tables = sheets.iter().enumerate().map(|(number, sheet)| sheet.table(number)).collect();
    let observed = shared(server, "cells", tables, origin.into_lake);
    let mut trials = Vec::new();
    for (number, sheet) in sheets.into_iter().enumerate() {
        for (id, value) in (0i64..).zip(sheet.values) {
            let shown: String = value.chars().take(60).collect();
            let column: String = sheet.column.chars().take(60).collect();
            let observed = Arc::clone(&observed);
            trials.push(looks(format!("{}: {column} = {shown}", origin.name), move || {
                observed.get()?.check(&format!("t{number}"), id)
            }));
        }
    }
    trials
}

impl Sheet {
    fn table(&self, number: usize) -> Filled {
        let rows = self.values.iter().enumerate().map(|(id, value)| format!("({{id}} + {id}, {value})"));
        let rows: Vec<String> = rows.collect();
        Filled {
            name: format!("t{number}"),
            column: self.column.clone(),
            insert: format!("INSERT INTO t{number} (id, v) VALUES {}", rows.join(", ")),
        }
    }
}

fn read(origin: Origin) -> Result<Vec<Sheet>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("values/data");
    let entries = std::fs::read_dir(&folder).context("the files of values")?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut sheets: Vec<Sheet> = Vec::new();
    for file in files {
        let mut is_meant = true;
        for line in std::fs::read_to_string(&file)?.lines() {
            let text = line.trim();
            if let Some(names) = text.strip_prefix('@') {
                let mut names = names.split_ascii_whitespace().peekable();
                is_meant = names.peek().is_none() || names.any(|name| name == origin.name || name == origin.family);
            } else if text.is_empty() || text.starts_with('#') || !is_meant {
                continue;
            } else if line.starts_with(' ') {
                let sheet = sheets.last_mut().with_context(|| format!("{} begins with a value", file.display()))?;
                sheet.values.push(text.to_owned());
            } else {
                sheets.push(Sheet { column: text.to_owned(), values: Vec::new() });
            }
        }
    }
    for sheet in &mut sheets {
        if !sheet.column.contains("NOT NULL") {
            sheet.values.push("NULL".to_owned());
        }
    }
    Ok(sheets)
}
