//! What stands in the pipeline file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the blackhole sink.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Seconds between two lines of the log that say how many rows a second came; 0 = no such lines.
    pub log_interval_seconds: u32,
    /// Whether rows as they were before updates are handed over too.
    pub before_images: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { log_interval_seconds: 10, before_images: false }
    }
}
