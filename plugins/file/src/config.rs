//! What stands in the pipeline file.

use cdchost_sdk::json_lines::Metadata;
use cdchost_sdk::options::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the file sink.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where to write: the name of a granted store, and a folder in it (`STORE` or `STORE/FOLDER`).
    #[schemars(extend("format" = "store-path"))]
    pub path: String,
    /// Metadata that each line carries beside op, table and row.
    #[serde(default)]
    pub metadata: Vec<Metadata>,
    /// Whether updates also give a line with the row as it was.
    #[serde(default)]
    pub before_images: bool,
    /// Size at which a file is full and the next is begun, at most `128MiB`: a file is held in memory while it is
    /// written.
    #[serde(default = "part_size")]
    pub part_size: ByteSize,
}

/// A file and its copy have to fit into a component's memory.
pub(crate) const PART_SIZE_MAX: ByteSize = ByteSize(128 << 20);

fn part_size() -> ByteSize {
    ByteSize(16 << 20)
}
