//! The state of the chain and what the targets say → what a run does. Pure.

use cdchost_model::{Cut, Epoch, SinkProgress};

use crate::{ChainState, Record, Slot};

/// Epochs skipped when the newest record cannot be read and its number is unknown: more than any run makes in the
/// time that an unreadable record can go unnoticed.
const DAMAGED_EPOCHS: u64 = 1 << 32;

/// Where a run begins.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Nothing was ever stored.
    Fresh,
    /// From the newest record.
    Restore,
    /// The newest record cannot be read. From the one before, if every target can show that it does not hold more.
    RestoreBeforeDamage,
}

/// What one sink said when it was recovered.
#[derive(Clone, Debug)]
pub struct SinkReport {
    /// The sink.
    pub sink: String,
    /// Whether it keeps a marker in its target.
    pub keeps_marker: bool,
    /// The marker; none where the target has none.
    pub progress: Option<SinkProgress>,
    /// Prepared items that its target no longer has.
    pub lost: Vec<LostItem>,
    /// Epochs of items that its target has.
    pub settled: Vec<Epoch>,
}

/// A prepared item that a target no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostItem {
    /// The epoch it was prepared for.
    pub epoch: Epoch,
    /// The sink's words.
    pub reason: String,
}

/// What a run does after its sinks were recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Every target stands where the record says, or will once the open epochs are announced: go on.
    Ready {
        /// The number of the run's first epoch.
        first_epoch: Epoch,
    },
    /// A sink lost all of this epoch and what came after: recover again, from the record before it.
    StepBack {
        /// The first epoch lost.
        lost: Epoch,
    },
}

/// Why a run must not begin. Only a person can decide what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Notes without any record.
    #[error("epoch {committed} is noted as committed, but the checkpoint store holds no record")]
    RecordsGone {
        /// The newest note.
        committed: Epoch,
    },
    /// The only record, or one that was committed, cannot be read.
    #[error(
        "slot {slot} of the checkpoint store cannot be read ({why}) and nothing older can take its place: {because}"
    )]
    Damaged {
        /// The slot.
        slot: Slot,
        /// Why it cannot be read.
        why: String,
        /// Why the record before does not do.
        because: String,
    },
    /// Somebody else's target.
    #[error("target of sink {sink} belongs to pipeline {theirs:?}, not to {ours:?}")]
    AnotherPipeline {
        /// The sink.
        sink: String,
        /// The pipeline in the marker.
        theirs: String,
        /// The pipeline that runs.
        ours: String,
    },
    /// The store is empty, the target is not.
    #[error("checkpoint store is empty, but the target of sink {sink} holds epoch {target} of this pipeline")]
    StoreEmpty {
        /// The sink.
        sink: String,
        /// The epoch in the marker.
        target: Epoch,
    },
    /// The target holds more than the record.
    #[error("target of sink {sink} holds epoch {target}, the newest readable record is of epoch {record}")]
    TargetAhead {
        /// The sink.
        sink: String,
        /// The epoch in the marker.
        target: Epoch,
        /// The epoch of the record.
        record: Epoch,
    },
    /// The target holds less than was committed to it.
    #[error("target of sink {sink} holds epoch {target}, but epoch {committed} was committed to it")]
    TargetBehind {
        /// The sink.
        sink: String,
        /// The epoch in the marker.
        target: Epoch,
        /// The epoch that it should hold.
        committed: Epoch,
    },
    /// The target lost its marker, and most likely its data.
    #[error("target of sink {sink} has no marker of this pipeline, but epoch {committed} was committed to it")]
    MarkerGone {
        /// The sink.
        sink: String,
        /// The epoch that it should hold.
        committed: Epoch,
    },
    /// The marker names an epoch of another history.
    #[error(
        "target of sink {sink} holds epoch {target} of lineage {theirs}, the checkpoint store is of lineage {ours}"
    )]
    AnotherLineage {
        /// The sink.
        sink: String,
        /// The epoch in the marker.
        target: Epoch,
        /// Its lineage.
        theirs: String,
        /// The record's lineage.
        ours: String,
    },
    /// The marker names the record's epoch as somebody else cut it.
    #[error(
        "target of sink {sink} holds epoch {target} up to another place in the source's log than the record of it here"
    )]
    AnotherRun {
        /// The sink.
        sink: String,
        /// The epoch in the marker.
        target: Epoch,
    },
    /// Prepared work is gone, and there is no record to go back to.
    #[error("target of sink {sink} lost what was prepared for epoch {epoch} ({reason}) {because}")]
    Lost {
        /// The sink.
        sink: String,
        /// The epoch.
        epoch: Epoch,
        /// The sink's words.
        reason: String,
        /// Why going back does not do.
        because: &'static str,
    },
    /// The record has state of a sink that is not configured.
    #[error("the newest record holds sink {sink}, which the configuration does not have")]
    SinkRemoved {
        /// The sink.
        sink: String,
    },
    /// A sink is configured that the record does not have.
    #[error("the newest record does not hold sink {sink}: it would lack all rows from before")]
    SinkAdded {
        /// The sink.
        sink: String,
    },
}

impl Refusal {
    /// A short stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RecordsGone { .. } => "records-gone",
            Self::Damaged { .. } => "record-damaged",
            Self::AnotherPipeline { .. } => "target-of-another-pipeline",
            Self::StoreEmpty { .. } => "store-empty-target-not",
            Self::TargetAhead { .. } => "target-ahead",
            Self::TargetBehind { .. } => "target-behind",
            Self::MarkerGone { .. } => "target-marker-gone",
            Self::AnotherLineage { .. } => "target-of-another-lineage",
            Self::AnotherRun { .. } => "target-of-another-run",
            Self::Lost { .. } => "target-lost-prepared",
            Self::SinkRemoved { .. } => "sink-removed",
            Self::SinkAdded { .. } => "sink-added",
        }
    }

    /// What a person can do about it.
    pub fn instruction(&self) -> &'static str {
        match self {
            Self::RecordsGone { .. } | Self::Damaged { .. } => {
                "put the checkpoint store back from a backup, or empty both the store and the targets to begin afresh"
            }
            Self::AnotherPipeline { .. } => "give this pipeline a target of its own, or run it under the other's name",
            Self::StoreEmpty { .. } => {
                "point [checkpoint] store at the store that belongs to this target, or empty the target to begin afresh"
            }
            Self::TargetAhead { .. } | Self::AnotherLineage { .. } => {
                "use the checkpoint store that last wrote this target, or empty both to begin afresh"
            }
            Self::AnotherRun { .. } => {
                "another process runs this pipeline on a copy of the checkpoint store: go on with the store of that one"
            }
            Self::TargetBehind { .. } | Self::MarkerGone { .. } => {
                "put the target back to where it was, or empty both it and the checkpoint store to begin afresh"
            }
            Self::Lost { .. } => "empty both the target and the checkpoint store to begin afresh",
            Self::SinkRemoved { .. } => "put the sink back, or begin afresh with another store and target",
            Self::SinkAdded { .. } => "run the new sink as a pipeline of its own, with its own store",
        }
    }

    /// Whether the trouble lies in the checkpoint store rather than at a target.
    pub fn concerns_store(&self) -> bool {
        matches!(self, Self::RecordsGone { .. } | Self::Damaged { .. } | Self::StoreEmpty { .. })
    }
}

/// Where a run begins, before any target was asked.
pub fn plan(chain: &ChainState) -> Result<Plan, Refusal> {
    match (&chain.damaged, chain.newest()) {
        (None, Some(_)) => Ok(Plan::Restore),
        (None, None) => match chain.committed {
            None => Ok(Plan::Fresh),
            Some(committed) => Err(Refusal::RecordsGone { committed }),
        },
        (Some((slot, why)), newest) => match (newest, chain.committed) {
            (None, _) => Err(damaged(*slot, why, "there is none before it")),
            (Some(newest), Some(committed)) if committed > newest.epoch() => {
                Err(damaged(*slot, why, "an epoch after the record before it is noted as committed"))
            }
            _ => Ok(Plan::RestoreBeforeDamage),
        },
    }
}

fn damaged(slot: Slot, why: &str, because: &str) -> Refusal {
    Refusal::Damaged { slot, why: why.into(), because: because.into() }
}

/// Whether the configured sinks are those of the record. State is never dropped and never missing in silence.
pub fn match_sinks(record: &Record, configured: &[&str]) -> Result<(), Refusal> {
    if let Some(gone) = record.sinks.iter().find(|sink| !configured.contains(&sink.id.as_str())) {
        return Err(Refusal::SinkRemoved { sink: gone.id.clone() });
    }
    match configured.iter().find(|id| record.sinks.iter().all(|sink| sink.id != **id)) {
        Some(new) => Err(Refusal::SinkAdded { sink: (*new).into() }),
        None => Ok(()),
    }
}

/// What a run does, once each sink was recovered with the open epochs of `chain` and said how far its target is.
pub fn settle(pipeline: &str, plan: &Plan, chain: &ChainState, reports: &[SinkReport]) -> Result<Settled, Refusal> {
    for report in reports {
        if let Some(progress) = &report.progress
            && progress.pipeline != pipeline
        {
            let (theirs, ours) = (progress.pipeline.clone(), pipeline.into());
            return Err(Refusal::AnotherPipeline { sink: report.sink.clone(), theirs, ours });
        }
    }
    if let Some(lost) = first_lost(chain, reports)? {
        return Ok(Settled::StepBack { lost });
    }
    for report in reports {
        check_marker(plan, chain, report)?;
    }
    let targets = reports.iter().filter_map(|r| r.progress.as_ref()).map(|p| p.cut.epoch);
    let top = targets.chain([chain.epoch_top]).max().unwrap_or(Epoch(0));
    let skipped = if chain.damaged.is_some() { DAMAGED_EPOCHS } else { 0 };
    Ok(Settled::Ready { first_epoch: Epoch(top.0.saturating_add(1 + skipped)) })
}

/// The first epoch that a sink lost whole, with all that came after it; there must be a record before it.
fn first_lost(chain: &ChainState, reports: &[SinkReport]) -> Result<Option<Epoch>, Refusal> {
    let mut first = None;
    for report in reports {
        let Some(item) = report.lost.iter().min_by_key(|item| item.epoch) else { continue };
        let refuse = |because| Refusal::Lost {
            sink: report.sink.clone(),
            epoch: item.epoch,
            reason: item.reason.clone(),
            because,
        };
        if report.settled.iter().any(|&epoch| epoch >= item.epoch) {
            return Err(refuse("and holds other parts of it or a later one"));
        }
        if chain.before(item.epoch).newest().is_none() {
            return Err(refuse("and no older record is kept"));
        }
        first = Some(first.map_or(item.epoch, |epoch: Epoch| epoch.min(item.epoch)));
    }
    Ok(first)
}

fn check_marker(plan: &Plan, chain: &ChainState, report: &SinkReport) -> Result<(), Refusal> {
    let sink = || report.sink.clone();
    let Some(newest) = chain.newest() else {
        return match &report.progress {
            None => Ok(()),
            Some(progress) => Err(Refusal::StoreEmpty { sink: sink(), target: progress.cut.epoch }),
        };
    };
    let Some(progress) = &report.progress else {
        return check_no_marker(plan, chain, report);
    };
    let target = &progress.cut;
    if target.epoch > newest.epoch() {
        return Err(Refusal::TargetAhead { sink: sink(), target: target.epoch, record: newest.epoch() });
    }
    if chain.path().any(|record| same_cut(&record.cut, target)) {
        return Ok(());
    }
    if chain.path().any(|record| same_run(&record.cut, target)) {
        return Err(Refusal::AnotherRun { sink: sink(), target: target.epoch });
    }
    match &chain.base {
        Some(base) if target.epoch < base.epoch() && target.lineage == base.cut.lineage => {
            Err(Refusal::TargetBehind { sink: sink(), target: target.epoch, committed: base.epoch() })
        }
        _ => Err(Refusal::AnotherLineage {
            sink: sink(),
            target: target.epoch,
            theirs: target.lineage.to_string(),
            ours: newest.cut.lineage.to_string(),
        }),
    }
}

/// No marker at a target: right before the first commit, and at sinks that keep none.
fn check_no_marker(plan: &Plan, chain: &ChainState, report: &SinkReport) -> Result<(), Refusal> {
    if let (Plan::RestoreBeforeDamage, Some((slot, why))) = (plan, &chain.damaged) {
        let because = format!("sink {} cannot say how far its target is", report.sink);
        return Err(damaged(*slot, why, &because));
    }
    match &chain.base {
        Some(base) if report.keeps_marker => {
            Err(Refusal::MarkerGone { sink: report.sink.clone(), committed: base.epoch() })
        }
        _ => Ok(()),
    }
}

fn same_cut(one: &Cut, other: &Cut) -> bool {
    same_run(one, other) && one.offset == other.offset
}

/// Runs on copies of one store have the same numbers and read the log to different places.
fn same_run(one: &Cut, other: &Cut) -> bool {
    one.epoch == other.epoch && one.lineage == other.lineage && one.generation == other.generation
}

#[cfg(test)]
mod tests;
