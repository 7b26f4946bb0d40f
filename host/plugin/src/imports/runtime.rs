//! Import `runtime`: who the guest is, its options, log, metrics, time, secrets.

use tracing::Level;

use super::GuestState;
use crate::bindings::v0_1::cdchost::plugin::runtime::{Context, Host, Level as WitLevel};

impl Host for GuestState {
    fn get_context(&mut self) -> wasmtime::Result<Context> {
        Ok(Context {
            pipeline: self.grant.pipeline.clone(),
            operator: self.grant.operator.clone(),
            subtask: self.place.subtask,
            parallelism: self.place.parallelism,
            generation: self.place.generation,
        })
    }

    fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.grant.config.clone())
    }

    fn log(&mut self, level: WitLevel, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let level = match level {
            WitLevel::Trace => Level::TRACE,
            WitLevel::Debug => Level::DEBUG,
            WitLevel::Info => Level::INFO,
            WitLevel::Warn => Level::WARN,
            WitLevel::Error => Level::ERROR,
        };
        self.log.write(level, &message, &fields);
        Ok(())
    }

    fn counter_add(&mut self, name: String, by: u64) -> wasmtime::Result<()> {
        self.metrics.counter_add(&name, by);
        Ok(())
    }

    fn gauge_set(&mut self, name: String, value: f64) -> wasmtime::Result<()> {
        self.metrics.gauge_set(&name, value);
        Ok(())
    }

    fn histogram_record(&mut self, name: String, value: f64) -> wasmtime::Result<()> {
        self.metrics.histogram_record(&name, value);
        Ok(())
    }

    fn now_micros(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.clock.now_micros()).unwrap_or_default())
    }

    fn secret(&mut self, name: String) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.grant.secrets.get(&name).map(|secret| secret.reveal().as_bytes().to_vec()))
    }
}
