//! Makes a prepared epoch durable and hands it to the committers.

use std::time::Duration;

use cdchost_checkpoint::{DurableEpoch, PreparedEpoch, SinkRecord, Stored};
use cdchost_connector::{ConnectorError, StopClass};

use super::content::{Gathered, InFlight};
use super::{Checkpointer, OpenEpoch};
use crate::failpoints;
use crate::failure::Failure;
use crate::handle::CheckpointRequest;
use crate::status::Reason;
use crate::tasks::CommitterMessage;

impl Checkpointer {
    /// Stores an epoch and begins its commit; the requests come back if nothing had changed and no record was needed.
    pub(super) async fn persist(&mut self, mut in_flight: InFlight) -> Result<Vec<CheckpointRequest>, Failure> {
        let requests = std::mem::take(&mut in_flight.requests);
        let deadline = self.deadline(&in_flight);
        let gathered = in_flight.gather(&self.sinks)?;
        let covers_end = gathered.content.is_end();
        if self.last.as_ref() == Some(&gathered.content) && gathered.sinks.iter().all(SinkRecord::is_empty) {
            self.state.end_covered |= covers_end;
            if self.state.open.is_empty() {
                let now = self.clock.now_micros();
                self.status.send_modify(|status| status.unchanged_micros = Some(now));
            }
            return Ok(requests);
        }
        let Gathered { cut, source, tables, sinks, content } = gathered;
        let (created_micros, config) = (self.clock.now_micros(), self.shown_config.clone());
        let began = self.clock.elapsed();
        let position = self.source.describe(&cut.offset);
        failpoints::hit(failpoints::BEFORE_PERSIST);
        let durable =
            self.store(PreparedEpoch { cut, source, tables, sinks, created_micros, config }, deadline).await?;
        let epoch = durable.epoch();
        self.metrics.store_seconds.observe(self.clock.elapsed().saturating_sub(began).as_secs_f64());
        self.metrics.epochs_stored.inc();
        self.metrics.epoch_durable.set(i64::try_from(epoch.0).unwrap_or(i64::MAX));
        tracing::info!(event = "record-stored", epoch = epoch.0, slot = durable.slot().0, position);
        failpoints::hit(failpoints::AFTER_PERSIST);
        self.status.send_modify(|status| status.durable = Some(epoch));
        self.last = Some(content);
        self.state.end_covered |= covers_end;
        let missing = (0..self.sinks.len()).collect();
        self.state.open.push_back(OpenEpoch { epoch, since: self.clock.elapsed(), missing, requests });
        for (sink, permit) in self.sinks.iter().zip(durable.into_permits()) {
            sink.committer.send(CommitterMessage::Commit(permit)).await.map_err(|_| Failure::Closed)?;
        }
        Ok(Vec::new())
    }

    /// Stores with the same content until it is durable, the time is over, or another run has taken over.
    async fn store(&mut self, mut epoch: PreparedEpoch, deadline: Duration) -> Result<DurableEpoch, Failure> {
        let number = epoch.cut.epoch;
        let mut backoff = self.caller.call("record");
        let slow = |why: String| {
            let message = format!("checkpoint store did not take the record of epoch {number} in time{why}");
            let error = ConnectorError::restart(StopClass::Storage, "checkpoint-timeout", message);
            Failure::from(error.with_instruction("make the checkpoint store reachable, writable and large enough"))
        };
        loop {
            let left = deadline.saturating_sub(self.clock.elapsed());
            let clock = std::sync::Arc::clone(&self.clock);
            let stored = tokio::select! {
                biased;
                stored = self.chain.store(epoch) => stored?,
                () = clock.sleep(left) => return Err(slow(backoff.why())),
            };
            let (again, reason) = match stored {
                Stored::Durable(durable) => return Ok(durable),
                Stored::Fenced { by } => return Err(Failure::fenced(by)),
                Stored::Again(epoch, error) => {
                    let reason = Reason::of_store(&error);
                    tracing::warn!(event = "store-failed", epoch = number.0, %reason, "the record is stored again");
                    (*epoch, reason)
                }
            };
            epoch = again;
            if !backoff.pause(Duration::ZERO, reason).await {
                return Err(slow(backoff.why()));
            }
        }
    }
}
