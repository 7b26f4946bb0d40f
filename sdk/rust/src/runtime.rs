//! What the host tells and takes at any time: who one is, options, log, metrics, clock, secrets.

use serde::de::DeserializeOwned;

use crate::{PluginError, Result, imports};

/// Who this instance is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The pipeline's stable name; enters the names of transactions and files.
    pub pipeline: String,
    /// This plugin's id in the pipeline.
    pub operator: String,
    /// Which writer this is, from 0.
    pub subtask: u32,
    /// How many writers there are.
    pub parallelism: u32,
    /// Grows with each start of the pipeline.
    pub generation: u64,
}

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Each step.
    Trace,
    /// For who looks for a fault.
    Debug,
    /// What happens.
    Info,
    /// What should not happen and was dealt with.
    Warn,
    /// What went wrong.
    Error,
}

/// Who this instance is.
pub fn context() -> Context {
    imports::context()
}

/// The plugin's options as the pipeline file has them. Sinks get theirs handed in.
pub fn config<T: DeserializeOwned>() -> Result<T> {
    serde_json::from_str(&imports::config())
        .map_err(|error| PluginError::config("options", format!("options: {error}")))
}

/// Writes a line of the host's log. Neither row values nor secrets belong in it.
pub fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    imports::log(level, message, fields);
}

/// Adds to a counter, named as `<noun>_<unit>_total`; the host adds pipeline and plugin.
pub fn counter_add(name: &str, by: u64) {
    imports::counter_add(name, by);
}

/// Sets a gauge, named as `<noun>_<unit>`.
pub fn gauge_set(name: &str, value: f64) {
    imports::gauge_set(name, value);
}

/// Records one value of a distribution, named as `<noun>_<unit>`.
pub fn histogram_record(name: &str, value: f64) {
    imports::histogram_record(name, value);
}

/// The host's clock, in microseconds since the epoch. Fixed in the harness.
pub fn now_micros() -> u64 {
    imports::now_micros()
}

/// A secret that the pipeline file grants to this plugin, by the option's name.
pub fn secret(name: &str) -> Option<Vec<u8>> {
    imports::secret(name)
}
