//! One run: recovers, connects, starts the tasks, and watches them until it has drained or one fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cdchost_checkpoint::{Chain, Plan, Record, plan};
use cdchost_connector::{OpenedSource, SourceContext, SourceEvent, SourceProgress, SourceRestore};
use cdchost_model::{ChangeSeq, Cut, Epoch, Generation, SourceOffset, StateBlob};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use crate::channel::{Receiver, Sender, channel};
use crate::checkpointer::content::Content;
use crate::checkpointer::{Checkpointer, Drained, OPEN_EPOCHS_MAX, SinkPart, State};
use crate::failure::{Failure, bug};
use crate::handle::CheckpointRequest;
use crate::recovery::{Recovered, recover};
use crate::retry::Caller;
use crate::setup::PipelineSetup;
use crate::status::{PipelineState, PipelineStatus};
use crate::tasks::committer::CommitterTask;
use crate::tasks::dispatch::{Dispatcher, SinkLane};
use crate::tasks::lanes;
use crate::tasks::partition::Spread;
use crate::tasks::writer::WriterTask;
use crate::tasks::{CommitterMessage, Report, WriterMessage, source};

/// Bytes of rows between the source and the dispatcher.
const SOURCE_QUEUE_BYTES: usize = 4 << 20;
/// Bytes of rows between the lanes and the dispatcher.
const LANES_QUEUE_BYTES: usize = 8 << 20;
/// Bytes of rows before the writers of one sink, all together.
const SINK_QUEUE_BYTES: usize = 8 << 20;
/// Messages between tasks that carry no rows.
const CONTROL_QUEUE: usize = 64;
/// How long a drained run's sinks may take to close.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// What outlives a run.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) setup: PipelineSetup,
    pub(crate) status: watch::Sender<PipelineStatus>,
    pub(crate) requests: tokio::sync::Mutex<mpsc::Receiver<CheckpointRequest>>,
    pub(crate) stop: watch::Receiver<bool>,
    /// Tells this process's claims from any other's.
    pub(crate) nonce: u64,
}

impl Surroundings {
    /// Makes calls that may be repeated, and shows where they are.
    pub(crate) fn caller(&self, name: impl Into<String>, retries: &Counter) -> Caller {
        let (clock, status) = (Arc::clone(&self.setup.clock), self.status.clone());
        Caller { name: name.into(), clock, retries: retries.clone(), status }
    }
}

/// A run's channels and tasks while they are put together.
struct Wiring {
    tasks: JoinSet<Result<(), Failure>>,
    reports: mpsc::Sender<Report>,
    ending: watch::Receiver<bool>,
}

/// One run, from claim to end. Dropped, all its tasks end at once.
pub(crate) async fn run(around: Arc<Surroundings>) -> Result<Drained, Failure> {
    let setup = &around.setup;
    let early = open_early(setup).await?;
    let mut recovered = recover(&around).await?;
    show_recovered(&around.status, &recovered);
    warn_of_another_path(&recovered, setup.path.digest);
    let opened = match (early, &recovered.record) {
        (Some(opened), None) => opened,
        (_, record) => setup.source.open(record.as_deref().map(|r| restore(r, recovered.change_seq))).await?,
    };
    let (reports, from_tasks) = mpsc::channel(CONTROL_QUEUE);
    let (end, ending) = watch::channel(false);
    let mut wiring = Wiring { tasks: JoinSet::new(), reports, ending };
    let (lanes, parts) = start_sinks(&around, &mut recovered, &mut wiring).await?;
    let (gate, gate_seen) = watch::channel(true);
    let (commands, from_engine) = mpsc::channel(16);
    let (progress, progress_seen) = watch::channel(SourceProgress::default());
    let context = SourceContext { commands: from_engine, progress, clock: Arc::clone(&setup.clock) };
    let (events, to_dispatch) = channel(SOURCE_QUEUE_BYTES);
    lanes::require_met(&setup.path, &opened.tables, &setup.clock).await?;
    let to_dispatch = through_lanes(&around, recovered.chain.generation(), to_dispatch, &mut wiring).await?;
    let path_digest = setup.path.digest;
    let dispatcher =
        dispatcher(&recovered, (&opened, path_digest), lanes, to_dispatch, (wiring.reports.clone(), gate_seen));
    wiring.tasks.spawn(source::run(opened.source, events, context, setup.metrics.clone()));
    wiring.tasks.spawn(dispatcher.run());
    let Wiring { mut tasks, reports, .. } = wiring;
    drop(reports);
    let state = if *around.stop.borrow() { PipelineState::Stopping } else { PipelineState::Running };
    around.status.send_modify(|status| (status.state, status.reason) = (state, None));
    let checkpointer = checkpointer(&around, recovered, parts, (commands, from_tasks, gate));
    let mut requests = around.requests.lock().await;
    let drained = tokio::select! {
        biased;
        failure = watch_tasks(&mut tasks) => Err(failure),
        drained = checkpointer.run(&mut requests) => match drained {
            Err(Failure::Closed) => Err(watch_tasks(&mut tasks).await),
            other => other,
        },
        never = show_progress(progress_seen, &around.status) => match never {},
    }?;
    end.send_replace(true);
    close(&mut tasks, setup).await;
    Ok(drained)
}

/// At a pipeline's very first start the source is checked before anything is written anywhere.
async fn open_early(setup: &PipelineSetup) -> Result<Option<OpenedSource>, Failure> {
    let state = Chain::peek(&setup.store, &setup.name).await?;
    if matches!(plan(&state)?, Plan::Fresh) { Ok(Some(setup.source.open(None).await?)) } else { Ok(None) }
}

fn restore(record: &Record, target_change_seq: ChangeSeq) -> SourceRestore {
    SourceRestore { offset: record.cut.offset.clone(), state: record.source.clone(), target_change_seq }
}

fn show_recovered(status: &watch::Sender<PipelineStatus>, recovered: &Recovered) {
    let epoch = recovered.record.as_ref().map(|record| record.epoch());
    let made = recovered.record.as_ref().map(|record| record.created_micros);
    status.send_modify(|status| {
        if status.committed != epoch || status.committed_micros.is_none() {
            (status.committed_micros, status.unchanged_micros) = (made, None);
        }
        status.generation = Some(recovered.chain.generation());
        (status.durable, status.committed) = (epoch, epoch);
        for (shown, sink) in status.sinks.iter_mut().zip(&recovered.sinks) {
            shown.capabilities = Some(sink.capabilities.clone());
            shown.committed = epoch;
        }
    });
}

/// Rows that were written are not written again when they would pass other transforms and routes by now.
fn warn_of_another_path(recovered: &Recovered, digest: [u8; 32]) {
    if recovered.record.as_ref().is_some_and(|record| record.cut.path_digest != digest) {
        tracing::warn!(
            event = "path-changed",
            "transforms or routes, their options or components are not those of the last checkpoint: rows that were written \
             before stay as they are, and a target with a new name gets only what changes from here on"
        );
    }
}

/// Puts transforms and routes before the dispatcher, where there are any.
async fn through_lanes(
    around: &Surroundings,
    generation: Generation,
    events: Receiver<SourceEvent>,
    wiring: &mut Wiring,
) -> Result<Receiver<SourceEvent>, Failure> {
    let setup = &around.setup;
    if setup.path.is_plain() {
        return Ok(events);
    }
    let (out, to_dispatch) = channel(LANES_QUEUE_BYTES);
    let ground = lanes::Ground {
        generation,
        clock: Arc::clone(&setup.clock),
        metrics: setup.metrics.path(),
        status: around.status.clone(),
    };
    lanes::start(&setup.path, ground, (events, out), &mut wiring.tasks).await?;
    Ok(to_dispatch)
}

/// Opens all writers and starts the tasks of all sinks.
async fn start_sinks(
    around: &Surroundings,
    recovered: &mut Recovered,
    wiring: &mut Wiring,
) -> Result<(Vec<SinkLane>, Vec<SinkPart>), Failure> {
    let setup = &around.setup;
    let generation = recovered.chain.generation();
    let (mut lanes, mut parts) = (Vec::new(), Vec::new());
    for (place, sink) in std::mem::take(&mut recovered.sinks).into_iter().enumerate() {
        let configured = &setup.sinks[place];
        let id = configured.sink.id().to_owned();
        let metrics = setup.metrics.sink(&id);
        let count = configured.parallelism.max(1);
        let states = recovered.record.as_ref().map_or(Vec::new(), |record| saved_states(record, &id));
        let mut writers: Vec<Sender<WriterMessage>> = Vec::new();
        for subtask in 0..count {
            let mut writer = configured.sink.writer(generation, subtask, count).await?;
            writer.open(share(&states, subtask, count)).await?;
            let (to, messages) = channel(SINK_QUEUE_BYTES / count as usize);
            writers.push(to);
            let task = WriterTask {
                writer,
                messages,
                reports: wiring.reports.clone(),
                ending: wiring.ending.clone(),
                caller: around.caller(format!("sink {id}, writer {subtask}"), &metrics.retries),
                metrics: metrics.clone(),
                sink_id: id.clone(),
                sink: place,
                subtask: subtask as usize,
            };
            wiring.tasks.spawn(task.run());
        }
        let (committer, messages) = mpsc::channel::<CommitterMessage>(CONTROL_QUEUE);
        let task = CommitterTask {
            committer: sink.committer,
            messages,
            reports: wiring.reports.clone(),
            ending: wiring.ending.clone(),
            caller: around.caller(format!("sink {id}"), &metrics.retries),
            sink: place,
        };
        wiring.tasks.spawn(task.run());
        lanes.push(SinkLane {
            committer: committer.clone(),
            writers,
            wants_update_before: sink.capabilities.wants_update_before,
            spread: Spread::new(sink.capabilities.ordering, count),
        });
        let (version, digest) = (configured.sink.version(), configured.sink.digest());
        let open_max = sink.capabilities.max_open_epochs;
        parts.push(SinkPart { id, version, digest, writers: count as usize, open_max, committer });
    }
    Ok((lanes, parts))
}

fn saved_states(record: &Record, sink: &str) -> Vec<StateBlob> {
    record.sinks.iter().find(|saved| saved.id == sink).map_or(Vec::new(), |saved| saved.writers.clone())
}

/// The saved states that fall to one of so many writers.
fn share(states: &[StateBlob], subtask: u32, count: u32) -> Vec<StateBlob> {
    states.iter().skip(subtask as usize).step_by(count as usize).cloned().collect()
}

fn dispatcher(
    recovered: &Recovered,
    (opened, path_digest): (&OpenedSource, [u8; 32]),
    lanes: Vec<SinkLane>,
    events: Receiver<SourceEvent>,
    (reports, gate): (mpsc::Sender<Report>, watch::Receiver<bool>),
) -> Dispatcher {
    let generation = recovered.chain.generation();
    let before_all = || Cut {
        epoch: Epoch(recovered.first_epoch.0.saturating_sub(1)),
        generation,
        lineage: recovered.lineage.clone(),
        offset: SourceOffset::default(),
        change_seq: recovered.change_seq,
        path_digest,
        tables_digest: opened.tables_digest,
        end_of_input: false,
    };
    let record = recovered.record.as_deref();
    Dispatcher {
        events,
        lanes,
        reports,
        gate,
        generation,
        lineage: recovered.lineage.clone(),
        tables_digest: opened.tables_digest,
        path_digest,
        last_cut: Arc::new(record.map_or_else(before_all, |record| record.cut.clone())),
        tables: record.map_or(BTreeMap::new(), |r| r.tables.iter().map(|t| (t.table.clone(), t.version)).collect()),
        announced: BTreeMap::new(),
        ended: false,
    }
}

fn checkpointer(
    around: &Surroundings,
    recovered: Recovered,
    sinks: Vec<SinkPart>,
    (commands, reports, gate): (
        mpsc::Sender<cdchost_connector::SourceCommand>,
        mpsc::Receiver<Report>,
        watch::Sender<bool>,
    ),
) -> Checkpointer {
    let setup = &around.setup;
    let committed = recovered.record.as_ref().map(|record| record.epoch());
    Checkpointer {
        config: setup.checkpoint.clone(),
        clock: Arc::clone(&setup.clock),
        shown_config: setup.config.clone(),
        source: Arc::clone(&setup.source),
        caller: around.caller("checkpoint store", &setup.metrics.checkpoint_retries),
        commands,
        reports,
        stop: around.stop.clone(),
        gate,
        status: around.status.clone(),
        metrics: setup.metrics.clone(),
        open_max: sinks.iter().map(|sink| sink.open_max).fold(OPEN_EPOCHS_MAX, u32::min).max(1) as usize,
        sinks,
        next_epoch: recovered.first_epoch,
        last: recovered.record.as_deref().map(Content::of_record),
        state: State::restored(committed),
        chain: recovered.chain,
    }
}

/// The first failure of any task that is not the mere echo of another one's.
async fn watch_tasks(tasks: &mut JoinSet<Result<(), Failure>>) -> Failure {
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(()) | Err(Failure::Closed)) => {}
            Ok(Err(failure)) => return failure,
            Err(error) => return panicked(error),
        }
    }
    bug("tasks-ended", "all tasks ended and none said why")
}

/// A task that panicked ends the run, not the program.
pub(crate) fn panicked(error: JoinError) -> Failure {
    let what = match error.try_into_panic() {
        Ok(panic) => match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "without words".into(),
        },
        Err(_) => "cancelled".into(),
    };
    bug("task-panicked", format!("a task of the run panicked: {what}"))
}

async fn show_progress(
    mut progress: watch::Receiver<SourceProgress>,
    status: &watch::Sender<PipelineStatus>,
) -> std::convert::Infallible {
    while progress.changed().await.is_ok() {
        let seen = progress.borrow_and_update().clone();
        if seen.tables.is_empty() && !status.borrow().source.tables.is_empty() {
            continue; // a source that only begins knows less than the one before it
        }
        status.send_modify(|status| status.source = seen);
    }
    std::future::pending().await
}

/// Lets sinks close; what does not end in time is dropped.
async fn close(tasks: &mut JoinSet<Result<(), Failure>>, setup: &PipelineSetup) {
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    tokio::select! {
        biased;
        () = all_ended => {}
        () = setup.clock.sleep(CLOSE_TIME) => {
            tracing::warn!(event = "close-slow", "not all tasks ended in time; the rest is dropped");
        }
    }
    tasks.shutdown().await;
}
