//! Runs a sink's committer: tables, and commits in epoch order.

use std::time::Duration;

use cdchost_checkpoint::CommitPermit;
use cdchost_connector::{CommitOutcome, Committer, ConnectorError, SchemaChangeRequest, StopClass, Verdict};
use cdchost_model::Committable;
use tokio::sync::{mpsc, watch};

use super::{CommitterMessage, Report};
use crate::failpoints;
use crate::failure::Failure;
use crate::retry::Caller;
use crate::status::Reason;

/// A committer and its surroundings.
pub(crate) struct CommitterTask {
    pub(crate) committer: Box<dyn Committer>,
    pub(crate) messages: mpsc::Receiver<CommitterMessage>,
    pub(crate) reports: mpsc::Sender<Report>,
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) caller: Caller,
    pub(crate) sink: usize,
}

impl CommitterTask {
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        loop {
            let message = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ending| *ending) => break,
                message = self.messages.recv() => message.ok_or(Failure::Closed)?,
            };
            match message {
                CommitterMessage::Apply(request, done) => {
                    self.apply(&request).await?;
                    let _ = done.send(()); // the dispatcher is gone only when the run ends
                }
                CommitterMessage::Commit(permit) => self.commit(&permit).await?,
            }
        }
        self.committer.close().await;
        Ok(())
    }

    async fn apply(&mut self, request: &SchemaChangeRequest) -> Result<(), Failure> {
        let mut backoff = self.caller.call("apply-schema-change");
        while let Err(error) = self.committer.apply_schema_change(request).await {
            backoff.wait(error).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, permit: &CommitPermit) -> Result<(), Failure> {
        let epoch = permit.cut().epoch;
        tracing::info!(event = "commit-started", epoch = epoch.0, sink = permit.sink());
        failpoints::hit_at(failpoints::BEFORE_COMMIT, permit.sink(), None);
        commit(self.committer.as_mut(), permit, &self.caller).await?;
        let report = Report::Committed { sink: self.sink, epoch };
        self.reports.send(report).await.map_err(|_| Failure::Closed)
    }
}

/// Commits an epoch at one sink; returns when all of it is visible.
pub(crate) async fn commit(
    committer: &mut dyn Committer,
    permit: &CommitPermit,
    caller: &Caller,
) -> Result<(), Failure> {
    let mut backoff = caller.call("commit");
    let mut items = permit.items().to_vec();
    loop {
        let outcomes = match committer.commit(permit.cut(), &items).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                backoff.wait(error).await?;
                continue;
            }
        };
        let Some(waiting) = judge(permit, items, outcomes)? else { return Ok(()) };
        items = waiting.items;
        match waiting.error {
            Some(error) => backoff.wait(error).await?,
            None if backoff.pause(waiting.after, not_yet(permit)).await => {}
            None => return Err(slow(permit)),
        }
    }
}

/// Items that are not visible yet.
struct Waiting {
    items: Vec<Committable>,
    after: Duration,
    error: Option<ConnectorError>,
}

/// Sorts the outcomes of one call; none = all is visible.
fn judge(
    permit: &CommitPermit,
    items: Vec<Committable>,
    outcomes: Vec<CommitOutcome>,
) -> Result<Option<Waiting>, Failure> {
    check_count(permit.sink(), items.len(), outcomes.len())?;
    let mut waiting = Waiting { items: Vec::new(), after: Duration::ZERO, error: None };
    for (item, outcome) in items.into_iter().zip(outcomes) {
        match outcome {
            CommitOutcome::Committed | CommitOutcome::AlreadyCommitted => continue,
            CommitOutcome::RetryAfter(ms) => waiting.after = waiting.after.max(Duration::from_millis(u64::from(ms))),
            CommitOutcome::Lost(reason) => return Err(lost(permit, &item, &reason)),
            CommitOutcome::Failed(error) if matches!(error.verdict, Verdict::Retry { .. }) => {
                waiting.error = Some(error);
            }
            CommitOutcome::Failed(error) => return Err(error.into()),
        }
        waiting.items.push(item);
    }
    Ok(if waiting.items.is_empty() { None } else { Some(waiting) })
}

pub(crate) fn check_count(sink: &str, items: usize, outcomes: usize) -> Result<(), Failure> {
    if items == outcomes {
        return Ok(());
    }
    let message = format!("sink {sink} answered {outcomes} outcomes for {items} prepared items");
    let error = ConnectorError::restart(StopClass::Plugin, "sink-outcomes", message);
    Err(error.with_instruction("report it to the plugin's author").into())
}

/// The next run settles it: it goes back to the record before, where that one is kept and no other sink is ahead.
fn lost(permit: &CommitPermit, item: &Committable, reason: &str) -> Failure {
    let (sink, epoch) = (permit.sink(), permit.cut().epoch);
    let message = format!("target of sink {sink} lost {} prepared for epoch {epoch}: {reason}", item.key);
    let error = ConnectorError::restart(StopClass::Sink, "sink-lost-prepared", message);
    error
        .with_instruction(
            "find out what removes or changes files of the target, and end it; a start makes the epoch again, as long as the \
             record before it is kept",
        )
        .into()
}

const SLOW_INSTRUCTION: &str = "see why the target does not take commits; the epoch is durable and is committed later";

fn not_yet(permit: &CommitPermit) -> Reason {
    let message = format!("the target asks to wait with epoch {}", permit.cut().epoch);
    let (class, code) = (StopClass::Sink, "sink-commit-slow".to_owned());
    Reason { class, code, message, instruction: SLOW_INSTRUCTION.to_owned() }
}

fn slow(permit: &CommitPermit) -> Failure {
    let (sink, epoch) = (permit.sink(), permit.cut().epoch);
    let message = format!("sink {sink} did not finish the commit of epoch {epoch}");
    let error = ConnectorError::restart(StopClass::Sink, "sink-commit-slow", message);
    error.with_instruction(SLOW_INSTRUCTION).into()
}
