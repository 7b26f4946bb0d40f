//! A sink whose target lies in the world: prepared work is kept and unseen, commits append.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use async_trait::async_trait;
use cdchost_connector::{
    Ability, Capabilities, CommitOutcome, Committer, ConnectorError, Delivery, Ordering, Recovered,
    SchemaChangeRequest, Sink, SinkWriter, StopClass,
};
use cdchost_model::{ChangeBatch, Committable, Cut, Generation, SinkProgress, StateBlob, TableId, TableSchema};

use super::history::Shown;
use super::source::{table_id, transactions_of};
use super::world::{Target, World};

pub const PIPELINE: &str = "sim";

#[derive(Debug)]
pub struct SimSink {
    pub world: Arc<World>,
    pub place: usize,
    pub id: String,
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
        Ok(Box::new(SimCommitter { world: Arc::clone(&self.world), place: self.place, generation }))
    }

    async fn writer(
        &self,
        generation: Generation,
        subtask: u32,
        _: u32,
    ) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(SimWriter {
            world: Arc::clone(&self.world),
            place: self.place,
            generation,
            subtask,
            buffer: Vec::new(),
            rows: 0,
        }))
    }
}

/// An error that the world's dice ask for.
fn mishap(world: &World, what: &str) -> Option<ConnectorError> {
    if world.chance(world.rates.restart) {
        return Some(ConnectorError::restart(StopClass::Sink, "sim-restart", what));
    }
    world.chance(world.rates.retry).then(|| ConnectorError::retry(StopClass::Sink, "sim-retry", what))
}

struct SimWriter {
    world: Arc<World>,
    place: usize,
    generation: Generation,
    subtask: u32,
    buffer: Vec<Shown>,
    rows: u64,
}

#[async_trait]
impl SinkWriter for SimWriter {
    async fn open(&mut self, restored: Vec<StateBlob>) -> Result<(), ConnectorError> {
        self.world.step().await;
        self.rows = restored.iter().map(|state| u64::from_le_bytes(state.payload[..].try_into().unwrap())).sum();
        Ok(())
    }

    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<(), ConnectorError> {
        self.world.step().await;
        let target = self.world.targets[self.place].lock().unwrap();
        if !target.tables.contains(&schema.table.to_string()) {
            self.world.violate(format!("a writer met table {} before its creation", schema.table));
        }
        Ok(())
    }

    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), ConnectorError> {
        self.world.step().await;
        if let Some(error) = mishap(&self.world, "write") {
            return Err(error);
        }
        let table = (0..3).find(|&table| table_id(table) == batch.schema().table).unwrap();
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
        self.world.pass("prepare").await;
        self.world.step().await;
        if let Some(error) = mishap(&self.world, "prepare") {
            return Err(error);
        }
        if self.buffer.is_empty() {
            return Ok(Vec::new());
        }
        let rows = std::mem::take(&mut self.buffer);
        let key = format!("<{}-{}-{}-{}>", self.place, at.epoch, self.generation, self.subtask);
        let item = Committable {
            epoch: at.epoch,
            generation: self.generation,
            key: key.clone(),
            format: 1,
            payload: key.clone().into(),
            rows: rows.len() as u64,
            bytes: 0,
        };
        self.world.targets[self.place].lock().unwrap().prepared.insert(key, (self.generation, rows));
        self.world.step().await;
        Ok(vec![item])
    }

    async fn save_state(&mut self) -> Result<StateBlob, ConnectorError> {
        Ok(StateBlob { format: 1, payload: self.rows.to_le_bytes().to_vec().into() })
    }

    async fn close(&mut self, _: bool) {}
}

struct SimCommitter {
    world: Arc<World>,
    place: usize,
    generation: Generation,
}

impl SimCommitter {
    /// Only what a record in the store names may become visible.
    async fn check_durable(&self, items: &[Committable]) {
        let slots = self.world.store.list("slots", None, 10_000).await.unwrap();
        let mut stored = Vec::new();
        for slot in slots {
            stored.extend_from_slice(&self.world.store.get(&slot.path).await.unwrap_or_default());
        }
        for item in items {
            let key = item.key.as_bytes();
            let done = self.world.targets[self.place].lock().unwrap().done.contains(&item.key);
            if !done && !stored.windows(key.len()).any(|window| window == key) {
                self.world.violate(format!("{} is committed without a record", item.key));
            }
        }
    }

    fn settle(&self, target: &mut Target, item: &Committable) -> CommitOutcome {
        if target.done.contains(&item.key) {
            return CommitOutcome::AlreadyCommitted;
        }
        let Some((_, rows)) = target.prepared.remove(&item.key) else {
            if !self.world.may_lose.load(std::sync::atomic::Ordering::Relaxed) {
                self.world.violate(format!("{} was prepared and is gone", item.key));
            }
            return CommitOutcome::Lost("gone".into());
        };
        target.visible.extend(rows);
        target.done.insert(item.key.clone());
        CommitOutcome::Committed
    }

    /// The target shows all of this cut: exactly the source's transactions up to it, each once.
    fn mark(&self, target: &mut Target, at: &Cut) {
        if target.marker.as_ref().is_some_and(|marker| marker.cut.epoch >= at.epoch) {
            return;
        }
        let mut rows = target.visible.clone();
        rows.sort_unstable();
        if rows != self.world.expected(self.place, transactions_of(&at.offset)) {
            let told = transactions_of(&at.offset);
            self.world.violate(format!("sink {} at epoch {} does not show {told} transactions", self.place, at.epoch));
        }
        target.marker = Some(SinkProgress { pipeline: PIPELINE.into(), cut: at.clone() });
    }
}

#[async_trait]
impl Committer for SimCommitter {
    async fn open(&mut self) -> Result<Capabilities, ConnectorError> {
        self.world.step().await;
        if self.world.down.load(std::sync::atomic::Ordering::Relaxed) {
            let error = ConnectorError::retry(StopClass::Sink, "sim-down", "target cannot be reached");
            return Err(error.with_instruction("start the target"));
        }
        Ok(Capabilities {
            delivery: Delivery::Transactional,
            ordering: Ordering::PerKey,
            wants_update_before: self.world.wants_update_before[self.place],
            abilities: Ability { reports_progress: true, ..Ability::default() },
            schema_changes: vec!["create-table".into()],
            target_rows: 8192,
            target_bytes: 1 << 20,
            max_open_epochs: 2,
            committable_ttl_ms: None,
            contract: vec![],
        })
    }

    async fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered, ConnectorError> {
        self.world.step().await;
        self.check_durable(pending).await;
        let mut outcomes = Vec::new();
        for item in pending {
            outcomes.push(self.settle(&mut self.world.targets[self.place].lock().unwrap(), item));
            self.world.step().await;
        }
        let mut target = self.world.targets[self.place].lock().unwrap();
        target.prepared.retain(|_, (generation, _)| *generation >= self.generation);
        let settled = |outcome: &CommitOutcome| !matches!(outcome, CommitOutcome::Lost(_));
        if let (Some(cut), false, true) = (restored, pending.is_empty(), outcomes.iter().all(settled)) {
            self.mark(&mut target, cut);
        }
        Ok(Recovered { outcomes, progress: target.marker.clone() })
    }

    async fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<(), ConnectorError> {
        self.world.step().await;
        if let Some(error) = mishap(&self.world, "apply") {
            return Err(error);
        }
        let table = request.after.as_ref().unwrap().table.to_string();
        self.world.targets[self.place].lock().unwrap().tables.insert(table);
        Ok(())
    }

    async fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<CommitOutcome>, ConnectorError> {
        self.world.pass("commit").await;
        self.world.step().await;
        self.check_durable(items).await;
        if let Some(error) = mishap(&self.world, "commit") {
            return Err(error);
        }
        let mut outcomes = Vec::new();
        for item in items {
            if self.world.chance(self.world.rates.retry) {
                outcomes.push(CommitOutcome::RetryAfter(self.world.below(20) as u32));
                continue;
            }
            outcomes.push(self.settle(&mut self.world.targets[self.place].lock().unwrap(), item));
            self.world.step().await;
        }
        if outcomes.iter().all(|o| matches!(o, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted)) {
            self.mark(&mut self.world.targets[self.place].lock().unwrap(), at);
            self.world.step().await;
        }
        match mishap(&self.world, "commit done, answer lost") {
            Some(error) => Err(error),
            None => Ok(outcomes),
        }
    }

    async fn abort(&mut self, items: &[Committable]) -> Result<(), ConnectorError> {
        self.world.violate(format!("{} items were aborted", items.len()));
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
    for &(table, seq, _, id, _) in &target.visible {
        let before = last.insert((table, id), seq);
        if before.is_some_and(|before| before > seq) {
            return Some(format!("table {table} id {id}: change {seq} came after {before:?}"));
        }
    }
    None
}
