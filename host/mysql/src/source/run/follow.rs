//! The loop over one connection's events.

use std::time::Duration;

use arrow_array::RecordBatch;
use cdchost_connector::{EventSender, SourceCommand, SourceEnd, SourceEvent, SourcePhase};
use cdchost_mysql_look::session::{self, SessionError};
use cdchost_mysql_position::{BinlogPosition, ServerUuid};
use cdchost_mysql_row::KeyValue;
use cdchost_mysql_wire::WireError;
use futures_util::FutureExt;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;

use super::super::connect::{LogConnection, log_was_reset};
use super::super::refusal::{LogLoss, chain, log_loss, session_error};
use super::windows::{read_batch, standing};
use super::{Halt, PROGRESS_PERIOD, Runner};
use crate::binlog::Seen;
use crate::snapshot::{Request, Whole, WholeRows};

/// Heartbeats that may be missed before the link counts as broken.
const HEARTBEATS_MISSED_MAX: u32 = 3;

/// The longest time that the stream stands still for a look at a table.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The server is asked where its log ends once in the time of so many.
const HEARTBEATS_BETWEEN_QUESTIONS: u32 = 6;

/// What ended the following of one connection.
#[derive(Debug)]
pub(super) enum Followed {
    /// The run's end is reached.
    Ended,
    /// All is read and the server is quiet: it need not give a sign of life so often, which is agreed on anew.
    Calmed,
    /// The connection was lost.
    Lost { reason: String, id_taken: bool },
}

/// What woke the loop.
enum Woken {
    Filled(Result<(), WireError>),
    Command(Option<SourceCommand>),
    Request(Option<Request>),
    Tick,
}

impl Runner {
    /// Follows one connection until it is lost or the run's end is reached.
    pub(super) async fn follow(
        &mut self,
        connection: &mut LogConnection,
        events: &mut dyn EventSender,
    ) -> Result<Followed, Halt> {
        loop {
            if let Some(lost) = self.read_buffered(connection, events).await? {
                return Ok(lost);
            }
            self.show_if_due();
            self.look_around(events).await?;
            if self.log.is_between() && self.has_ended(connection).await? {
                return Ok(Followed::Ended);
            }
            // A packet that waits in the socket is no reason to hand on what is gathered.
            match connection.stream.fill().now_or_never() {
                Some(Ok(())) => continue,
                Some(Err(error)) => return self.lost(&error),
                None => {}
            }
            if let Some(lost) = self.wait(connection, events).await? {
                return Ok(lost);
            }
        }
    }

    /// Takes all events that are there.
    async fn read_buffered(
        &mut self,
        connection: &mut LogConnection,
        events: &mut dyn EventSender,
    ) -> Result<Option<Followed>, Halt> {
        loop {
            let event = match connection.stream.next_buffered() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(None),
                Err(error) => return self.lost(&error).map(Some),
            };
            let seen = self.log.take(&event)?;
            if !self.log.tables.ready().is_empty() {
                self.hand_on(events).await?;
            }
            if seen != Seen::Event {
                if self.barrier.is_some() {
                    self.cut(events).await?;
                }
                if self.windows.has_chunks() {
                    self.merge_passed(events).await?;
                }
                if seen == Seen::TransactionEnd && self.target.is_some() && self.has_ended(connection).await? {
                    return Ok(Some(Followed::Ended));
                }
            }
        }
    }

    /// Takes what the engine and the readers have sent, without waiting for them.
    async fn look_around(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.command(command, events).await?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Halt::Stopped),
            }
        }
        while let Some(request) = self.windows.try_next() {
            self.request(request)?;
        }
        self.tend_windows(events).await
    }

    /// Nothing is there: hands on what is gathered, and waits.
    async fn wait(
        &mut self,
        connection: &mut LogConnection,
        events: &mut dyn EventSender,
    ) -> Result<Option<Followed>, Halt> {
        if self.log.is_between() {
            self.flush(events).await?;
            self.caught_up = *self.log.position() >= connection.end;
            if self.caught_up && self.phase == SourcePhase::Streaming && connection.heartbeat < self.config.heartbeat {
                return Ok(Some(Followed::Calmed));
            }
        }
        let began = self.clock.elapsed();
        let deadline = (connection.heartbeat.max(self.config.heartbeat)) * HEARTBEATS_MISSED_MAX;
        loop {
            let clock = std::sync::Arc::clone(&self.clock);
            let woken = tokio::select! {
                biased;
                command = self.commands.recv() => Woken::Command(command),
                request = self.windows.next(), if self.windows.is_reading() => Woken::Request(request),
                filled = connection.stream.fill() => Woken::Filled(filled),
                () = clock.sleep(PROGRESS_PERIOD) => Woken::Tick,
            };
            match woken {
                Woken::Filled(Ok(())) => return Ok(None),
                Woken::Filled(Err(error)) => return self.lost(&error).map(Some),
                Woken::Command(None) => return Err(Halt::Stopped),
                Woken::Command(Some(command)) => self.command(command, events).await?,
                Woken::Request(Some(request)) => {
                    self.request(request)?;
                    self.tend_windows(events).await?;
                    if self.log.is_between() && self.has_ended(connection).await? {
                        return Ok(Some(Followed::Ended));
                    }
                }
                Woken::Request(None) => self.windows.readers_ended(),
                Woken::Tick => {
                    self.tend_windows(events).await?;
                    self.ask_for_reset(connection).await?;
                    if self.clock.elapsed().saturating_sub(began) > deadline {
                        return self
                            .lost(&WireError::Silent { doing: "reading the binlog", silence: deadline })
                            .map(Some);
                    }
                }
            }
            self.show_if_due();
        }
    }

    /// A server whose log is reset goes on giving signs of life, and nothing of the new log while that is the shorter one:
    /// so it is asked now and then while nothing comes.
    async fn ask_for_reset(&mut self, connection: &LogConnection) -> Result<(), Halt> {
        let now = self.clock.elapsed();
        if !self.caught_up || now.saturating_sub(self.asked_at) < self.config.heartbeat * HEARTBEATS_BETWEEN_QUESTIONS {
            return Ok(());
        }
        self.asked_at = now;
        match ask_end(connection).await? {
            Some((server, end)) if server == self.server && end < *self.log.position() => {
                Err(log_was_reset(connection.login.host(), self.log.position(), &end).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a bounded run has come to its end. Asks the server where its log ends when that is not known yet.
    async fn has_ended(&mut self, connection: &LogConnection) -> Result<bool, Halt> {
        if self.end == SourceEnd::Never || !self.tables.all_done() {
            return Ok(false);
        }
        if self.end == SourceEnd::Snapshot {
            return Ok(true);
        }
        let (server, target) = match &self.target {
            Some(target) => target,
            None => {
                // A failure is one of the log's connection too, which will be found there.
                let Some(place) = ask_end(connection).await? else { return Ok(false) };
                self.target.insert(place)
            }
        };
        Ok(*server == self.server && self.log.position() >= target)
    }

    fn lost(&self, error: &WireError) -> Result<Followed, Halt> {
        let id_taken = match log_loss(error, self.config.server_id.is_some()) {
            LogLoss::Final(error) => return Err(error.into()),
            LogLoss::Again => false,
            LogLoss::IdTaken => true,
        };
        Ok(Followed::Lost { reason: chain(error), id_taken })
    }

    /// Takes a request of a reader.
    fn request(&mut self, request: Request) -> Result<(), Halt> {
        match request {
            Request::Arm(request) => self.windows.wants_arm(&mut self.log, request),
            Request::Chunk { number, chunk } => self.windows.filled(&mut self.log, number, *chunk),
            Request::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Does what windows need: opens those that are asked for, merges those that are passed, gives up what is too large.
    async fn tend_windows(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        if self.windows.is_idle() {
            return Ok(());
        }
        self.windows.bound(&mut self.log, &self.tables, &self.clock);
        if !self.log.is_between() {
            return Ok(());
        }
        self.merge_passed(events).await?;
        let lag = self.log.event_time().map_or(0, |time| self.clock.now_micros().saturating_sub(time));
        let lag = Duration::from_micros(u64::try_from(lag).unwrap_or(0));
        if self.windows.may_arm(lag, self.caught_up) && self.log.has_passed_known() {
            while let Some(look) = self.windows.arm(&mut self.log, &mut self.tables, self.server) {
                self.await_look(look).await?;
                self.merge_passed(events).await?;
            }
        }
        Ok(())
    }

    /// Hands on the chunks whose windows the stream has passed. Between transactions only.
    async fn merge_passed(&mut self, events: &mut dyn EventSender) -> Result<(), Halt> {
        if !self.log.is_between() {
            return Ok(());
        }
        while let Some(passed) = self.windows.take_passed(&mut self.log, &self.tables, self.server) {
            // Earlier changes of the same keys come first.
            self.flush(events).await?;
            let place = passed.table;
            let (is_last, next, read_at) = (passed.chunk.is_last, passed.chunk.next.clone(), passed.chunk.read_at);
            let rows = standing(&self.tables.get(place).layout, passed)?;
            self.send_read(place, rows, read_at, events).await?;
            self.merged(place, next, is_last);
        }
        while let Some(whole) = self.windows.take_whole(self.server, self.log.position()) {
            self.flush(events).await?;
            self.hand_on_whole(whole, events).await?;
        }
        Ok(())
    }

    /// Stands still until a table that is read whole has been looked at: what the table goes through behind that place
    /// must not be passed by.
    async fn await_look(&mut self, mut look: oneshot::Receiver<Whole>) -> Result<(), Halt> {
        let clock = std::sync::Arc::clone(&self.clock);
        let mut too_long = clock.sleep(LOOK_MAX);
        loop {
            tokio::select! {
                biased;
                looked = &mut look => {
                    // Where there is none, the reader tries again.
                    if let Ok(whole) = looked {
                        self.windows.begun_whole(whole);
                    }
                    return Ok(());
                }
                () = &mut too_long => return Ok(()),
                () = clock.sleep(PROGRESS_PERIOD) => self.show_or_stop()?,
            }
        }
    }

    /// Shows progress where the engine is not heard for a while, and ends where it has ended.
    fn show_or_stop(&mut self) -> Result<(), Halt> {
        self.show();
        if self.commands.is_closed() { Err(Halt::Stopped) } else { Ok(()) }
    }

    /// Hands on a table that is read whole. The log is not read meanwhile, and there is no cut: the rows come between two
    /// of its transactions.
    async fn hand_on_whole(&mut self, mut whole: Whole, events: &mut dyn EventSender) -> Result<(), Halt> {
        let place = whole.table;
        self.tables.get_mut(place).begin();
        self.log.tables.set_emits(place);
        self.whole = Some(self.tables.get(place).layout.schema.table.clone());
        self.show();
        let clock = std::sync::Arc::clone(&self.clock);
        loop {
            let next = tokio::select! {
                biased;
                next = whole.rows.recv() => next.expect("the reader of a whole table says how it ends"),
                () = clock.sleep(PROGRESS_PERIOD) => {
                    self.show_or_stop()?;
                    continue;
                }
            };
            match next {
                WholeRows::Rows(rows) => self.send_read(place, rows, whole.read_at, events).await?,
                WholeRows::End => break,
                WholeRows::Failed(error) => return Err(error.into()),
            }
            self.show_if_due();
        }
        self.whole = None;
        self.merged(place, None, true);
        Ok(())
    }

    /// Hands on rows that were read.
    async fn send_read(
        &mut self,
        place: usize,
        rows: RecordBatch,
        read_at: i64,
        events: &mut dyn EventSender,
    ) -> Result<(), Halt> {
        let Some(batch) = read_batch(&self.tables.get(place).layout, rows, read_at, self.log.seq())? else {
            return Ok(());
        };
        self.tables.get_mut(place).rows_read += batch.rows() as u64;
        self.send(SourceEvent::Batch(batch), events).await
    }

    /// A chunk, or a whole table, was handed on.
    fn merged(&mut self, place: usize, next: Option<Vec<KeyValue>>, is_last: bool) {
        let table = self.tables.get_mut(place);
        table.merged(next, is_last);
        tracing::info!(
            event = "chunk-merged",
            table = %table.layout.schema.table,
            chunk = table.chunks,
            is_last,
            "chunk merged"
        );
        if self.tables.all_done() {
            self.phase = SourcePhase::Streaming;
            tracing::info!(event = "snapshot-done", "all tables are read");
            self.show();
        }
    }
}

/// Where the server's log ends now; none if it cannot be asked just now.
async fn ask_end(connection: &LogConnection) -> Result<Option<(ServerUuid, BinlogPosition)>, Halt> {
    let asked = async {
        let mut asking = connection.login.connect().await?;
        let state = session::state(&mut asking).await?;
        Ok::<_, SessionError>((state.uuid, session::position(&mut asking).await?))
    };
    match asked.await {
        Ok(place) => Ok(Some(place)),
        Err(error) => {
            let error = session_error(connection.login.host(), error);
            match error.verdict {
                cdchost_connector::Verdict::Stop => Err(error.into()),
                _ => Ok(None),
            }
        }
    }
}
