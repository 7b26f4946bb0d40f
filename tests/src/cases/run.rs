//! Runs a case in a mode: server, program, kills, and the comparison at the end.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cdchost_config::TablePatterns;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::script::{Action, Step};
use super::{Case, Mode};
use crate::journal::Journal;
use crate::lake::LakeReader;
use crate::origin;
use crate::pipeline::{Pipeline, PipelineSpec};
use crate::project;
use crate::server::Server;
use crate::verdict::{self, Verdict};
use crate::wait;
use crate::watchdog::Folder;

const LIMIT: Duration = Duration::from_secs(90);
/// A kill falls at most so long after the moment that was drawn for it.
const KILL_DELAY_MAX: Duration = Duration::from_millis(400);

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target holds what the server holds.
    Passed,
    /// It does not, or the run got stuck.
    Failed(String),
    /// It needs what is not offered yet.
    Skipped(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(why) => write!(f, "FAILED: {why}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

/// A server and readers for any number of runs.
#[derive(Debug)]
pub struct Bench {
    server: Server,
    readers: [LakeReader; 2],
    kills: u32,
    random: StdRng,
}

impl Bench {
    /// Starts them. The program is killed `kills` times in each run, at moments that `seed` draws.
    pub fn open(kills: u32, seed: u64) -> Result<Self> {
        let readers = [LakeReader::pypaimon()?, LakeReader::java()?];
        Ok(Self { server: Server::start()?, readers, kills, random: StdRng::seed_from_u64(seed) })
    }

    /// Runs a case in a mode.
    pub async fn run(&mut self, case: &Case, mode: Mode) -> Outcome {
        match self.attempt(case, mode).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    async fn attempt(&mut self, case: &Case, mode: Mode) -> Result<Outcome> {
        let fresh = if case.setup.once { Some(Server::start()?) } else { None };
        let usual = fresh.map(|server| std::mem::replace(&mut self.server, server));
        let folder = Folder::new("case")?;
        let mut pipeline = Pipeline::new(folder.path(), &spec(case, &self.server)?)?;
        let ran = self.steps(case, mode, &mut pipeline).await;
        let outcome = match ran {
            Ok(()) => self.compare(case, &pipeline).await,
            Err(error) => stopped(&pipeline, error),
        };
        if let Some(usual) = usual {
            self.server = usual;
        }
        outcome
    }

    /// All of the case's statements and actions, up to a checkpoint with everything in it.
    async fn steps(&mut self, case: &Case, mode: Mode, pipeline: &mut Pipeline) -> Result<()> {
        let before = match mode {
            Mode::Snapshot => case.changes.len(),
            Mode::Stream => 0,
            Mode::Mixed => self.random.random_range(0..=case.changes.len()),
        };
        let (early, late) = case.changes.split_at(before);
        let mut session = Session::open(&self.server).await?;
        for database in case.databases() {
            session.run(&format!("DROP DATABASE IF EXISTS {}", origin::quoted(&database))).await?;
        }
        for step in case.setup.steps.iter().chain(early) {
            if let Step::Sql(sql) = step {
                session.run(sql).await?;
            }
        }
        let program = project::program()?;
        pipeline.start(program, &[], &[])?;
        if mode == Mode::Stream {
            pipeline.wait_until_caught_up(LIMIT)?;
        }
        let mut kills: Vec<usize> = (0..self.kills).map(|_| self.random.random_range(0..=late.len())).collect();
        kills.sort_unstable();
        for place in 0..=late.len() {
            pipeline.ensure_not_failed()?;
            for _ in kills.iter().filter(|&&kill| kill == place) {
                self.kill(program, pipeline).await?;
            }
            match late.get(place) {
                Some(Step::Sql(sql)) => session.run(sql).await?,
                Some(Step::Do(action)) => self.act(*action, program, pipeline, &mut session).await?,
                None => {}
            }
        }
        pipeline.ensure_not_failed()?;
        if !pipeline.is_running()? {
            pipeline.start(program, &[], &[])?;
        }
        pipeline.wait_until_at_the_end_of(&self.server, LIMIT).await?;
        pipeline.checkpoint(LIMIT)?;
        session.close().await
    }

    async fn kill(&mut self, program: &Path, pipeline: &mut Pipeline) -> Result<()> {
        if pipeline.is_running()? {
            wait::pass(self.random.random_range(Duration::ZERO..KILL_DELAY_MAX)).await;
            pipeline.ensure_not_failed()?;
            pipeline.kill()?;
            pipeline.start(program, &[], &[])?;
        }
        Ok(())
    }

    async fn act(
        &mut self,
        action: Action,
        program: &Path,
        pipeline: &mut Pipeline,
        session: &mut Session,
    ) -> Result<()> {
        let runs = pipeline.is_running()?;
        match action {
            Action::WaitCaughtUp if runs => pipeline.wait_until_at_the_end_of(&self.server, LIMIT).await,
            Action::Checkpoint if runs => {
                pipeline.wait_until_at_the_end_of(&self.server, LIMIT).await?;
                pipeline.checkpoint(LIMIT).map(drop)
            }
            Action::KillHost if runs => pipeline.kill(),
            Action::StopHost if runs => pipeline.stop(LIMIT).map(drop),
            Action::StartHost if !runs => pipeline.start(program, &[], &[]),
            Action::PauseSource if runs => pipeline.signal("STOP"),
            Action::ResumeSource if runs => pipeline.signal("CONT"),
            Action::RestartServer => {
                if runs {
                    // A start that meets no server is refused; the case is about a run that loses it.
                    pipeline.wait_until("the pipeline runs", LIMIT, |status| status["state"] == "running")?;
                }
                self.server.stop()?;
                self.server.start_again()?;
                session.reopen(&self.server).await
            }
            Action::PurgeBinlogs => self.server.purge_logs().await,
            _ => Ok(()),
        }
    }

    /// Every captured table, by the server's word and both readers; and that there is no other.
    async fn compare(&mut self, case: &Case, pipeline: &Pipeline) -> Result<Outcome> {
        let patterns = TablePatterns::parse(&case.setup.capture)?;
        let mut connection = self.server.connect().await?;
        let mut verdict = Verdict::default();
        for database in case.databases() {
            let mut tables = origin::describe_all(&mut connection, &database).await?;
            tables.retain(|table| patterns.matches(&table.database, &table.name));
            let folder = pipeline.lake().join("wh").join(format!("{database}.db"));
            for entry in folder.read_dir().into_iter().flatten() {
                let name = entry?.file_name();
                if !tables.iter().any(|table| name == table.name.as_str()) {
                    verdict.add(format!("the lake has a table {database}.{} that is not captured", name.display()));
                }
            }
            for table in &tables {
                let rows = verdict::compare_table(&mut connection, pipeline, table, &mut self.readers, &mut verdict);
                let rows = rows.await?;
                let expected = case.expected.as_ref().and_then(|all| all[table.to_string()]["rows"].as_array());
                if let Some(expected) = expected.filter(|expected| expected.len() != rows) {
                    verdict.add(format!("{table}: the server has {rows} rows, expected were {}", expected.len()));
                }
            }
        }
        connection.disconnect().await?;
        if verdict.differences == 0 {
            return Ok(Outcome::Passed);
        }
        Ok(Outcome::Failed(format!("{} differences\n    {}", verdict.differences, verdict.shown.join("\n    "))))
    }
}

/// The run ended in an error: a stop because of a schema change, which is not carried yet, is one that is meant to be.
fn stopped(pipeline: &Pipeline, error: anyhow::Error) -> Result<Outcome> {
    let events = Journal::new(&pipeline.log()).read()?;
    let last = events.iter().rev().find(|event| event.name == "pipeline-failed");
    if let Some(event) = last.filter(|event| event.text("code") == Some("mysql-table-changed")) {
        return Ok(Outcome::Skipped(event.text("reason").context("a failure has a reason")?.to_owned()));
    }
    // A start that fell between the drop and the making of the only table.
    let finding = events.iter().filter(|event| event.name == "finding").find_map(|event| event.text("message"));
    match finding.filter(|message| message.contains("no table that the account can see")) {
        Some(message) => Ok(Outcome::Skipped(message.to_owned())),
        None => Err(error),
    }
}

fn spec(case: &Case, server: &Server) -> Result<PipelineSpec> {
    let mut spec = PipelineSpec {
        name: "case".to_owned(),
        tables: case.setup.capture.clone(),
        chunk_rows: 100,
        interval: "300ms".to_owned(),
        ..PipelineSpec::into_lake(&server.address(), "case")
    };
    for (key, value) in &case.setup.options {
        match key.as_str() {
            "checkpoint.interval" => spec.interval.clone_from(value),
            "source.chunk.rows" => spec.chunk_rows = value.parse().context("source.chunk.rows")?,
            key if key.starts_with("source.") => spec.settings.push((key.to_owned(), value.clone())),
            other => bail!("the setting {other} is not one that a case can have"),
        }
    }
    Ok(spec)
}

/// The connection that a case's statements run on: one session, as a person at a client has it.
struct Session {
    connection: Conn,
    /// The last `USE`.
    database: Option<String>,
}

impl Session {
    async fn open(server: &Server) -> Result<Self> {
        let mut connection = server.connect().await?;
        connection.query_drop("SET sql_mode = DEFAULT").await?;
        Ok(Self { connection, database: None })
    }

    async fn reopen(&mut self, server: &Server) -> Result<()> {
        let database = self.database.take();
        *self = Self::open(server).await?;
        match database {
            Some(sql) => self.run(&sql).await,
            None => Ok(()),
        }
    }

    async fn run(&mut self, sql: &str) -> Result<()> {
        self.connection.query_drop(sql).await.with_context(|| sql.chars().take(200).collect::<String>())?;
        if sql.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("use ")) {
            self.database = Some(sql.to_owned());
        }
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(self.connection.disconnect().await?)
    }
}
