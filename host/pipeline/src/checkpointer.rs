//! Makes checkpoints, one at a time: barrier, prepared, durable, committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cdchost_checkpoint::{Chain, PlantedFault};
use cdchost_config::CheckpointConfig;
use cdchost_connector::{Clock, ConnectorError, SourceCommand, SourceConnector, StopClass};
use cdchost_model::Epoch;
use tokio::sync::{mpsc, watch};

use self::content::{Content, InFlight};
use crate::failpoints;
use crate::failure::{Failure, bug};
use crate::handle::CheckpointRequest;
use crate::metrics::PipelineMetrics;
use crate::retry::Caller;
use crate::status::{PipelineStatus, Reason};
use crate::tasks::{CommitterMessage, Report};

pub(crate) mod content;
mod persist;

/// Epochs that may be durable and not committed at once, whatever the sinks allow.
pub(crate) const OPEN_EPOCHS_MAX: u32 = 4;
/// Room that acknowledgements leave in the source's command queue, so that a barrier always finds some.
const COMMAND_ROOM: usize = 8;

/// One sink as the checkpointer sees it.
#[derive(Debug)]
pub(crate) struct SinkPart {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) digest: [u8; 32],
    pub(crate) writers: usize,
    pub(crate) open_max: u32,
    pub(crate) committer: mpsc::Sender<CommitterMessage>,
}

/// How a run ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// The input ended.
    Finished,
    /// It was told to stop.
    Stopped,
}

/// A durable epoch on its way to being committed everywhere.
#[derive(Debug)]
struct OpenEpoch {
    epoch: Epoch,
    since: Duration,
    /// Sinks that have not committed yet.
    missing: Vec<usize>,
    requests: Vec<CheckpointRequest>,
}

/// The checkpointer and its surroundings.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    pub(crate) chain: Chain,
    pub(crate) config: CheckpointConfig,
    pub(crate) clock: Arc<dyn Clock>,
    /// Calls the store.
    pub(crate) caller: Caller,
    /// The configuration as JSON, for the records.
    pub(crate) shown_config: String,
    /// Puts offsets in words for the log.
    pub(crate) source: Arc<dyn SourceConnector>,
    pub(crate) commands: mpsc::Sender<SourceCommand>,
    pub(crate) reports: mpsc::Receiver<Report>,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) sinks: Vec<SinkPart>,
    pub(crate) gate: watch::Sender<bool>,
    pub(crate) status: watch::Sender<PipelineStatus>,
    pub(crate) metrics: PipelineMetrics,
    /// Epochs that may be open at once.
    pub(crate) open_max: usize,
    pub(crate) next_epoch: Epoch,
    /// What the newest record holds.
    pub(crate) last: Option<Content>,
    pub(crate) state: State,
}

/// What is going on.
#[derive(Debug, Default)]
pub(crate) struct State {
    in_flight: Option<InFlight>,
    open: VecDeque<OpenEpoch>,
    /// The newest epoch that is durable and noted as committed.
    committed: Option<Epoch>,
    /// Asked for, and not part of a checkpoint yet.
    requests: Vec<CheckpointRequest>,
    last_start: Duration,
    last_end: Duration,
    ended: bool,
    /// A record of this run, or one that it found and that says the same, covers the end of the input.
    end_covered: bool,
    stopping: bool,
    /// The drain's own epoch has begun.
    final_begun: bool,
}

impl State {
    /// At the start of a run; `committed` is the record it grew from.
    pub(crate) fn restored(committed: Option<Epoch>) -> Self {
        Self { committed, ..Self::default() }
    }
}

impl Checkpointer {
    /// Runs until the input has ended or the pipeline is told to stop, and all is committed.
    pub(crate) async fn run(mut self, requests: &mut mpsc::Receiver<CheckpointRequest>) -> Result<Drained, Failure> {
        self.state.last_start = self.clock.elapsed();
        self.state.last_end = self.state.last_start;
        let mut stop = self.stop.clone();
        loop {
            if let Some(drained) = self.drained() {
                return Ok(drained);
            }
            self.begin_if_due().await?;
            let clock = Arc::clone(&self.clock);
            let time = self.next_wake();
            let listening = !self.state.stopping;
            let wake = tokio::select! {
                biased;
                report = self.reports.recv() => Wake::Report(report),
                request = requests.recv(), if listening => Wake::Request(request),
                () = told(&mut stop), if listening => Wake::Stop,
                () = clock.sleep(time) => Wake::Time,
            };
            match wake {
                Wake::Report(report) => self.take(report.ok_or(Failure::Closed)?).await?,
                Wake::Request(request) => self.state.requests.push(request.ok_or(Failure::Closed)?),
                Wake::Stop => {
                    self.state.stopping = true;
                    tracing::info!(event = "drain-started");
                }
                Wake::Time => self.check_timeout()?,
            }
        }
    }

    fn drained(&self) -> Option<Drained> {
        let state = &self.state;
        if state.in_flight.is_some() || !state.open.is_empty() {
            return None;
        }
        if state.ended && state.end_covered {
            return Some(Drained::Finished);
        }
        if state.stopping && state.final_begun { Some(Drained::Stopped) } else { None }
    }

    async fn begin_if_due(&mut self) -> Result<(), Failure> {
        let state = &self.state;
        if state.in_flight.is_some() || state.final_begun {
            return Ok(());
        }
        let at_end = state.ended && !state.end_covered;
        let wanted = at_end || state.stopping || !state.requests.is_empty();
        let due = wanted || (!state.ended && self.clock.elapsed() >= self.due());
        let room = state.open.len() < self.open_max;
        // Beyond the limit nothing more may be prepared, so nothing more is taken in either.
        self.gate.send_if_modified(|open| std::mem::replace(open, !due || room) != (!due || room));
        if due && room { self.begin().await } else { Ok(()) }
    }

    fn due(&self) -> Duration {
        (self.state.last_start + self.config.interval).max(self.state.last_end + self.config.min_pause)
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        let epoch = self.next_epoch;
        self.next_epoch = Epoch(epoch.0 + 1);
        let now = self.clock.elapsed();
        self.state.last_start = now;
        self.state.final_begun = self.state.stopping;
        let requests = std::mem::take(&mut self.state.requests);
        let writers = self.sinks.iter().map(|sink| sink.writers);
        self.state.in_flight = Some(InFlight::new(epoch, now, requests, writers));
        failpoints::hit(failpoints::BEFORE_BARRIER);
        self.commands.send(SourceCommand::Barrier(epoch)).await.map_err(|_| Failure::Closed)
    }

    fn next_wake(&self) -> Duration {
        let now = self.clock.elapsed();
        let at = match &self.state.in_flight {
            Some(in_flight) => self.deadline(in_flight),
            // While there is no room a commit will wake us; while draining there is nothing to wake for.
            None if self.state.open.len() >= self.open_max || self.state.ended => now + self.config.timeout,
            None => self.due(),
        };
        at.saturating_sub(now).max(Duration::from_millis(1))
    }

    /// A failed attempt is one that took the whole time; so many more are given as are tolerated.
    fn deadline(&self, in_flight: &InFlight) -> Duration {
        let attempts = self.config.tolerable_failures.saturating_add(1);
        in_flight.since.saturating_add(self.config.timeout.saturating_mul(attempts))
    }

    fn check_timeout(&mut self) -> Result<(), Failure> {
        let now = self.clock.elapsed();
        if let Some(in_flight) = &mut self.state.in_flight
            && in_flight.awaits_barrier()
            && self.status.borrow().source.in_one_piece.is_some()
        {
            // It has an end. The time that is allowed begins there.
            in_flight.since = now;
        }
        let Some(in_flight) = &self.state.in_flight else { return Ok(()) };
        if now < self.deadline(in_flight) {
            return Ok(());
        }
        let (class, holdup) = in_flight.holdup(&self.sinks);
        let held = self.status.borrow().told_held_up(self.clock.now_micros());
        let held = held.map(|held| format!("; {held}")).unwrap_or_default();
        let message = format!("checkpoint of epoch {} took longer than allowed: {holdup}{held}", in_flight.epoch);
        let error = ConnectorError::restart(class, "checkpoint-timeout", message);
        Err(error.with_instruction("raise [checkpoint] timeout if the work is large, else see what holds it up").into())
    }

    async fn take(&mut self, report: Report) -> Result<(), Failure> {
        match report {
            Report::EndOfInput => {
                self.state.ended = true;
                tracing::info!(event = "input-ended");
                Ok(())
            }
            Report::Committed { sink, epoch } => self.committed(sink, epoch).await,
            report => {
                let Some(in_flight) = &mut self.state.in_flight else {
                    return Err(bug("checkpoint-order", "a barrier arrived that was not asked for"));
                };
                in_flight.take(report)?;
                self.persist_if_prepared().await
            }
        }
    }

    async fn persist_if_prepared(&mut self) -> Result<(), Failure> {
        let Some(in_flight) = self.state.in_flight.take_if(|in_flight| in_flight.is_prepared()) else { return Ok(()) };
        let took = self.clock.elapsed().saturating_sub(in_flight.since);
        self.metrics.prepare_seconds.observe(took.as_secs_f64());
        tracing::info!(event = "prepared", epoch = in_flight.epoch.0);
        let requests = self.persist(in_flight).await?;
        self.state.last_end = self.clock.elapsed();
        // Nothing changed: whoever asked is answered by the epoch before.
        match (self.state.open.back_mut(), self.state.committed) {
            (Some(open), _) => open.requests.extend(requests),
            (None, Some(epoch)) => answer(requests, epoch),
            (None, None) => return Err(bug("checkpoint-empty", "an epoch without record came before any record")),
        }
        Ok(())
    }

    async fn committed(&mut self, sink: usize, epoch: Epoch) -> Result<(), Failure> {
        let Some(open) = self.state.open.iter_mut().find(|open| open.epoch == epoch) else {
            return Err(bug("commit-order", format!("epoch {epoch} was committed though it is not open")));
        };
        open.missing.retain(|&missing| missing != sink && !PlantedFault::NotedEarly.is_planted());
        self.status.send_modify(|status| {
            if let Some(shown) = status.sinks.get_mut(sink) {
                shown.committed = Some(epoch);
            }
        });
        if !open.missing.is_empty() {
            failpoints::hit(failpoints::BETWEEN_COMMITS);
        }
        while let Some(done) = self.state.open.pop_front_if(|open| open.missing.is_empty()) {
            self.note(done).await?;
        }
        Ok(())
    }

    /// An epoch is committed at all sinks.
    async fn note(&mut self, done: OpenEpoch) -> Result<(), Failure> {
        let epoch = done.epoch;
        failpoints::hit(failpoints::BEFORE_NOTE);
        let mut backoff = self.caller.call("note");
        while let Err(error) = self.chain.note_committed(epoch).await {
            if !error.is_transient() || !backoff.pause(Duration::ZERO, Reason::of_store(&error)).await {
                return Err(error.into());
            }
        }
        drop(backoff);
        self.metrics.commit_seconds.observe(self.clock.elapsed().saturating_sub(done.since).as_secs_f64());
        self.metrics.epoch_committed.set(i64::try_from(epoch.0).unwrap_or(i64::MAX));
        tracing::info!(event = "committed", epoch = epoch.0);
        failpoints::hit(failpoints::AFTER_NOTE);
        self.state.committed = Some(epoch);
        let now = self.clock.now_micros();
        self.status.send_modify(|status| {
            (status.committed, status.committed_micros, status.unchanged_micros) = (Some(epoch), Some(now), None);
        });
        answer(done.requests, epoch);
        if self.commands.capacity() > COMMAND_ROOM {
            let _ = self.commands.try_send(SourceCommand::Committed(epoch)); // the next one says it as well
        }
        if let Err(error) = self.chain.collect_garbage(self.config.retained).await {
            tracing::warn!(event = "clean-up-failed", reason = %error, "old checkpoints stay until the next clean-up");
        }
        Ok(())
    }
}

/// What the checkpointer wakes for.
enum Wake {
    Report(Option<Report>),
    Request(Option<CheckpointRequest>),
    Stop,
    Time,
}

/// Until the pipeline is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await; // a handle that is gone asks for an end as well
}

fn answer(requests: Vec<CheckpointRequest>, epoch: Epoch) {
    for request in requests {
        let _ = request.send(Ok(epoch)); // who asked may have gone
    }
}

/// The class of what holds a checkpoint up.
pub(crate) type Holdup = (StopClass, String);
