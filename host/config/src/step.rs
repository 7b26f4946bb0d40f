//! `[[transform]]` and `[[route]]`.

use std::collections::BTreeMap;

use crate::{Limits, Secret};

/// One transform or route: the host's keys, and the plugin's own options.
#[derive(Clone, Debug, PartialEq)]
pub struct StepConfig {
    /// Its name in the pipeline (default: the plugin's name, with a number behind it where that is taken).
    pub id: String,
    /// The component's name in the plugin folder.
    pub plugin: String,
    /// SHA-256 that the component must have.
    pub sha256: Option<String>,
    /// The tables that it is for: patterns as in `[source]`.
    pub tables: Vec<String>,
    /// Lanes that it asks for (default: one).
    pub parallelism: Option<u32>,
    /// What the plugin may use.
    pub limits: Limits,
    /// All other keys, checked against the plugin's JSON Schema; secrets left out.
    pub options: serde_json::Map<String, serde_json::Value>,
    /// Values of options that came from `${…}` references or that the plugin's manifest calls secret.
    pub secrets: BTreeMap<String, Secret>,
}
