//! A small shop, a pipeline from it into a lake and into files, and what both must hold.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cdchost_tests::binlog::Place;
use cdchost_tests::journal::Journal;
use cdchost_tests::lake::LakeReader;
use cdchost_tests::ledger::{self, Books};
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::server::Server;
use cdchost_tests::watchdog::Folder;
use cdchost_tests::{lines, project, shop, verdict};

pub(crate) const LIMIT: Duration = Duration::from_secs(120);
const DATABASE: &str = "steps";
/// More than any test makes changes: each has rows of its own, so that none hides what became of another.
const ORDERS: u32 = 60;
const SIGABRT: i32 = 6;

pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) folder: Folder,
    pub(crate) spec: PipelineSpec,
    pub(crate) pipeline: Pipeline,
    reader: LakeReader,
    from: Place,
    changes: u32,
}

impl Scene {
    pub(crate) async fn open(interval: &str) -> Result<Self> {
        let server = Server::start()?;
        shop::open(&server, DATABASE, ORDERS).await?;
        let folder = Folder::new("steps")?;
        let spec = PipelineSpec {
            interval: interval.to_owned(),
            ..PipelineSpec::into_lake_and_files(&server.address(), DATABASE)
        };
        let pipeline = Pipeline::new(folder.path(), &spec)?;
        let from = server.log_end().await?;
        Ok(Self { server, folder, spec, pipeline, reader: LakeReader::pypaimon()?, from, changes: 0 })
    }

    /// One transaction: a row comes, one changes, one goes, and one becomes another's.
    pub(crate) async fn change(&mut self) -> Result<()> {
        self.changes += 1;
        let n = self.changes;
        ensure!(n <= ORDERS, "the shop has too few orders");
        self.server
            .run(&[
                "USE steps",
                "BEGIN",
                &format!("INSERT INTO customers VALUES ({}, 'n{n}', NULL, NULL, 0, 1, '', 0x00, NULL, NULL)", 1000 + n),
                &format!("UPDATE orders SET amount = amount + 1, total = -total WHERE id = {n}"),
                &format!("DELETE FROM order_lines WHERE order_id = {n} AND line = 1"),
                &format!("UPDATE order_lines SET order_id = {} WHERE order_id = {n} AND line = 2", 1000 + n),
                "COMMIT",
            ])
            .await
    }

    /// Makes a change and has a run die at the failpoint: in the epoch that holds the change, or in the recovery.
    pub(crate) async fn die_at(&mut self, failpoint: &str) -> Result<()> {
        self.change().await?;
        self.pipeline.start(project::program()?, &[], &[("FAILPOINTS", &format!("{failpoint}=return(abort)"))])?;
        if !failpoint.starts_with("recovery") {
            self.pipeline.wait_until_at_the_end_of(&self.server, LIMIT).await?;
            // Whether it still answers depends on where it dies.
            let _ = self.pipeline.checkpoint(LIMIT);
        }
        let status = self.pipeline.wait_for_end(LIMIT)?;
        ensure!(status.signal() == Some(SIGABRT), "it ended with {status}:\n{}", self.pipeline.last_lines());
        Ok(())
    }

    /// Has a run go on undisturbed to the log's end, and stops it.
    pub(crate) async fn make_good(&mut self) -> Result<()> {
        self.pipeline.start(project::program()?, &[], &[])?;
        self.pipeline.wait_until_at_the_end_of(&self.server, LIMIT).await?;
        self.pipeline.checkpoint(LIMIT)?;
        let status = self.pipeline.stop(LIMIT)?;
        ensure!(status.success(), "it ended with {status}:\n{}", self.pipeline.last_lines());
        Ok(())
    }

    /// Holds both targets against the server, now that nothing runs.
    pub(crate) async fn compare(&mut self) -> Result<()> {
        let books = Books::open(&self.server, &self.pipeline.files(), DATABASE, &self.from).await?;
        let in_files = ledger::compare(&books)?;
        let readers = std::slice::from_mut(&mut self.reader);
        let in_lake = verdict::compare(&self.server, &self.pipeline, DATABASE, readers).await?;
        let events = Journal::new(&self.pipeline.log()).read()?;
        let committed = events.iter().rev().find(|event| event.name == "committed");
        let epoch = committed.and_then(|event| event.number("epoch")).context("an epoch was committed")?;
        let left = lines::litter(&self.pipeline.files(), DATABASE, epoch)?;
        let found: Vec<&String> = in_files.shown.iter().chain(&in_lake.shown).chain(&left).collect();
        ensure!(found.is_empty(), "{found:#?}");
        Ok(())
    }

    /// Objects that lie in both targets, and in the checkpoint store.
    pub(crate) fn objects(&self) -> Result<(usize, usize)> {
        Ok((lines::files(&self.pipeline.lake())?.len(), lines::files(&self.pipeline.state())?.len()))
    }
}
