//! What stands in the pipeline file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the regex route.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The section's own `table` or `tables`, handed on by the host.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The target, `database.table`. `$1` stands for what the first group of the pattern matched, `$name` for a named
    /// group, `$0` for the whole table name of the source with its database, `$$` for `$`. Where a letter, digit or `_`
    /// follows: `$${1}` and `$${name}`, since a plain `${` is a reference of the pipeline file.
    pub to: String,
}
