//! One run: the log followed, tables read beside it, cuts made where the engine asks for them.

mod follow;
mod losses;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cdchost_config::{MysqlConfig, TablePatterns};
use cdchost_connector::{
    Clock, ConnectorError, EventSender, Source, SourceBarrier, SourceCommand, SourceContext, SourceEnd, SourceEvent,
    SourcePhase, SourceProgress, TableEvent,
};
use cdchost_model::{ChangeSeq, Epoch, SchemaChange, TableId};
use cdchost_mysql_position::{BinlogPosition, Reached, ServerUuid};
use tokio::sync::{mpsc, watch};

use super::connect::{HEARTBEAT_IN_SNAPSHOT, Identity, LogConnection, LogRequest, NoLog, connect_log};
use super::offset::Offset;
use super::refusal;
use super::tables::Tables;
use crate::binlog::{LogStart, Transactions};
use crate::snapshot::Fault;
use follow::Followed;
use losses::Losses;
use windows::WindowWork;

/// Progress is shown so often.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A fresh pipeline's change-seqs begin at its start's milliseconds times this, above those of an older one.
const SEQ_PER_MILLISECOND: i64 = 1 << 20;

/// What a run is made of.
#[derive(Debug)]
pub(super) struct RunSetup {
    pub(super) config: Arc<MysqlConfig>,
    pub(super) end: SourceEnd,
    /// Place of the host that was looked at.
    pub(super) host: usize,
    pub(super) patterns: TablePatterns,
    pub(super) lower_case_names: bool,
    /// The server that was looked at.
    pub(super) server: ServerUuid,
    /// Transactions that the tables were looked at after.
    pub(super) known: Reached,
    pub(super) restored: Option<Offset>,
    /// XA transactions that are prepared and changed no captured table.
    pub(super) prepared: Vec<String>,
    pub(super) tables: Tables,
    pub(super) fault: Fault,
}

/// A source that is ready to run.
#[derive(Debug)]
pub(super) struct MysqlRun {
    setup: RunSetup,
}

impl MysqlRun {
    pub(super) fn new(setup: RunSetup) -> Self {
        Self { setup }
    }
}

#[async_trait]
impl Source for MysqlRun {
    async fn run(self: Box<Self>, events: &mut dyn EventSender, context: SourceContext) -> Result<(), ConnectorError> {
        let mut runner = Runner::new(self.setup, context);
        match runner.run(events).await {
            Err(Halt::Failed(error)) => Err(error),
            Ok(()) | Err(Halt::Stopped) => Ok(()),
        }
    }
}

/// Why a run comes to its end before the log does.
#[derive(Debug)]
enum Halt {
    /// The engine closed its commands.
    Stopped,
    Failed(ConnectorError),
}

impl From<ConnectorError> for Halt {
    fn from(error: ConnectorError) -> Self {
        Self::Failed(error)
    }
}

/// The state of a run.
struct Runner {
    config: Arc<MysqlConfig>,
    end: SourceEnd,
    clock: Arc<dyn Clock>,
    commands: mpsc::Receiver<SourceCommand>,
    progress: watch::Sender<SourceProgress>,
    shown_at: Option<Duration>,
    log: Transactions,
    tables: Tables,
    windows: WindowWork,
    identity: Identity,
    host: usize,
    /// The server that the log comes from; before the first connection, that of the checkpoint.
    server: ServerUuid,
    /// The epoch that is to end at the next transaction's end.
    barrier: Option<Epoch>,
    /// Where the log ended when all tables were read: a run that ends when it has caught up ends there.
    target: Option<(ServerUuid, BinlogPosition)>,
    phase: SourcePhase,
    caught_up: bool,
    /// The last connection was lost, or one that was to follow it was not made.
    was_lost: bool,
    reconnects: u64,
    losses: Losses,
    /// When the server was asked last whether its log still goes as far as it was read.
    asked_at: Duration,
    /// The table that is handed on whole.
    whole: Option<TableId>,
    last_disconnect: Option<String>,
}

impl Runner {
    fn new(setup: RunSetup, context: SourceContext) -> Self {
        let RunSetup {
            config,
            end,
            host,
            patterns,
            lower_case_names,
            server,
            known,
            restored,
            prepared,
            tables,
            fault,
        } = setup;
        let fresh = || Offset {
            position: match &known {
                Reached::Gtids(_) | Reached::Domains(_) => BinlogPosition::default(),
                Reached::Place(place) => place.clone(),
            },
            executed: known.clone(),
            server,
            event_time: 0,
            log_file: None,
            seq: (context.clock.now_micros() / 1000).max(0).saturating_mul(SEQ_PER_MILLISECOND),
        };
        let offset = restored.unwrap_or_else(fresh);
        let start = LogStart {
            server: offset.server,
            executed: offset.executed,
            known,
            seq: offset.seq,
            patterns,
            lower_case_names,
            buffer_max: config.transaction_max_buffer.0,
            prepared: prepared.into_iter().collect(),
        };
        let mut log = Transactions::new(start, tables.for_log());
        log.resume(offset.position, offset.event_time, offset.log_file);
        log.windows.fault = fault;
        Self {
            identity: Identity::draw(&config),
            windows: WindowWork::new(&config),
            config,
            end,
            clock: context.clock,
            commands: context.commands,
            progress: context.progress,
            shown_at: None,
            log,
            tables,
            host,
            server: offset.server,
            barrier: None,
            target: None,
            phase: SourcePhase::Starting,
            caught_up: false,
            was_lost: false,
            reconnects: 0,
            losses: Losses::default(),
            asked_at: Duration::ZERO,
            whole: None,
            last_disconnect: None,
        }
    }

    async fn run(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        self.announce(events).await?;
        loop {
            let mut connection = self.connect(events).await?;
            self.reconnects += u64::from(std::mem::take(&mut self.was_lost));
            self.begin(&connection);
            let before = self.log.position().clone();
            let followed = self.follow(&mut connection, events).await?;
            self.log.reconnected()?;
            if self.caught_up || *self.log.position() != before {
                self.losses.forget();
            }
            match followed {
                Followed::Ended => break,
                Followed::Calmed => {}
                Followed::Lost { reason, id_taken } => self.lose(reason, id_taken, events).await?,
            }
        }
        self.flush(events).await?;
        self.send(SourceEvent::EndOfInput, events).await?;
        self.phase = SourcePhase::Ended;
        self.show();
        loop {
            match self.commands.recv().await {
                None => return Err(Halt::Stopped),
                Some(command) => self.command(command, events).await?,
            }
        }
    }

    /// A connection was lost: waits before the next, unless they are all lost without bringing anything more.
    async fn lose(&mut self, reason: String, id_taken: bool, events: &mut dyn EventSender) -> Result<(), Halt> {
        let host = &self.config.hosts[self.host];
        tracing::warn!(host, reason, "log connection lost");
        let Some(pause) = self.losses.add(self.clock.elapsed(), self.config.reconnect_timeout) else {
            return Err(refusal::log_stands(host, self.losses.count(), self.log.position(), &reason).into());
        };
        self.was_lost = true;
        self.last_disconnect = Some(reason);
        self.caught_up = false;
        if id_taken {
            self.identity = Identity::draw(&self.config);
        }
        self.show();
        self.pause(pause, events).await
    }

    /// Tells of all tables, before any of their rows.
    async fn announce(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        for schema in self.tables.schemas() {
            let event = TableEvent {
                id: format!("{}@{}", schema.table, schema.version.0),
                before: None,
                change: SchemaChange::CreateTable,
                after: Some(schema),
            };
            self.send(SourceEvent::Table(event), events).await?;
        }
        Ok(())
    }

    /// Connects to the first host that can serve, again and again for as long as the configuration allows.
    async fn connect(&mut self, events: &mut dyn EventSender) -> Result<LogConnection, Halt> {
        let since = self.clock.elapsed();
        let mut pause = PAUSE_MIN;
        loop {
            let in_snapshot = !self.tables.all_done();
            let heartbeat = if in_snapshot { HEARTBEAT_IN_SNAPSHOT } else { self.config.heartbeat };
            let request = LogRequest {
                config: Arc::clone(&self.config),
                first_host: self.host,
                identity: self.identity.clone(),
                executed: self.log.executed().clone(),
                last: (self.server, self.log.position().clone()),
                heartbeat,
            };
            let (reason, error) = match connect_log(request).await {
                Ok(connection) => return Ok(connection),
                Err(NoLog::Final(error)) => return Err(error.into()),
                Err(NoLog::Again { reason, error }) => (reason, error),
            };
            if self.clock.elapsed().saturating_sub(since) >= self.config.reconnect_timeout {
                return Err(error.into());
            }
            tracing::warn!(reason, pause_ms = pause.as_millis(), "no host gives the log, trying again");
            self.was_lost = true;
            self.last_disconnect = Some(reason);
            self.show();
            self.pause(pause, events).await?;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits, and goes on answering the engine meanwhile.
    async fn pause(&mut self, pause: Duration, events: &mut dyn EventSender) -> Result<(), Halt> {
        let clock = Arc::clone(&self.clock);
        let mut sleep = clock.sleep(pause);
        loop {
            tokio::select! {
                () = &mut sleep => return Ok(()),
                command = self.commands.recv() => match command {
                    None => return Err(Halt::Stopped),
                    Some(command) => self.command(command, events).await?,
                },
            }
        }
    }

    /// A connection is there: what depends on the server is set up anew where it is another one.
    fn begin(&mut self, connection: &LogConnection) {
        let is_other = connection.server != self.server;
        self.host = connection.host;
        self.server = connection.server;
        if is_other {
            self.log.changes_server();
            self.target = None;
        }
        tracing::info!(host = self.config.hosts[self.host], server = %self.server, "log connection made");
        if self.tables.all_done() {
            self.phase = SourcePhase::Streaming;
        } else {
            self.phase = SourcePhase::Snapshot;
            self.windows.connected(connection, is_other, &mut self.log, &self.tables, &self.clock);
        }
        self.show();
    }

    /// Takes a command of the engine.
    async fn command(&mut self, command: SourceCommand, events: &mut dyn EventSender) -> Result<(), Halt> {
        match command {
            SourceCommand::Barrier(epoch) => self.barrier = Some(epoch),
            SourceCommand::Committed(_) => {}
        }
        self.cut(events).await
    }

    /// Makes the cut that was asked for, if the stream stands between two transactions.
    async fn cut(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        if !self.log.is_between() {
            return Ok(());
        }
        let Some(epoch) = self.barrier.take() else { return Ok(()) };
        self.flush(events).await?;
        let offset = Offset {
            executed: self.log.executed().clone(),
            position: self.log.position().clone(),
            server: self.server,
            event_time: self.log.event_time().unwrap_or(0),
            log_file: self.log.log_file().cloned(),
            seq: self.log.seq(),
        };
        let has_passed_known = self.log.has_passed_known();
        let barrier = SourceBarrier {
            epoch,
            offset: offset.encode(),
            state: self.tables.state(&self.log, has_passed_known).encode(),
            change_seq: ChangeSeq(self.log.seq()),
        };
        self.send(SourceEvent::Barrier(barrier), events).await
    }

    /// Hands on all that is gathered. Between transactions only.
    async fn flush(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        self.log.tables.flush()?;
        self.hand_on(events).await
    }

    /// Hands on the batches that are ready.
    async fn hand_on(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        for batch in std::mem::take(self.log.tables.ready()) {
            self.send(SourceEvent::Batch(batch), events).await?;
        }
        Ok(())
    }

    /// Hands an event on. While the engine takes nothing, progress is shown still.
    async fn send(&mut self, event: SourceEvent, events: &mut dyn EventSender) -> Result<(), Halt> {
        let clock = Arc::clone(&self.clock);
        let mut sending = events.send(event);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return Ok(sent?),
                () = clock.sleep(PROGRESS_PERIOD) => self.show(),
            }
        }
    }

    fn in_one_piece(&self) -> Option<String> {
        match &self.whole {
            Some(table) => Some(format!("table {table}, which has no key")),
            None if self.barrier.is_some() && !self.log.is_between() => Some("a transaction".to_owned()),
            None => None,
        }
    }

    /// Shows progress if it is time to.
    fn show_if_due(&mut self) {
        let now = self.clock.elapsed();
        if self.shown_at.is_none_or(|shown| now.saturating_sub(shown) >= PROGRESS_PERIOD) {
            self.show();
        }
    }

    fn show(&mut self) {
        self.shown_at = Some(self.clock.elapsed());
        self.progress.send_replace(SourceProgress {
            phase: self.phase,
            position: format!("{} ({})", self.log.executed(), self.log.position()),
            caught_up: self.caught_up,
            event_time_micros: self.log.event_time(),
            reconnects: self.reconnects,
            last_disconnect: self.last_disconnect.clone(),
            in_one_piece: self.in_one_piece(),
            ignored: self.log.ignored().clone(),
            tables: self.tables.progress(&self.log.tables),
        });
    }
}
