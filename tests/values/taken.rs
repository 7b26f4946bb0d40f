//! A target in memory: what a source hands on, row by row, and how often.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use async_trait::async_trait;
use cdchost_config::MysqlConfig;
use cdchost_connector::{
    ConnectorError, EventSender, SnapshotState, SourceCommand, SourceConnector, SourceContext, SourceEnd, SourceEvent,
    SourceProgress, SystemClock,
};
use cdchost_model::{ChangeBatch, Op};
use cdchost_mysql::MysqlSource;
use cdchost_tests::cell::{cell, exact};
use cdchost_tests::rows::{self, Rows, Table};
use cdchost_tests::wait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long a test waits for a fact.
const LIMIT: Duration = Duration::from_secs(120);

/// The values of a key's columns, bit for bit.
type Key = Vec<Option<Vec<u8>>>;

/// A row in the suites' spelling, and bit for bit.
#[derive(Clone, Debug)]
pub(crate) struct TakenRow {
    pub(crate) spelled: Vec<String>,
    pub(crate) exact: Vec<Option<Vec<u8>>>,
}

/// What was taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// By table, then by the bytes of the key's columns.
    pub(crate) tables: BTreeMap<String, BTreeMap<Key, TakenRow>>,
    /// Rows read by snapshots and changes of rows.
    pub(crate) events: usize,
    ended: bool,
}

impl Taken {
    /// The rows of a table must be those expected.
    pub(crate) fn same(&self, table: &Table, expected: &Rows) -> Result<()> {
        let mut found = Rows::default();
        for row in self.tables.get(&table.name).into_iter().flat_map(BTreeMap::values) {
            found.put(table, row.spelled.clone())?;
        }
        let differences = rows::differences(table, expected, &found);
        let shown: Vec<String> = differences.iter().map(|difference| format!("{table}: {difference}")).collect();
        ensure!(shown.is_empty(), "{}", shown.join("\n"));
        Ok(())
    }

    fn apply(&mut self, batch: &ChangeBatch) {
        let schema = batch.schema();
        let table = self.tables.entry(schema.table.table.clone()).or_default();
        for row in 0..batch.rows() {
            let op = Op::try_from(batch.ops()[row]).expect("a batch is checked");
            let columns = batch.columns().columns();
            let exact: Vec<_> = columns.iter().map(|column| exact(column, row)).collect();
            let key = schema.primary_key.iter().map(|&place| exact[place as usize].clone()).collect();
            match op {
                Op::UpdateBefore => continue,
                Op::Delete => drop(table.remove(&key)),
                Op::Insert | Op::UpdateAfter | Op::Read => {
                    let spelled = columns.iter().map(|column| cell(column, row)).collect();
                    table.insert(key, TakenRow { spelled, exact });
                }
            }
            self.events += 1;
        }
    }
}

struct Sender(Arc<Mutex<Taken>>);

#[async_trait]
impl EventSender for Sender {
    async fn send(&mut self, event: SourceEvent) -> Result<(), ConnectorError> {
        let mut taken = self.0.lock().expect("no test panics with the lock");
        match event {
            SourceEvent::Batch(batch) => taken.apply(&batch),
            SourceEvent::EndOfInput => taken.ended = true,
            SourceEvent::Table(_) | SourceEvent::Barrier(_) => {}
        }
        Ok(())
    }
}

/// A source that runs into a target in memory.
pub(crate) struct Running {
    taken: Arc<Mutex<Taken>>,
    commands: mpsc::Sender<SourceCommand>,
    progress: watch::Receiver<SourceProgress>,
    run: JoinHandle<Result<(), ConnectorError>>,
}

impl Running {
    /// Opens a source and lets it run.
    pub(crate) async fn start(config: &MysqlConfig, end: SourceEnd) -> Result<Self, ConnectorError> {
        let opened = MysqlSource::new(config.clone(), end).open(None).await?;
        let taken = Arc::new(Mutex::new(Taken::default()));
        let (commands, receiver) = mpsc::channel(16);
        let (shown, progress) = watch::channel(SourceProgress::default());
        let context = SourceContext { commands: receiver, progress: shown, clock: Arc::new(SystemClock::default()) };
        let mut sender = Sender(Arc::clone(&taken));
        let run = tokio::spawn(async move { opened.source.run(&mut sender, context).await });
        Ok(Self { taken, commands, progress, run })
    }

    /// Waits until so many rows were read or changed. The source's own error ends it.
    pub(crate) async fn until_events(&mut self, count: usize) -> Result<()> {
        self.until(|taken| taken.events >= count).await
    }

    /// Waits until all tables are read.
    pub(crate) async fn until_read(&mut self) -> Result<()> {
        let progress = self.progress.clone();
        self.until(|_| {
            let tables = &progress.borrow().tables;
            !tables.is_empty() && tables.values().all(|table| table.snapshot == SnapshotState::Done)
        })
        .await
    }

    async fn until(&mut self, is_so: impl Fn(&Taken) -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let events = {
                let taken = self.taken.lock().expect("no test panics with the lock");
                if is_so(&taken) {
                    return Ok(());
                }
                taken.events
            };
            if self.run.is_finished() {
                (&mut self.run).await??;
                bail!("the source ended after {events} rows");
            }
            if tokio::time::Instant::now() > deadline {
                bail!("only {events} rows came");
            }
            wait::pass(Duration::from_millis(5)).await;
        }
    }

    /// Waits for the end of a bounded run, and gives what was taken.
    pub(crate) async fn until_the_end(mut self) -> Result<Taken> {
        self.until(|taken| taken.ended).await?;
        self.stop().await
    }

    /// Stops it as the engine does, and gives what was taken.
    pub(crate) async fn stop(mut self) -> Result<Taken> {
        drop(self.commands);
        tokio::time::timeout(LIMIT, &mut self.run).await.context("the source stops")???;
        Ok(std::mem::take(&mut *self.taken.lock().expect("no test panics with the lock")))
    }

    /// Waits for its own end with an error.
    pub(crate) async fn until_its_error(mut self) -> Result<ConnectorError> {
        match tokio::time::timeout(LIMIT, &mut self.run).await.context("the source ends")?? {
            Ok(()) => bail!("the source ended without an error"),
            Err(error) => Ok(error),
        }
    }
}
