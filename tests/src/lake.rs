//! Other people's readers of Paimon tables: pypaimon, and Paimon's own Java library.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cache;
use crate::project;
use crate::rows::{Rows, Table};
use crate::watchdog::Process;

const PYPAIMON: &str = "2.1.0";
const PAIMON_JAVA: &str = "1.4.2";
const HADOOP: &str = "3.3.6";

/// Which reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    Java,
}

/// A reader's process; it answers any number of requests, since its start takes longer than most of them.
#[derive(Debug)]
pub struct LakeReader {
    language: Language,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Process,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Row(Map<String, Value>),
    End(usize),
    Error(String),
}

impl LakeReader {
    /// The official reader for Python.
    pub fn pypaimon() -> Result<Self> {
        let packages = [format!("pypaimon=={PYPAIMON}")];
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        let python = cache::python_environment(&format!("pypaimon-{PYPAIMON}"), &packages)?;
        let mut command = Command::new(python);
        command.arg(project::root().join("tests/readers/paimon_reader.py")).env("TZ", "UTC");
        Self::start(Language::Python, command)
    }

    /// Paimon's own library.
    pub fn java() -> Result<Self> {
        cdchost_tools::need(&[cdchost_tools::JDK])?;
        let hadoop = |part: &str| format!("org.apache.hadoop:hadoop-client-{part}:{HADOOP}");
        let artifacts = [
            format!("org.apache.paimon:paimon-bundle:{PAIMON_JAVA}"),
            hadoop("api"),
            hadoop("runtime"),
            "commons-logging:commons-logging:1.2".to_owned(),
            "org.slf4j:slf4j-nop:1.7.36".to_owned(),
        ];
        let artifacts: Vec<&str> = artifacts.iter().map(String::as_str).collect();
        let jars = cache::jars(&format!("paimon-java-{PAIMON_JAVA}"), &artifacts)?;
        let mut command = Command::new("java");
        command.args(["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]);
        command.arg("-cp").arg(jars.join("*")).arg(project::root().join("tests/readers/PaimonReader.java"));
        Self::start(Language::Java, command)
    }

    fn start(language: Language, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::start(&mut command)?;
        let requests = process.pipes().stdin.take().context("the input is piped")?;
        let answers = process.pipes().stdout.take().context("the output is piped")?;
        Ok(Self { language, requests, answers: BufReader::new(answers), _process: process })
    }

    /// Its name, for people.
    pub fn name(&self) -> &'static str {
        match self.language {
            Language::Python => "pypaimon",
            Language::Java => "Paimon's Java",
        }
    }

    /// All rows of the table at `path`, as of its newest snapshot or an older one.
    pub fn rows(&mut self, path: &Path, table: &Table, snapshot: Option<u64>) -> Result<Rows> {
        let mut rows = Rows::default();
        self.each(path, snapshot, |cells| rows.put_named(table, cells))?;
        Ok(rows)
    }

    /// Gives every row of the table at `path` to `take`, as the reader spells it; says how many there were.
    pub fn each(
        &mut self,
        path: &Path,
        snapshot: Option<u64>,
        mut take: impl FnMut(&Map<String, Value>) -> Result<()>,
    ) -> Result<usize> {
        let path = path.to_str().context("the lake's path is UTF-8")?;
        match self.language {
            Language::Python => writeln!(self.requests, "{}", json!({"path": path, "snapshot": snapshot})),
            Language::Java => {
                writeln!(self.requests, "{path}\t{}", snapshot.map(|n| n.to_string()).unwrap_or_default())
            }
        }?;
        let (mut line, mut count) = (String::new(), 0);
        loop {
            line.clear();
            ensure!(self.answers.read_line(&mut line)? > 0, "the {:?} reader ended without an answer", self.language);
            match serde_json::from_str(&line).context("a reader's answer")? {
                Answer::Row(cells) => {
                    count += 1;
                    take(&cells)?;
                }
                Answer::End(all) => {
                    ensure!(all == count, "the reader counted {all} rows and gave {count}");
                    return Ok(count);
                }
                Answer::Error(error) => bail!("the {:?} reader cannot read {path}: {error}", self.language),
            }
        }
    }
}
