//! A target in memory that takes a source's events, and a source that runs into it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use cdchost_config::MysqlConfig;
use cdchost_connector::{
    ConnectorError, EventSender, SnapshotState, SourceBarrier, SourceCommand, SourceConnector, SourceContext,
    SourceEnd, SourceEvent, SourceProgress, SourceRestore, SystemClock,
};
use cdchost_model::{ChangeBatch, ChangeSeq, Epoch, Op, TableId, TableSchema};
use cdchost_mysql::{Fault, MysqlSource};
use cdchost_tests::cell::cell;
use cdchost_tests::server::Server;
use cdchost_tests::wait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long a test waits for a fact.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Rows by key, as text; none for one that was deleted, so that an older version of it is noticed.
type Folded = BTreeMap<String, (i64, Option<Vec<String>>)>;

/// What a target holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub(crate) tables: HashMap<TableId, Folded>,
    /// Of tables without a key: how often each row is there.
    bags: HashMap<TableId, BTreeMap<Vec<String>, usize>>,
    /// Batches and row changes taken.
    pub(crate) batches: usize,
    /// Ops in order, by table and key.
    pub(crate) log: Vec<(TableId, String, Op)>,
}

impl Target {
    /// The rows of a table, by key.
    pub(crate) fn rows(&self, database: &str, table: &str) -> Vec<Vec<String>> {
        let id = TableId::new(database, table);
        if let Some(bag) = self.bags.get(&id) {
            return bag.iter().flat_map(|(row, &count)| std::iter::repeat_n(row.clone(), count)).collect();
        }
        let folded = self.tables.get(&id);
        folded.into_iter().flatten().filter_map(|(_, (_, row))| row.clone()).collect()
    }

    /// Takes a row of a table without a key. One that goes must have been there.
    fn put_or_take(&mut self, table: &TableId, op: Op, row: Vec<String>) {
        let count = self.bags.entry(table.clone()).or_default().entry(row).or_default();
        match op {
            Op::Insert | Op::UpdateAfter | Op::Read => *count += 1,
            Op::Delete | Op::UpdateBefore => {
                *count = count.checked_sub(1).expect("a row that goes was there");
            }
        }
    }

    fn apply(&mut self, batch: &ChangeBatch) {
        let schema = batch.schema();
        let keyless = schema.primary_key.is_empty();
        self.batches += 1;
        for row in 0..batch.rows() {
            let op = Op::try_from(batch.ops()[row]).expect("a batch is checked");
            let values: Vec<String> = batch.columns().columns().iter().map(|column| cell(column, row)).collect();
            if keyless {
                self.log.push((schema.table.clone(), String::new(), op));
                self.put_or_take(&schema.table, op, values);
                continue;
            }
            let key = key(schema, &values);
            let table = self.tables.entry(schema.table.clone()).or_default();
            let seq = batch.meta().change_seq[row];
            if let Some((old, _)) = table.get(&key) {
                assert!(seq >= *old, "{}: {key} went from change-seq {old} back to {seq}", schema.table);
            }
            self.log.push((schema.table.clone(), key.clone(), op));
            let kept = matches!(op, Op::Insert | Op::UpdateAfter | Op::Read).then_some(values);
            table.insert(key, (seq, kept));
        }
    }
}

fn key(schema: &TableSchema, values: &[String]) -> String {
    schema.primary_key.iter().map(|&place| values[place as usize].as_str()).collect::<Vec<_>>().join("|")
}

/// A cut: what the source gave for it, and what the target held then.
#[derive(Clone, Debug)]
pub(crate) struct TakenCut {
    pub(crate) barrier: SourceBarrier,
    pub(crate) target: Target,
}

#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) target: Target,
    pub(crate) cuts: Vec<TakenCut>,
    pub(crate) ended: bool,
    /// Tables announced, by place.
    pub(crate) announced: Vec<TableId>,
}

#[derive(Debug)]
struct Sender {
    taken: Arc<Mutex<Taken>>,
    held: watch::Receiver<bool>,
}

#[async_trait]
impl EventSender for Sender {
    async fn send(&mut self, event: SourceEvent) -> Result<(), ConnectorError> {
        // Nobody is left to let go only when the test is over.
        let _ = self.held.wait_for(|held| !held).await;
        let mut taken = self.taken.lock().expect("no test panics with the lock");
        assert!(!taken.ended || matches!(event, SourceEvent::Barrier(_)), "only barriers follow the end");
        match event {
            SourceEvent::Table(event) => {
                taken.announced.push(event.after.expect("no table is dropped").table.clone());
            }
            SourceEvent::Batch(batch) => {
                assert!(taken.announced.contains(&batch.schema().table), "a table is announced before its rows");
                taken.target.apply(&batch);
            }
            SourceEvent::Barrier(barrier) => {
                let target = taken.target.clone();
                taken.cuts.push(TakenCut { barrier, target });
            }
            SourceEvent::EndOfInput => taken.ended = true,
        }
        Ok(())
    }
}

/// A source that runs.
pub(crate) struct Running {
    pub(crate) taken: Arc<Mutex<Taken>>,
    pub(crate) progress: watch::Receiver<SourceProgress>,
    /// While true, nothing is taken.
    pub(crate) hold: watch::Sender<bool>,
    commands: Option<mpsc::Sender<SourceCommand>>,
    run: JoinHandle<Result<(), ConnectorError>>,
    next_epoch: u64,
}

/// Opens a source and lets it run; `from` is the cut to go on from.
pub(crate) async fn start(
    config: &MysqlConfig,
    end: SourceEnd,
    from: Option<&TakenCut>,
) -> Result<Running, ConnectorError> {
    start_with(config, end, from, Fault::None).await
}

/// As [`start`], with a fault put in on purpose.
pub(crate) async fn start_with(
    config: &MysqlConfig,
    end: SourceEnd,
    from: Option<&TakenCut>,
    fault: Fault,
) -> Result<Running, ConnectorError> {
    let restore = from.map(|cut| SourceRestore {
        offset: cut.barrier.offset.clone(),
        state: cut.barrier.state.clone(),
        target_change_seq: ChangeSeq(0),
    });
    let source = MysqlSource::new(config.clone(), end).with_fault(fault);
    let opened = source.open(restore).await?;
    let target = from.map(|cut| cut.target.clone()).unwrap_or_default();
    let taken = Arc::new(Mutex::new(Taken { target, ..Taken::default() }));
    let (commands, receiver) = mpsc::channel(16);
    let (shown, progress) = watch::channel(SourceProgress::default());
    let context = SourceContext { commands: receiver, progress: shown, clock: Arc::new(SystemClock::default()) };
    let (hold, held) = watch::channel(false);
    let mut sender = Sender { taken: Arc::clone(&taken), held };
    let run = tokio::spawn(async move { opened.source.run(&mut sender, context).await });
    Ok(Running { taken, progress, hold, commands: Some(commands), run, next_epoch: 1 })
}

/// Goes on from a cut, and is where another run came to: with the same rows and the same numbers.
pub(crate) async fn replays_alike(server: &Server, config: &MysqlConfig, from: &TakenCut, to: &TakenCut) -> Result<()> {
    let mut again = start(config, SourceEnd::Never, Some(from)).await?;
    again.until_caught_up(server).await?;
    let second = again.cut().await?;
    again.kill().await;
    assert_eq!(to.target.tables, second.target.tables);
    assert_eq!(to.barrier.change_seq, second.barrier.change_seq);
    Ok(())
}

impl Running {
    /// Waits until a look at what was taken gives a value. The source's own error ends it.
    pub(crate) async fn until<T>(&mut self, what: &str, mut look: impl FnMut(&Taken) -> Option<T>) -> Result<T> {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            if let Some(value) = look(&self.taken.lock().expect("no test panics with the lock")) {
                return Ok(value);
            }
            if self.run.is_finished() {
                bail!("the source ended before {what}: {:?}", (&mut self.run).await?);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{what} did not come: {:?}", *self.progress.borrow());
            }
            wait::pass(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the progress shown is such.
    pub(crate) async fn until_progress(&mut self, is_such: impl Fn(&SourceProgress) -> bool) -> Result<()> {
        let progress = self.progress.clone();
        self.until("the progress", |_| is_such(&progress.borrow()).then_some(())).await
    }

    /// Waits until all tables of a database are read.
    pub(crate) async fn until_done(&mut self, database: &str) -> Result<()> {
        self.until_progress(|progress| {
            let mut tables = progress.tables.iter().filter(|(id, _)| id.database == database).peekable();
            tables.peek().is_some() && tables.all(|(_, table)| table.snapshot == SnapshotState::Done)
        })
        .await
    }

    /// Waits until the stream stands where the server's log ends now.
    pub(crate) async fn until_caught_up(&mut self, server: &Server) -> Result<()> {
        let end = server.log_end().await?;
        self.until_progress(|progress| {
            let place =
                progress.position.rsplit('(').next().and_then(|place| place.trim_end_matches(')').rsplit_once(':'));
            let place = place.and_then(|(file, byte)| Some((file.to_owned(), byte.parse::<u64>().ok()?)));
            place.is_some_and(|place| place >= end)
        })
        .await
    }

    /// Asks for a cut and waits for it.
    pub(crate) async fn cut(&mut self) -> Result<TakenCut> {
        let epoch = Epoch(self.next_epoch);
        self.next_epoch += 1;
        let commands = self.commands.as_ref().context("the source runs")?;
        commands.send(SourceCommand::Barrier(epoch)).await.context("the source takes commands")?;
        self.until("the cut", |taken| taken.cuts.iter().rev().find(|cut| cut.barrier.epoch == epoch).cloned()).await
    }

    /// Waits for the end of a bounded run, and gives what was taken.
    pub(crate) async fn until_the_end(mut self) -> Result<Target> {
        self.until("the end", |taken| taken.ended.then_some(())).await?;
        self.stop().await
    }

    /// Stops it as the engine does, and gives what was taken.
    pub(crate) async fn stop(mut self) -> Result<Target> {
        self.commands = None;
        tokio::time::timeout(LIMIT, &mut self.run).await.context("the source stops")???;
        Ok(self.taken.lock().expect("no test panics with the lock").target.clone())
    }

    /// Stops it as a kill does.
    pub(crate) async fn kill(self) {
        self.run.abort();
        let _ = self.run.await;
    }

    /// Waits for its own end with an error.
    pub(crate) async fn until_its_error(mut self) -> Result<ConnectorError> {
        match tokio::time::timeout(LIMIT, &mut self.run).await.context("the source ends")?? {
            Ok(()) => bail!("the source ended without an error"),
            Err(error) => Ok(error),
        }
    }
}
