//! What stands in the pipeline file.

use cdchost_sdk::json_lines::Metadata;
use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the print sink.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Metadata that each line carries beside op, table and row.
    pub metadata: Vec<Metadata>,
    /// Whether updates also give a line with the row as it was.
    pub before_images: bool,
}
