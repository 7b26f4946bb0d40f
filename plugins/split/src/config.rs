//! What stands in the pipeline file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the split route.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The column whose value chooses: a text or a whole number.
    pub column: String,
    /// The target, `database.table`, in which `{value}` stands for the column's value.
    #[schemars(extend("format" = "target"))]
    pub to: String,
    /// The target of rows whose value is NULL or has anything but letters, digits, `_` and `-`.
    #[schemars(extend("format" = "target"))]
    pub others: String,
    /// Values that have a target of their own; rows with any other go to `others`. Empty: every value has one.
    #[serde(default)]
    pub values: Vec<String>,
}
