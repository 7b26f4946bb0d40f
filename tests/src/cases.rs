//! Cases from bug reports: SQL before and after the start of a pipeline, and the server's own answer as the measure.
//!
//! A case is a folder with `setup.sql`, `changes.sql` and, where it was made from a real server, `expected.json`.

mod run;
mod script;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub use run::{Bench, Outcome};
use script::{Script, Step};

/// When the pipeline starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// After all changes: they are read from the tables.
    Snapshot,
    /// Before all changes: they are read from the log.
    Stream,
    /// Between two of them, drawn at random.
    Mixed,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Snapshot, Self::Stream, Self::Mixed];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Stream => "stream",
            Self::Mixed => "mixed",
        }
    }
}

/// A case, read from its folder.
#[derive(Clone, Debug)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    setup: Script,
    changes: Vec<Step>,
    /// Rows that each table has in the end, by the name `database.table`; none where nobody wrote it down.
    expected: Option<Value>,
}

impl Case {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().and_then(|name| name.to_str()).context("a case's folder has a name in UTF-8")?;
        let file = |file: &str| fs::read_to_string(folder.join(file)).with_context(|| format!("{name}/{file}"));
        let script = |of: &str| Script::parse(&file(of)?).with_context(|| format!("{name}/{of}"));
        let (mut setup, changes) = (script("setup.sql")?, script("changes.sql")?);
        setup.capture.extend(changes.capture);
        setup.options.extend(changes.options);
        setup.once |= changes.once;
        ensure!(!setup.capture.is_empty(), "{name}: no line `-- @capture` names the tables");
        let expected = match file("expected.json") {
            Ok(text) => Some(serde_json::from_str::<Value>(&text).with_context(|| format!("{name}/expected.json"))?),
            Err(_) => None,
        };
        let expected = expected.map(|all| all["final"].clone());
        Ok(Self { name: name.to_owned(), setup, changes: changes.steps, expected })
    }

    /// Reads all cases below a folder, by name.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut folders: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        folders.retain(|path| path.join("setup.sql").exists());
        folders.sort();
        ensure!(!folders.is_empty(), "no case (a folder with `setup.sql`) in {}", folder.display());
        folders.iter().map(|folder| Self::read(folder)).collect()
    }

    /// Databases that its statements create.
    fn databases(&self) -> Vec<String> {
        let pattern = regex::Regex::new(r"(?i)^\s*CREATE\s+DATABASE\s+(?:IF\s+NOT\s+EXISTS\s+)?`?([^\s`]+)")
            .expect("the pattern is written right");
        let steps = self.setup.steps.iter().chain(&self.changes);
        let created = steps.filter_map(|step| if let Step::Sql(sql) = step { pattern.captures(sql) } else { None });
        let mut names: Vec<String> = created.map(|found| found[1].to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }
}
