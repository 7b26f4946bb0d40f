//! Counts what comes.

use std::sync::Arc;

use cdchost_sdk::runtime::{self, Level};
use cdchost_sdk::{Batch, Committable, Cut, ReadPlan, Result, Schema, Writer};

use crate::Options;

/// One subtask.
#[derive(Debug)]
pub struct BlackholeWriter {
    /// Since the last prepare.
    epoch: Tally,
    /// Since the last line of the log.
    logged: Tally,
    logged_at_micros: u64,
    log_interval_micros: u64,
}

#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, batch: &Batch) {
        self.rows += batch.rows() as u64;
        self.bytes += batch.bytes() as u64;
    }
}

impl BlackholeWriter {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            epoch: Tally::default(),
            logged: Tally::default(),
            logged_at_micros: runtime::now_micros(),
            log_interval_micros: u64::try_from(options.log_interval.0.as_micros()).unwrap_or(u64::MAX),
        }
    }

    fn log_rate(&mut self) {
        let elapsed = runtime::now_micros().saturating_sub(self.logged_at_micros);
        if self.log_interval_micros == 0 || elapsed < self.log_interval_micros {
            return;
        }
        let a_second = |count: u64| u128::from(count) * 1_000_000 / u128::from(elapsed);
        let rate = a_second(self.logged.rows).to_string();
        let bytes = a_second(self.logged.bytes).to_string();
        runtime::log(Level::Info, "rows swallowed", &[("rows-per-second", &rate), ("bytes-per-second", &bytes)]);
        self.logged = Tally::default();
        self.logged_at_micros += elapsed;
    }
}

impl Writer for BlackholeWriter {
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan> {
        Ok(ReadPlan::all(schema))
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.epoch.add(&batch);
        self.logged.add(&batch);
        runtime::counter_add("rows_total", batch.rows() as u64);
        runtime::counter_add("bytes_total", batch.bytes() as u64);
        self.log_rate();
        Ok(())
    }

    fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>> {
        let Tally { rows, bytes } = std::mem::take(&mut self.epoch);
        if rows == 0 {
            return Ok(Vec::new());
        }
        let key = format!("subtask-{}", runtime::context().subtask);
        let (epoch, generation) = (at.epoch, at.generation);
        Ok(vec![Committable { epoch, generation, key, format: 1, payload: Vec::new(), rows, bytes }])
    }
}
