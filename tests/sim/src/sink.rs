//! A sink whose target lies in the world: prepared work is kept and unseen, commits append.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use async_trait::async_trait;
use cdchost_connector::{
    Ability, Capabilities, CommitOutcome, Committer, ConnectorError, Delivery, Ordering, Recovered,
    SchemaChangeRequest, Sink, SinkWriter, StopClass,
};
use cdchost_model::{ChangeBatch, Committable, Cut, Epoch, Generation, SinkProgress, StateBlob, TableId, TableSchema};

use crate::history::Shown;
use crate::host::Host;
use crate::look;
use crate::source::{table_id, transactions_of};
use crate::world::{SlowSink, TABLES, Target, World};

/// The pipeline's name.
pub const PIPELINE: &str = "sim";

/// A sink of the world.
#[derive(Debug)]
pub struct SimSink {
    /// The process that it runs in.
    pub host: Arc<Host>,
    /// Its place among the sinks.
    pub place: usize,
    /// Its id.
    pub id: String,
}

/// One writer's or committer's way to its target.
struct Way {
    host: Arc<Host>,
    place: usize,
    generation: Generation,
}

impl Way {
    fn world(&self) -> &World {
        &self.host.world
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.world().target(self.place)
    }

    fn note(&self, what: std::fmt::Arguments<'_>) {
        self.host.note(format_args!("sink {} of generation {}: {what}", self.place, self.generation));
    }

    /// Gets through to the target, unless the world's dice or the target itself refuse.
    async fn reach(&self, what: &str) -> Result<(), ConnectorError> {
        self.host.step().await;
        let is_slow = |slow: &SlowSink| slow.place == self.place && (!slow.only_commits || what == "commit");
        if let Some(slow) = self.world().slow_sink().filter(is_slow) {
            let millis = self.world().below(slow.most.as_millis() as u64 + 1);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            self.host.step().await;
        }
        let newest = self.target().newest;
        if self.world().measures().targets_fence && newest > Some(self.generation) {
            let message = format!("the target was recovered by a newer generation than {}", self.generation);
            return Err(ConnectorError::stop(StopClass::Sink, "sim-fenced", message).with_instruction("run it once"));
        }
        match self.mishap(what) {
            Some(error) => Err(error),
            None => {
                self.note(format_args!("{what}"));
                Ok(())
            }
        }
    }

    /// An error that the world's dice ask for.
    fn mishap(&self, what: &str) -> Option<ConnectorError> {
        let rates = self.world().rates();
        let error = if self.world().chance(rates.restart) {
            ConnectorError::restart(StopClass::Sink, "sim-restart", what)
        } else if self.world().chance(rates.retry) {
            ConnectorError::retry(StopClass::Sink, "sim-retry", what)
        } else {
            return None;
        };
        self.note(format_args!("{what} fails with {}", error.code));
        Some(error)
    }
}

#[async_trait]
impl Sink for SimSink {
    fn id(&self) -> &str {
        &self.id
    }

    fn digest(&self) -> [u8; 32] {
        [self.place as u8; 32]
    }

    fn version(&self) -> String {
        "sim 1".into()
    }

    async fn committer(&self, generation: Generation) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(SimCommitter { way: self.way(generation) }))
    }

    async fn writer(
        &self,
        generation: Generation,
        subtask: u32,
        _: u32,
    ) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(SimWriter { way: self.way(generation), subtask, buffer: Vec::new(), rows: 0 }))
    }
}

impl SimSink {
    fn way(&self, generation: Generation) -> Way {
        Way { host: Arc::clone(&self.host), place: self.place, generation }
    }
}

struct SimWriter {
    way: Way,
    subtask: u32,
    buffer: Vec<Shown>,
    rows: u64,
}

#[async_trait]
impl SinkWriter for SimWriter {
    async fn open(&mut self, restored: Vec<StateBlob>) -> Result<(), ConnectorError> {
        self.way.reach("open writer").await?;
        let rows = |state: &StateBlob| state.payload[..].try_into().map(u64::from_le_bytes);
        self.rows = restored.iter().map(|state| rows(state).expect("the engine hands state on as it is")).sum();
        Ok(())
    }

    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<(), ConnectorError> {
        self.way.reach("schema").await?;
        if !self.way.target().tables.contains(&schema.table.to_string()) {
            self.way.world().violate(format!("a writer met table {} before its creation", schema.table));
        }
        Ok(())
    }

    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), ConnectorError> {
        self.way.reach("write").await?;
        let is_of = |&table: &usize| table_id(table) == batch.schema().table;
        let table = (0..TABLES).find(is_of).expect("the source has no other table");
        let ids = batch.columns().column(0).as_primitive::<Int64Type>();
        let values = batch.columns().column(1).as_primitive::<Int64Type>();
        for row in 0..batch.rows() {
            let seq = batch.meta().change_seq[row];
            self.buffer.push((table, seq, batch.ops()[row], ids.value(row), values.value(row)));
        }
        self.rows += batch.rows() as u64;
        Ok(())
    }

    async fn flush(&mut self, _: &TableId) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>, ConnectorError> {
        self.way.world().pass("prepare").await;
        self.way.reach("prepare").await?;
        if self.buffer.is_empty() {
            return Ok(Vec::new());
        }
        let rows = std::mem::take(&mut self.buffer);
        let Way { place, generation, .. } = self.way;
        let key = format!("<{place}-{}-{generation}-{}>", at.epoch, self.subtask);
        let item = Committable {
            epoch: at.epoch,
            generation,
            key: key.clone(),
            format: 1,
            payload: key.clone().into(),
            rows: rows.len() as u64,
            bytes: 0,
        };
        self.way.target().prepared.insert(key, (generation, rows));
        self.way.host.step().await;
        Ok(vec![item])
    }

    async fn save_state(&mut self) -> Result<StateBlob, ConnectorError> {
        self.way.reach("save state").await?;
        Ok(StateBlob { format: 1, payload: self.rows.to_le_bytes().to_vec().into() })
    }

    async fn close(&mut self, _: bool) {}
}

struct SimCommitter {
    way: Way,
}

impl SimCommitter {
    /// Only what a record in the store names may become visible.
    async fn check_durable(&self, items: &[Committable]) {
        let open: Vec<_> = items.iter().filter(|item| !self.way.target().done.contains(&item.key)).collect();
        if open.is_empty() {
            return;
        }
        let stored = look::records(&self.way.world().store).await.concat();
        for item in open {
            let key = item.key.as_bytes();
            if !stored.windows(key.len()).any(|window| window == key) {
                self.way.world().violate(format!("{} is committed without a record", item.key));
            }
        }
    }

    fn settle(&self, item: &Committable) -> CommitOutcome {
        let mut target = self.way.target();
        if target.done.contains(&item.key) {
            return CommitOutcome::AlreadyCommitted;
        }
        let Some((_, rows)) = target.prepared.remove(&item.key) else {
            if !target.lost.contains(&item.key) {
                self.way.world().violate(format!("{} was prepared and is gone", item.key));
            }
            return CommitOutcome::Lost("gone".into());
        };
        target.visible.extend(rows.into_iter().map(|row| (item.epoch, row)));
        target.done.insert(item.key.clone());
        self.way.note(format_args!("{} is visible", item.key));
        CommitOutcome::Committed
    }

    /// The outcome of one item, which may be "not yet".
    fn try_settle(&self, item: &Committable) -> CommitOutcome {
        let world = self.way.world();
        if !world.chance(world.rates().retry) {
            return self.settle(item);
        }
        if world.chance(500) {
            return CommitOutcome::RetryAfter(world.below(20) as u32);
        }
        CommitOutcome::Failed(ConnectorError::retry(StopClass::Sink, "sim-item", "one item is not taken yet"))
    }

    /// The outcomes of all items; after one that is not taken yet, those of later epochs are not either.
    async fn settle_all(&self, items: &[Committable]) -> Vec<CommitOutcome> {
        let mut outcomes = Vec::new();
        let mut waits_for = None;
        for item in items {
            let outcome = match waits_for {
                Some(epoch) if item.epoch > epoch => CommitOutcome::RetryAfter(1),
                _ => self.try_settle(item),
            };
            if matches!(outcome, CommitOutcome::RetryAfter(_) | CommitOutcome::Failed(_)) {
                waits_for.get_or_insert(item.epoch);
            }
            outcomes.push(outcome);
            self.way.host.step().await;
        }
        outcomes
    }

    /// Nothing may be visible that neither the marker covers nor a record holds: it could only come again.
    fn check_whole(&self, pending: &[Committable]) -> Result<(), ConnectorError> {
        let target = self.way.target();
        let Some(marked) = target.marker.as_ref().map(|marker| marker.cut.epoch) else { return Ok(()) };
        let is_known = |epoch: Epoch| epoch <= marked || pending.iter().any(|item| item.epoch == epoch);
        match target.visible.iter().find(|(epoch, _)| !is_known(*epoch)) {
            None => Ok(()),
            Some((epoch, _)) => {
                let message = format!("a part of epoch {epoch} is visible and no record holds it");
                let error = ConnectorError::stop(StopClass::Sink, "sim-partly-visible", message);
                Err(error.with_instruction("empty the target"))
            }
        }
    }

    /// The target shows all of this cut: exactly the source's transactions up to it, each once.
    fn mark(&self, at: &Cut) {
        let mut target = self.way.target();
        if target.marker.as_ref().is_some_and(|marker| marker.cut.epoch >= at.epoch) {
            return;
        }
        let world = self.way.world();
        let (place, told) = (self.way.place, transactions_of(&at.offset));
        let before = target.marker.as_ref().map_or(0, |marker| transactions_of(&marker.cut.offset));
        if told < before {
            world.violate(format!("sink {place} goes back from {before} transactions to {told}"));
        }
        // Another process may be ahead with what comes after.
        let mut rows: Vec<_> = target.visible.iter().filter(|(epoch, _)| *epoch <= at.epoch).map(|v| v.1).collect();
        rows.sort_unstable();
        if rows != world.expected(place, told) {
            world.violate(format!("sink {place} at epoch {} does not show {told} transactions", at.epoch));
        }
        self.way.note(format_args!("marker at epoch {}, {told} transactions", at.epoch));
        target.marker = Some(SinkProgress { pipeline: PIPELINE.into(), cut: at.clone() });
    }
}

#[async_trait]
impl Committer for SimCommitter {
    async fn open(&mut self) -> Result<Capabilities, ConnectorError> {
        self.way.host.step().await;
        let world = self.way.world();
        if world.down.load(std::sync::atomic::Ordering::Relaxed) {
            let error = ConnectorError::retry(StopClass::Sink, "sim-down", "target cannot be reached");
            return Err(error.with_instruction("start the target"));
        }
        Ok(Capabilities {
            delivery: Delivery::Transactional,
            ordering: Ordering::PerKey,
            wants_update_before: world.wants_update_before[self.way.place],
            abilities: Ability { reports_progress: true, ..Ability::default() },
            schema_changes: vec!["create-table".into()],
            target_rows: 8192,
            target_bytes: 1 << 20,
            max_open_epochs: world.measures().open_epochs,
            committable_ttl_ms: None,
            contract: vec![],
        })
    }

    async fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered, ConnectorError> {
        self.way.reach("recover").await?;
        self.check_durable(pending).await;
        {
            let mut target = self.way.target();
            target.newest = target.newest.max(Some(self.way.generation));
        }
        let outcomes = self.settle_all(pending).await;
        self.way.target().prepared.retain(|key, (generation, _)| {
            *generation >= self.way.generation || pending.iter().any(|item| item.key == *key)
        });
        let settled = |o: &CommitOutcome| matches!(o, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted);
        self.check_whole(pending)?;
        if let (Some(cut), false, true) = (restored, pending.is_empty(), outcomes.iter().all(settled)) {
            self.mark(cut);
        }
        Ok(Recovered { outcomes, progress: self.way.target().marker.clone() })
    }

    async fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<(), ConnectorError> {
        self.way.reach("apply").await?;
        let table = &request.after.as_ref().expect("the source only makes tables").table;
        self.way.target().tables.insert(table.to_string());
        Ok(())
    }

    async fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<CommitOutcome>, ConnectorError> {
        self.way.world().pass("commit").await;
        self.way.reach("commit").await?;
        self.check_durable(items).await;
        let outcomes = self.settle_all(items).await;
        if outcomes.iter().all(|o| matches!(o, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted)) {
            self.mark(at);
            self.way.host.step().await;
        }
        match self.way.mishap("commit done, answer lost") {
            Some(error) => Err(error),
            None => Ok(outcomes),
        }
    }

    async fn abort(&mut self, items: &[Committable]) -> Result<(), ConnectorError> {
        self.way.world().violate(format!("{} items were aborted", items.len()));
        Ok(())
    }

    async fn on_savepoint(&mut self, _: &str, _: &Cut) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn close(&mut self) {}
}

/// Rows of one key must become visible in the order of their changes.
pub fn out_of_order(target: &Target) -> Option<String> {
    let mut last: BTreeMap<(usize, i64), i64> = BTreeMap::new();
    for &(_, (table, seq, _, id, _)) in &target.visible {
        let before = last.insert((table, id), seq);
        if before.is_some_and(|before| before > seq) {
            return Some(format!("table {table} id {id}: change {seq} came after {before:?}"));
        }
    }
    None
}
