//! `[[sink]]`.

use std::collections::BTreeMap;

use crate::{Grants, Limits, Secret};

/// One sink: the host's keys, and the plugin's own options.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkConfig {
    /// Its name in the pipeline; enters state and target names (default: the plugin's name).
    pub id: String,
    /// The component's name in the plugin folder.
    pub plugin: String,
    /// SHA-256 that the component must have.
    pub sha256: Option<String>,
    /// Number of writers (default: the pipeline's).
    pub parallelism: Option<u32>,
    /// What the plugin may touch.
    pub allow: Grants,
    /// What the plugin may use.
    pub limits: Limits,
    /// All other keys, checked against the plugin's JSON Schema; secrets left out.
    pub options: serde_json::Map<String, serde_json::Value>,
    /// Values of options that came from `${…}` references or that the plugin's manifest calls secret.
    pub secrets: BTreeMap<String, Secret>,
}
