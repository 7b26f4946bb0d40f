//! Runs one writer of a sink: rows, barriers, prepared work.

use std::sync::Arc;

use cdchost_checkpoint::PlantedFault;
use cdchost_connector::{ConnectorError, SinkWriter, StopClass};
use cdchost_model::{ChangeBatch, Cut, TableSchema};
use tokio::sync::{mpsc, watch};

use super::{Report, WriterMessage};
use crate::channel::Receiver;
use crate::failpoints;
use crate::failure::Failure;
use crate::metrics::SinkMetrics;
use crate::refused::whole;
use crate::retry::Caller;

/// One writer and its surroundings.
pub(crate) struct WriterTask {
    pub(crate) writer: Box<dyn SinkWriter>,
    pub(crate) messages: Receiver<WriterMessage>,
    pub(crate) reports: mpsc::Sender<Report>,
    /// True when the run has drained: what is queued is not wanted any more.
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) caller: Caller,
    pub(crate) metrics: SinkMetrics,
    pub(crate) sink_id: String,
    pub(crate) sink: usize,
    pub(crate) subtask: usize,
}

impl WriterTask {
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let is_barrier = |message: &_| matches!(message, WriterMessage::Barrier(_));
        loop {
            let held = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ending| *ending) => break,
                held = self.messages.recv_with(PlantedFault::BarrierOvertakes, is_barrier) => held.ok_or(Failure::Closed)?,
            };
            match held.message {
                WriterMessage::Schema(schema) => self.on_schema(&schema).await?,
                WriterMessage::Batch(batch) => self.write(&batch).await?,
                WriterMessage::Barrier(cut) => self.prepare(&cut).await?,
            }
            drop(held.credit);
        }
        self.writer.close(true).await;
        Ok(())
    }

    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<(), Failure> {
        let mut backoff = self.caller.call("on-schema");
        while let Err(error) = self.writer.on_schema(schema).await {
            backoff.wait(error).await?;
        }
        Ok(())
    }

    async fn write(&mut self, batch: &ChangeBatch) -> Result<(), Failure> {
        let clock = Arc::clone(&self.caller.clock);
        let began = clock.elapsed();
        let mut backoff = self.caller.call("write");
        while let Err(error) = self.writer.write(batch).await {
            let sources = || self.caller.status.borrow().sources_of(&batch.schema().table);
            backoff.wait(whole(error, batch, sources)).await?;
        }
        self.metrics.rows.inc_by(batch.rows() as u64);
        self.metrics.batches.inc();
        self.metrics.busy_seconds.inc_by(clock.elapsed().saturating_sub(began).as_secs_f64());
        Ok(())
    }

    async fn prepare(&mut self, cut: &Cut) -> Result<(), Failure> {
        let mut backoff = self.caller.call("prepare-commit");
        let committables = loop {
            match self.writer.prepare_commit(cut).await {
                Ok(committables) => break committables,
                Err(error) => backoff.wait(error).await?,
            }
        };
        drop(backoff);
        if let Some(odd) = committables.iter().find(|c| c.epoch != cut.epoch || c.generation != cut.generation) {
            let message = format!(
                "sink {} prepared for epoch {} of generation {}, asked was epoch {} of generation {}",
                self.sink_id, odd.epoch, odd.generation, cut.epoch, cut.generation
            );
            let error = ConnectorError::stop(StopClass::Plugin, "sink-committable", message);
            return Err(error.with_instruction("report it to the plugin's author").into());
        }
        let mut backoff = self.caller.call("save-state");
        let state = loop {
            match self.writer.save_state().await {
                Ok(state) => break state,
                Err(error) => backoff.wait(error).await?,
            }
        };
        failpoints::hit_at(failpoints::PREPARED, &self.sink_id, u32::try_from(self.subtask).ok());
        let (sink, subtask, epoch) = (self.sink, self.subtask, cut.epoch);
        drop(backoff);
        let report = Report::Prepared { sink, subtask, epoch, committables, state };
        self.reports.send(report).await.map_err(|_| Failure::Closed)
    }
}
