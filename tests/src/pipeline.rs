//! The program under test as one runs it: a pipeline.toml, a state folder, a process.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bucket;
use crate::control::{self, Reply};
use crate::journal::Journal;
use crate::project;
use crate::server::{ACCOUNT, PASSWORD, Server};
use crate::wait;
use crate::watchdog::Process;

/// Time for one answer of the control surface that only looks.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Options of a sink that writes files of lines.
const LINES: &str = "path = \"lake/out\"\nmetadata = [\"change-seq\", \"transaction\", \"ordinal\", \"position\"]\n";

/// What a pipeline of the suites does.
#[derive(Clone, Debug)]
pub struct PipelineSpec {
    /// Its name.
    pub name: String,
    /// `host:port` of the server.
    pub source: String,
    /// Patterns of the tables.
    pub tables: Vec<String>,
    /// The component that it writes with.
    pub sink: String,
    /// Lines for the sink's section beyond `id`, `plugin` and its root.
    pub sink_options: String,
    /// Further settings, each a key with its section (`source.readers`) and a value.
    pub settings: Vec<(String, String)>,
    /// Rows of a chunk.
    pub chunk_rows: u32,
    /// Time between checkpoints, as the file says it.
    pub interval: String,
    /// The options of the bucket in which lake and checkpoints lie; none: in folders.
    pub bucket: Option<BTreeMap<String, String>>,
}

impl PipelineSpec {
    /// All tables of `database` on `source` into a Paimon lake, a checkpoint every second.
    pub fn into_lake(source: &str, database: &str) -> Self {
        Self {
            name: database.to_owned(),
            source: source.to_owned(),
            tables: vec![format!("{database}.*")],
            sink: "paimon".to_owned(),
            sink_options: "warehouse = \"lake/wh\"\n".to_owned(),
            settings: Vec::new(),
            chunk_rows: 8096,
            interval: "1s".to_owned(),
            bucket: None,
        }
    }

    /// As [`Self::into_lake`], but into files of lines, which tell of each change where it came from.
    pub fn into_files(source: &str, database: &str) -> Self {
        let (sink, sink_options) = ("file".to_owned(), LINES.to_owned());
        Self { sink, sink_options, ..Self::into_lake(source, database) }
    }

    /// Into both: the lake is sink `target`, the files are sink `lines`.
    pub fn into_lake_and_files(source: &str, database: &str) -> Self {
        let mut spec = Self::into_lake(source, database);
        spec.sink_options += "\n[[sink]]\nid = \"lines\"\nplugin = \"file\"\nallow.store = [\"lake\"]\n";
        spec.sink_options += LINES;
        spec
    }
}

/// A pipeline in a folder of its own: `pipeline.toml`, `state/`, `lake/`, `log`.
#[derive(Debug)]
pub struct Pipeline {
    folder: PathBuf,
    process: Option<Process>,
}

impl Pipeline {
    /// Writes its file; starts nothing.
    pub fn new(folder: &Path, spec: &PipelineSpec) -> Result<Self> {
        fs::create_dir_all(folder.join("lake"))?;
        let pipeline = Self { folder: folder.to_owned(), process: None };
        fs::write(pipeline.file(), toml(folder, spec))?;
        Ok(pipeline)
    }

    /// Its pipeline.toml.
    pub fn file(&self) -> PathBuf {
        self.folder.join("pipeline.toml")
    }

    /// The root that its sink writes under.
    pub fn lake(&self) -> PathBuf {
        self.folder.join("lake")
    }

    /// Where a table lies in the lake.
    pub fn table(&self, database: &str, name: &str) -> PathBuf {
        self.lake().join("wh").join(format!("{database}.db")).join(name)
    }

    /// Where its files of lines lie.
    pub fn files(&self) -> PathBuf {
        self.lake().join("out")
    }

    /// Its log, all runs one after the other.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Starts the program, with these further arguments and variables; its log goes to [`Self::log`].
    pub fn start(&mut self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let mut command = self.command(program, arguments, environment)?;
        command.args(["--log-format", "json"]).stderr(log);
        self.run(&mut command)
    }

    /// Starts the program with its progress on our own standard error.
    pub fn start_in_sight(&mut self, program: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(program, arguments, &[])?;
        command.stderr(Stdio::inherit());
        self.run(&mut command)
    }

    fn command(&self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Command> {
        let mut command = Command::new(program);
        command.arg("run").arg("--plugins").arg(project::plugins()?).args(arguments).arg(self.file());
        command
            .env("CDCHOST_TEST_PASSWORD", PASSWORD)
            .env("CDCHOST_TEST_SECRET", bucket::SECRET)
            .envs(environment.iter().copied());
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn run(&mut self, command: &mut Command) -> Result<()> {
        ensure!(self.ended()?.is_some() || self.process.is_none(), "the pipeline still runs");
        self.process = Some(Process::start(command)?);
        Ok(())
    }

    /// How the last run ended, if it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.process.as_mut().map_or(Ok(None), Process::ended)
    }

    /// What the control surface shows; none while nobody answers there.
    pub fn status(&self) -> Result<Option<Value>> {
        let reply = control::request(&self.socket(), "GET", "/v1/status", ANSWER_LIMIT)?;
        let Some(Reply { code, body }) = reply else { return Ok(None) };
        ensure!(code == 200, "status: {code} {body}");
        Ok(Some(body))
    }

    /// Has all that the source did so far committed; gives the epoch.
    pub fn checkpoint(&self, limit: Duration) -> Result<u64> {
        let reply = control::request(&self.socket(), "POST", "/v1/checkpoint", limit)?;
        let Reply { code, body } = reply.context("nobody answers at the control socket")?;
        ensure!(code == 200, "checkpoint: {code} {body}");
        body["epoch"].as_u64().context("a checkpoint has an epoch")
    }

    /// Waits until the status is as asked; an ended run or a failed pipeline ends the wait.
    pub fn wait_until(&mut self, what: &str, limit: Duration, mut is: impl FnMut(&Value) -> bool) -> Result<Value> {
        wait::until(what, limit, || {
            self.ensure_not_failed()?;
            ensure!(self.ended()?.is_none(), "the program ended:\n{}", self.last_lines());
            let Some(status) = self.status()? else { return Ok(None) };
            ensure!(status["state"] != "failed", "the pipeline failed: {}", status["reason"]);
            Ok(is(&status).then_some(status))
        })
    }

    /// Waits until it has read all that the server has, by the status' own word.
    pub fn wait_until_caught_up(&mut self, limit: Duration) -> Result<Value> {
        self.wait_until("the pipeline has caught up", limit, |s| s["phase"] == "streaming" && s["caught-up"] == true)
    }

    /// Waits until it has handed on all that the server has done so far. "Caught up" alone says that of a moment ago.
    pub async fn wait_until_at_the_end_of(&mut self, server: &Server, limit: Duration) -> Result<()> {
        let end = server.log_end().await?;
        self.wait_until_caught_up(limit)?;
        self.wait_until("the pipeline is at the server's end", limit, |status| {
            status["position"].as_str().and_then(place).is_some_and(|place| place >= end)
        })?;
        Ok(())
    }

    /// Whether a run was started and has not ended.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.process.is_some() && self.ended()?.is_none())
    }

    /// Refuses a run that ended in a failure of its own; one that was killed or stopped has none.
    pub fn ensure_not_failed(&mut self) -> Result<()> {
        if let Some(status) = self.ended()?.filter(|status| status.code().is_some_and(|code| code != 0)) {
            bail!("the program ended with {status}: {}", self.failure()?);
        }
        Ok(())
    }

    /// What its log says of why it ended.
    fn failure(&self) -> Result<String> {
        let events = Journal::new(&self.log()).read()?;
        let told = events.iter().filter(|event| matches!(event.name.as_str(), "finding" | "ended"));
        Ok(told.filter_map(|event| event.text("message")).collect::<Vec<_>>().join("; "))
    }

    /// Sends it a signal by its name (`STOP`, `CONT`, …).
    pub fn signal(&mut self, name: &str) -> Result<()> {
        self.process.as_mut().context("nothing runs")?.signal(name)
    }

    /// Kills it at this moment.
    pub fn kill(&mut self) -> Result<()> {
        self.process.as_mut().context("nothing runs")?.kill().map(|_| ())
    }

    /// Asks it to end, and waits for that.
    pub fn stop(&mut self, limit: Duration) -> Result<ExitStatus> {
        let process = self.process.as_mut().context("nothing runs")?;
        process.signal("TERM")?;
        process.wait(limit)
    }

    /// Waits until it ends by itself.
    pub fn wait_for_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.as_mut().context("nothing runs")?.wait(limit)
    }

    /// The end of its log, for a person.
    pub fn last_lines(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Its checkpoint store and all else that it needs to go on.
    pub fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn socket(&self) -> PathBuf {
        self.state().join("control.sock")
    }
}

fn toml(folder: &Path, spec: &PipelineSpec) -> String {
    let PipelineSpec { name, source, sink, sink_options, chunk_rows, interval, .. } = spec;
    let folder = folder.display();
    let in_source = settings_of(spec, "source.");
    let (storages, store) = match &spec.bucket {
        None => (format!("[storage.lake]\nurl = \"file://{folder}/lake\"\n"), format!("file://{folder}/state")),
        Some(options) => (in_bucket("lake", options) + &in_bucket("state", options), "storage:state/own".to_owned()),
    };
    let tables = spec.tables.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().join(", ");
    format!(
        r#"[pipeline]
name = "{name}"
parallelism = 2

[source]
type = "mysql"
hosts = ["{source}"]
username = "{ACCOUNT}"
password = "${{CDCHOST_TEST_PASSWORD}}"
tables = [{tables}]
startup.mode = "initial"
chunk.rows = {chunk_rows}
{in_source}
[[sink]]
id = "target"
plugin = "{sink}"
allow.store = ["lake"]
{sink_options}
{storages}
[checkpoint]
interval = "{interval}"
store = "{store}"
folder = "{folder}/state"
"#
    )
}

/// File and byte of a position `FILE:BYTE` or `SET (FILE:BYTE)`.
fn place(position: &str) -> Option<(String, u64)> {
    let position = position.rsplit_once('(').map_or(position, |(_, place)| place.trim_end_matches(')'));
    let (file, byte) = position.rsplit_once(':')?;
    Some((file.to_owned(), byte.parse().ok()?))
}

/// The lines of the settings in a section: numbers as they are, all else in quotes.
fn settings_of(spec: &PipelineSpec, section: &str) -> String {
    let mut lines = String::new();
    for (key, value) in &spec.settings {
        if let Some(key) = key.strip_prefix(section) {
            let plain = value.parse::<i64>().is_ok() || value == "true" || value == "false";
            let value = if plain { value.clone() } else { format!("{value:?}") };
            lines += &format!("{key} = {value}\n");
        }
    }
    lines
}

/// A storage of this name at the prefix of this name.
fn in_bucket(name: &str, options: &BTreeMap<String, String>) -> String {
    let mut section = format!("[storage.{name}]\nurl = \"s3://{}/{name}\"\n", bucket::NAME);
    for (key, value) in options {
        section += &match key.as_str() {
            "allow-http" => format!("{key} = {value}\n"),
            "secret-access-key" => format!("{key} = \"${{CDCHOST_TEST_SECRET}}\"\n"),
            _ => format!("{key} = {value:?}\n"),
        };
    }
    section
}
