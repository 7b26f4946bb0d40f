//! What stands in the pipeline file.

use std::time::Duration;

use cdchost_sdk::options::Interval;
use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the blackhole sink.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Time between two lines of the log that say how many rows a second came; `0s` = no such lines.
    pub log_interval: Interval,
    /// Whether rows as they were before updates are handed over too.
    pub before_images: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { log_interval: Interval(Duration::from_secs(10)), before_images: false }
    }
}
