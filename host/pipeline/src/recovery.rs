//! Begins a run: claims its place, settles what is durable at every sink, and checks how far the targets are.

use std::sync::Arc;

use cdchost_checkpoint::{
    Chain, ChainState, CommitPermit, LostItem, Plan, PlantedFault, Record, Settled, SinkReport, match_sinks, plan,
    settle,
};
use cdchost_connector::{Capabilities, CommitOutcome, Committer, Verdict};
use cdchost_model::{ChangeSeq, Committable, Epoch, Generation, Lineage};
use tokio::sync::watch;

use crate::failpoints;
use crate::failure::Failure;
use crate::generation::Surroundings;
use crate::setup::SinkSetup;
use crate::status::PipelineStatus;
use crate::tasks::committer::{check_count, commit};

/// A sink whose target stands where the record says.
pub(crate) struct RecoveredSink {
    pub(crate) committer: Box<dyn Committer>,
    pub(crate) capabilities: Capabilities,
}

/// All that the rest of a run grows from.
pub(crate) struct Recovered {
    pub(crate) chain: Chain,
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) lineage: Lineage,
    pub(crate) first_epoch: Epoch,
    pub(crate) sinks: Vec<RecoveredSink>,
    /// The highest change-seq that the record or any target knows.
    pub(crate) change_seq: ChangeSeq,
}

/// What a run finds, settled at every sink.
struct Ground {
    record: Option<Arc<Record>>,
    /// Of the record, where the run goes on from the newest one and nothing was passed over.
    lineage: Option<Lineage>,
    first_epoch: Epoch,
    sinks: Vec<RecoveredSink>,
    change_seq: ChangeSeq,
}

pub(crate) async fn recover(around: &Surroundings) -> Result<Recovered, Failure> {
    let setup = &around.setup;
    tracing::info!(event = "recovery-started", pipeline = setup.name);
    failpoints::hit(failpoints::BEFORE_CLAIM);
    let now = setup.clock.now_micros();
    let (mut chain, state) = Chain::claim(setup.store.clone(), &setup.name, now, around.nonce).await?;
    let generation = chain.generation();
    let Ground { record, lineage, first_epoch, sinks, change_seq } = match settle_all(around, &mut chain, state).await {
        Ok(ground) => ground,
        // Where another run moves the targets on, they cannot fit what this one found. That is all there is to say.
        Err(failure) if failure.is_final() => match chain.overtaken().await? {
            Some(by) => return Err(Failure::fenced(by)),
            None => return Err(failure),
        },
        Err(failure) => return Err(failure),
    };
    let lineage = lineage.unwrap_or_else(|| Lineage(format!("{now:x}-{generation}")));
    failpoints::hit(failpoints::RECOVERED);
    let restored = record.as_ref().map(|r| r.epoch().0);
    tracing::info!(event = "recovery-done", generation = generation.0, restored, first_epoch = first_epoch.0);
    Ok(Recovered { chain, record, lineage, first_epoch, sinks, change_seq })
}

/// Settles what is durable at every sink, and checks how far the targets are.
async fn settle_all(around: &Surroundings, chain: &mut Chain, mut state: ChainState) -> Result<Ground, Failure> {
    let setup = &around.setup;
    let generation = chain.generation();
    let plan = plan(&state)?;
    tracing::info!(event = "generation-claimed", generation = generation.0, plan = ?plan);
    if let Some(record) = state.newest() {
        let ids: Vec<&str> = setup.sinks.iter().map(|s| s.sink.id()).collect();
        match_sinks(record, &ids)?;
    }
    show_found(&around.status, &state);
    failpoints::hit(failpoints::BEFORE_RECOVER);
    let mut stepped_back = false;
    let (mut sinks, reports, first_epoch) = loop {
        let (mut sinks, reports) = recover_sinks(around, generation, &state).await?;
        match settle(&setup.name, &plan, &state, &reports)? {
            Settled::Ready { first_epoch } => break (sinks, reports, first_epoch),
            Settled::StepBack { lost } => {
                tracing::warn!(event = "epoch-lost", epoch = lost.0, "a target lost an epoch; it is made again");
                state = state.before(lost);
                show_found(&around.status, &state);
                stepped_back = true;
                for sink in &mut sinks {
                    sink.committer.close().await;
                }
            }
        }
    };
    announce(around, chain, &state, &mut sinks).await?;
    let read_again = PlantedFault::SettledAndReadAgain.is_planted() && !state.open.is_empty();
    let record = if read_again { state.base.clone() } else { state.newest().cloned() };
    chain.grow_from(record.as_deref());
    let goes_on = !stepped_back && matches!(plan, Plan::Restore);
    let lineage = record.as_ref().filter(|_| goes_on).map(|record| record.cut.lineage.clone());
    let known = reports.iter().filter_map(|r| r.progress.as_ref()).map(|p| p.cut.change_seq);
    let change_seq = known.chain(record.iter().map(|r| r.cut.change_seq)).max().unwrap_or_default();
    Ok(Ground { record, lineage, first_epoch, sinks, change_seq })
}

/// What open records hold for one sink, in epoch order.
fn permits_of<'a>(state: &'a ChainState, sink: &'a str) -> impl Iterator<Item = CommitPermit> + 'a {
    state.open.iter().flat_map(|record| record.permits()).filter(move |permit| permit.sink() == sink)
}

/// What is durable before anything of it is settled: if that fails, the status says what stands.
fn show_found(status: &watch::Sender<PipelineStatus>, state: &ChainState) {
    let durable = state.newest().map(|record| record.epoch());
    let committed = state.base.as_ref().map(|record| record.epoch());
    status.send_modify(|status| {
        (status.durable, status.committed) = (durable, committed);
        for sink in &mut status.sinks {
            sink.committed =
                sink.committed.filter(|epoch| durable.is_some_and(|durable| *epoch <= durable)).max(committed);
        }
    });
}

/// All that is durable is visible at this sink.
fn show_settled(status: &watch::Sender<PipelineStatus>, sink: usize) {
    status.send_modify(|status| {
        let durable = status.durable;
        if let Some(shown) = status.sinks.get_mut(sink) {
            shown.committed = durable;
        }
    });
}

async fn recover_sinks(
    around: &Surroundings,
    generation: Generation,
    state: &ChainState,
) -> Result<(Vec<RecoveredSink>, Vec<SinkReport>), Failure> {
    let mut sinks = Vec::new();
    let mut reports = Vec::new();
    for (place, configured) in around.setup.sinks.iter().enumerate() {
        let (sink, report) = recover_sink(configured, generation, state).await?;
        if report.settled.len() == permits_of(state, &report.sink).map(|permit| permit.items().len()).sum::<usize>() {
            show_settled(&around.status, place);
        }
        failpoints::hit_at(failpoints::AFTER_RECOVER, &report.sink, None);
        sinks.push(sink);
        reports.push(report);
    }
    Ok((sinks, reports))
}

async fn recover_sink(
    configured: &SinkSetup,
    generation: Generation,
    state: &ChainState,
) -> Result<(RecoveredSink, SinkReport), Failure> {
    let id = configured.sink.id();
    let mut committer = configured.sink.committer(generation).await?;
    let capabilities = committer.open().await?;
    let mut pending: Vec<Committable> = permits_of(state, id).flat_map(|permit| permit.items().to_vec()).collect();
    if PlantedFault::NotSettled.is_planted() {
        pending.clear();
    }
    let restored = state.newest().map(|record| &record.cut);
    let recovered = committer.recover(restored, &pending).await?;
    check_count(id, pending.len(), recovered.outcomes.len())?;
    let mut report = SinkReport {
        sink: id.into(),
        keeps_marker: capabilities.abilities.reports_progress,
        progress: recovered.progress,
        lost: Vec::new(),
        settled: Vec::new(),
    };
    for (item, outcome) in pending.iter().zip(recovered.outcomes) {
        match outcome {
            CommitOutcome::Committed | CommitOutcome::AlreadyCommitted => report.settled.push(item.epoch),
            CommitOutcome::Lost(reason) => report.lost.push(LostItem { epoch: item.epoch, reason }),
            CommitOutcome::Failed(error) if !matches!(error.verdict, Verdict::Retry { .. }) => return Err(error.into()),
            // Not yet: the announcement of its epoch goes on with it.
            CommitOutcome::RetryAfter(_) | CommitOutcome::Failed(_) => {}
        }
    }
    Ok((RecoveredSink { committer, capabilities }, report))
}

/// Commits every open epoch at every sink, so that markers move on where nothing was prepared, and notes it.
async fn announce(
    around: &Surroundings,
    chain: &mut Chain,
    state: &ChainState,
    sinks: &mut [RecoveredSink],
) -> Result<(), Failure> {
    let setup = &around.setup;
    for record in &state.open {
        for permit in record.permits() {
            let place = setup.sinks.iter().position(|configured| configured.sink.id() == permit.sink());
            if PlantedFault::NotSettled.is_planted() {
                continue;
            }
            let Some(sink) = place.and_then(|place| sinks.get_mut(place)) else { continue };
            let retries = setup.metrics.sink(permit.sink()).retries;
            let caller = around.caller(format!("sink {}", permit.sink()), &retries);
            commit(sink.committer.as_mut(), &permit, &caller).await?;
        }
        failpoints::hit(failpoints::RECOVERY_BEFORE_NOTE);
        chain.note_committed(record.epoch()).await?;
        tracing::info!(event = "committed", epoch = record.epoch().0, recovered = true);
    }
    Ok(())
}
