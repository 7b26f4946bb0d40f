//! A sink in the host that counts what it is given: the engine's own price, without a plugin's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cdchost_connector::{
    Ability, Capabilities, CommitOutcome, Committer, ConnectorError, Delivery, Ordering, Recovered,
    SchemaChangeRequest, Sink, SinkWriter,
};
use cdchost_model::{ChangeBatch, Committable, Cut, Generation, StateBlob, TableId, TableSchema};

/// Counts row changes, an update as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingSink {
    count: Arc<Mutex<Count>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    rows: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl CountingSink {
    fn count(&self) -> std::sync::MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Row changes so far.
    pub(crate) fn rows(&self) -> u64 {
        self.count().rows
    }

    /// Time from the first batch to the last.
    pub(crate) fn span(&self) -> Duration {
        let count = *self.count();
        count.first.zip(count.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

#[async_trait]
impl Sink for CountingSink {
    fn id(&self) -> &str {
        "counter"
    }

    fn digest(&self) -> [u8; 32] {
        [0; 32]
    }

    fn version(&self) -> String {
        "counter".to_owned()
    }

    async fn committer(&self, _: Generation) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Nothing))
    }

    async fn writer(&self, _: Generation, _: u32, _: u32) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(Writer(self.clone())))
    }
}

struct Writer(CountingSink);

#[async_trait]
impl SinkWriter for Writer {
    async fn open(&mut self, _: Vec<StateBlob>) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn on_schema(&mut self, _: &Arc<TableSchema>) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), ConnectorError> {
        let now = Instant::now();
        let mut count = self.0.count();
        count.rows += batch.changes() as u64;
        count.first.get_or_insert(now);
        count.last = Some(now);
        Ok(())
    }

    async fn flush(&mut self, _: &TableId) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn prepare_commit(&mut self, _: &Cut) -> Result<Vec<Committable>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn save_state(&mut self) -> Result<StateBlob, ConnectorError> {
        Ok(StateBlob { format: 0, payload: Default::default() })
    }

    async fn close(&mut self, _: bool) {}
}

/// Commits nothing, since nothing is prepared.
struct Nothing;

#[async_trait]
impl Committer for Nothing {
    async fn open(&mut self) -> Result<Capabilities, ConnectorError> {
        Ok(Capabilities {
            delivery: Delivery::AtLeastOnce,
            ordering: Ordering::PerKey,
            wants_update_before: false,
            abilities: Ability::default(),
            schema_changes: vec!["create-table".to_owned()],
            target_rows: 8192,
            target_bytes: 2 << 20,
            max_open_epochs: 1,
            committable_ttl_ms: None,
            contract: Vec::new(),
        })
    }

    async fn recover(&mut self, _: Option<&Cut>, _: &[Committable]) -> Result<Recovered, ConnectorError> {
        Ok(Recovered { outcomes: Vec::new(), progress: None })
    }

    async fn apply_schema_change(&mut self, _: &SchemaChangeRequest) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn commit(&mut self, _: &Cut, _: &[Committable]) -> Result<Vec<CommitOutcome>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn abort(&mut self, _: &[Committable]) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn on_savepoint(&mut self, _: &str, _: &Cut) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn close(&mut self) {}
}
