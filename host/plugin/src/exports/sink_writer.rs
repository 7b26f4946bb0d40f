//! Export `sink-writer` as a [`SinkWriter`].

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_connector::{ConnectorError, SinkWriter};
use cdchost_model::{ChangeBatch, Committable, Cut, StateBlob, TableId, TableSchema};

use super::Instance;
use super::fault::Given;
use super::plans::{Plans, handed};
use crate::bindings::v0_1::cdchost::plugin::sink_types::BlobParam;
use crate::convert::{self, SchemaParts, TablePlan};

/// One writer of a sink, in an instance of its own.
pub(super) struct PluginWriter {
    instance: Instance,
    /// What the plugin wants of each table, at the version that it was last told.
    plans: Plans<TablePlan>,
    /// The largest batch since the last prepared epoch: what makes a later call need more memory than it has.
    largest: Option<Given>,
}

impl PluginWriter {
    pub(super) fn new(instance: Instance) -> Self {
        Self { instance, plans: Plans::default(), largest: None }
    }

    /// An error of a call that is given no rows itself.
    fn told(&self, error: ConnectorError) -> ConnectorError {
        match &self.largest {
            Some(given) => given.told_in(error, "the largest batch of the epoch"),
            None => error,
        }
    }
}

#[async_trait]
impl SinkWriter for PluginWriter {
    async fn open(&mut self, restored: Vec<StateBlob>) -> Result<(), ConnectorError> {
        let called = self.instance.call("sink-writer.open", move |live| {
            Box::pin(async move {
                let blob = |blob: &StateBlob| (blob.format, blob.payload.clone());
                let owned: Vec<_> = restored.iter().map(blob).collect();
                let blobs: Vec<_> =
                    owned.iter().map(|(format, payload)| BlobParam { format: *format, payload }).collect();
                live.guest.sink_writer().call_open(&mut live.store, &blobs).await
            })
        });
        called.await
    }

    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<(), ConnectorError> {
        const FUNCTION: &str = "sink-writer.on-schema";
        let (owned, handle) = (Arc::clone(schema), self.plans.next_handle());
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let parts = SchemaParts::new(&owned);
                live.guest.sink_writer().call_on_schema(&mut live.store, parts.wit(handle)).await
            })
        });
        let (columns, meta) = called.await?;
        let plan = TablePlan::new(handle, columns, meta, schema);
        let plan = plan.map_err(|how| self.instance.broke(FUNCTION, &how).with_table(schema.table.clone()))?;
        self.plans.put(schema, plan);
        Ok(())
    }

    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), ConnectorError> {
        let schema = batch.schema();
        let faults = &self.instance.faults;
        let handed = handed(batch, self.plans.of(schema, faults)?, faults)?;
        let given = Given::of(batch, handed.bytes());
        let called = self.instance.call_for_rows("sink-writer.write", handed.rows(), move |live| {
            Box::pin(async move {
                let (columns, meta) = handed.columns();
                let guest = live.guest.sink_writer();
                guest.call_write(&mut live.store, handed.wit(&columns, &meta)).await
            })
        });
        called.await.map_err(|error| given.named_in(error))?;
        if self.largest.as_ref().is_none_or(|largest| largest.bytes < given.bytes) {
            self.largest = Some(given);
        }
        Ok(())
    }

    async fn flush(&mut self, table: &TableId) -> Result<(), ConnectorError> {
        let owned = table.clone();
        let called = self.instance.call("sink-writer.flush", move |live| {
            Box::pin(async move { live.guest.sink_writer().call_flush(&mut live.store, convert::table(&owned)).await })
        });
        called.await.map_err(|error| self.told(error))
    }

    async fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>, ConnectorError> {
        const FUNCTION: &str = "sink-writer.prepare-commit";
        let cut = at.clone();
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let guest = live.guest.sink_writer();
                guest.call_prepare_commit(&mut live.store, convert::cut(&cut)).await
            })
        });
        let found = called.await.map_err(|error| self.told(error))?;
        self.largest = None;
        convert::committables(at, found).map_err(|how| self.instance.broke(FUNCTION, &how))
    }

    async fn save_state(&mut self) -> Result<StateBlob, ConnectorError> {
        const FUNCTION: &str = "sink-writer.save-state";
        let called =
            self.instance.call(FUNCTION, |live| Box::pin(live.guest.sink_writer().call_save_state(&mut live.store)));
        let found = called.await?;
        convert::blob(found).map_err(|how| self.instance.broke(FUNCTION, &how))
    }

    async fn close(&mut self, discard: bool) {
        let ended = self.instance.end(move |live| {
            Box::pin(async move { Ok(Ok(live.guest.sink_writer().call_close(&mut live.store, discard).await?)) })
        });
        ended.await;
    }
}
