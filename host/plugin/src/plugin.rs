//! A plugin that was loaded, and the sinks, transforms and routes made of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cdchost_config::{ByteSize, Grants, Limits, Secret};
use cdchost_connector::{ConnectorError, RouteConnector, Sink, TransformConnector};
use cdchost_storage::Store;
use serde_json::{Map, Value};

use crate::engine::Shared;
use crate::exports::{Instance, PluginRouteConnector, PluginSink, PluginTransformConnector, Site, Template};
use crate::imports::{Grant, Place};
use crate::loader::{Loaded, PluginKind};
use crate::{Manifest, OptionFinding, PluginError};

/// A component, checked and compiled. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    shared: Arc<Shared>,
    kind: PluginKind,
    template: Template,
    path: Arc<Path>,
    digest: [u8; 32],
    manifest: Arc<Manifest>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("path", &self.path)
            .field("version", &self.manifest.version)
            .finish_non_exhaustive()
    }
}

/// What one use of a plugin gets: its identity, its options, its rights, its bounds.
#[derive(Clone, Debug)]
pub struct PluginSpec {
    /// The pipeline's name.
    pub pipeline: String,
    /// Its id in the pipeline.
    pub id: String,
    /// The plugin's own keys of its section.
    pub options: Map<String, Value>,
    /// Values of options that came from references.
    pub secrets: BTreeMap<String, Secret>,
    /// What it may touch.
    pub allow: Grants,
    /// What it may use.
    pub limits: Limits,
    /// The roots that there are, opened; granted are those that `allow.store` names.
    pub stores: BTreeMap<String, Store>,
}

impl Plugin {
    pub(crate) async fn new(shared: Arc<Shared>, loaded: Loaded) -> Result<Self, PluginError> {
        let Loaded { path, digest, kind, component, manifest } = loaded;
        let refuse = |finding| PluginError::Contract { path: path.clone(), findings: vec![finding] };
        let template = shared.linker.instantiate_pre(&component).and_then(|pre| Template::new(pre, kind));
        let template = template.map_err(|error| refuse(format!("{error:#}")))?;
        // A first instance, with no grants: functions of another shape and faults at the start show now.
        let mut probe = probe(&shared, kind, &template).await.map_err(|error| refuse(error.message))?;
        let manifest = match manifest {
            Some(manifest) => manifest,
            None => {
                describe(&mut probe).await.map_err(|reason| PluginError::Manifest { path: path.clone(), reason })?
            }
        };
        Ok(Self { shared, kind, template, path: path.into(), digest, manifest: Arc::new(manifest) })
    }

    /// What it is.
    pub fn kind(&self) -> PluginKind {
        self.kind
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// SHA-256 of the file as it was read.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// A sink of this plugin, after all that can be checked without running it with grants: options against the
    /// schema, grants against what there is. Touches no target.
    pub fn sink(&self, spec: PluginSpec) -> Result<Arc<dyn Sink>, PluginError> {
        let site = self.site(PluginKind::Sink, spec)?;
        Ok(Arc::new(PluginSink::new(site, self.digest)))
    }

    /// A transform of this plugin, after the same checks.
    pub fn transform(&self, spec: PluginSpec) -> Result<Arc<dyn TransformConnector>, PluginError> {
        Ok(Arc::new(PluginTransformConnector::new(self.site(PluginKind::Transform, spec)?)))
    }

    /// A route of this plugin, after the same checks.
    pub fn route(&self, spec: PluginSpec) -> Result<Arc<dyn RouteConnector>, PluginError> {
        Ok(Arc::new(PluginRouteConnector::new(self.site(PluginKind::Route, spec)?)))
    }

    fn site(&self, kind: PluginKind, spec: PluginSpec) -> Result<Arc<Site>, PluginError> {
        if self.kind != kind {
            let (path, kind, wanted) = (self.path.to_path_buf(), self.kind.name(), kind.name());
            return Err(PluginError::Kind { path, kind, wanted });
        }
        let (options, secrets) = self.sort_secrets(&spec);
        let mut findings = self.manifest.check_options(&filled(&options, &secrets));
        findings.extend(check_grants(&spec, &self.manifest));
        if !findings.is_empty() {
            return Err(PluginError::Options { of: format!("{} {}", kind.name(), spec.id), findings });
        }
        let grant = Grant {
            kind,
            config: Value::Object(options).to_string(),
            secrets,
            stores: spec.stores.into_iter().filter(|(name, _)| spec.allow.store.contains(name)).collect(),
            stdout: spec.allow.stdout,
            limits: spec.limits,
            pipeline: spec.pipeline,
            operator: spec.id,
        };
        Ok(Arc::new(Site::new(Arc::clone(&self.shared), self.template.clone(), grant, &self.manifest)))
    }

    /// Which options are secret is the manifest's to say: the others are told in the open, wherever they came from.
    fn sort_secrets(&self, spec: &PluginSpec) -> (Map<String, Value>, BTreeMap<String, Secret>) {
        let mut options = spec.options.clone();
        let mut secrets = spec.secrets.clone();
        for name in &self.manifest.secrets {
            if let Some(Value::String(text)) = options.get(name) {
                secrets.insert(name.clone(), Secret::new(text.clone()));
                options.remove(name);
            }
        }
        let open: Vec<_> = secrets.keys().filter(|name| !self.manifest.secrets.contains(name)).cloned().collect();
        for name in open {
            if let Some(secret) = secrets.remove(&name) {
                insert(&mut options, &name, secret.reveal());
            }
        }
        (options, secrets)
    }
}

/// The options as the schema knows them: with the secrets in their places.
fn filled(options: &Map<String, Value>, secrets: &BTreeMap<String, Secret>) -> Map<String, Value> {
    let mut filled = options.clone();
    for (name, secret) in secrets {
        insert(&mut filled, name, secret.reveal());
    }
    filled
}

/// Puts a text at its dotted path; where something else than a table is in the way, the schema will say so.
fn insert(options: &mut Map<String, Value>, path: &str, text: &str) {
    match path.split_once('.') {
        Some((table, rest)) => {
            let inner = options.entry(table).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, text);
            }
        }
        None => {
            options.insert(path.into(), Value::String(text.into()));
        }
    }
}

fn check_grants(spec: &PluginSpec, manifest: &Manifest) -> Vec<OptionFinding> {
    let mut findings = Vec::new();
    for (key, patterns) in [("allow.tcp", &spec.allow.tcp), ("allow.http", &spec.allow.http)] {
        if !patterns.is_empty() {
            findings.push(OptionFinding::new(key, format!("{key}: plugins have no network access yet")));
        }
    }
    for name in spec.allow.store.iter().filter(|name| !spec.stores.contains_key(*name)) {
        findings.push(OptionFinding::new("allow.store", format!("allow.store: there is no [storage.{name}]")));
    }
    findings.extend(manifest.store_options().filter_map(|option| ungranted(option, spec)));
    // Rows printed without the grant would go to the log, where no row may be.
    if manifest.wants.iter().any(|want| want == "stdout") && !spec.allow.stdout {
        let message = "allow.stdout: the plugin prints rows on standard output; grant it with allow.stdout = true";
        findings.push(OptionFinding::new("allow.stdout", message));
    }
    findings
}

/// A store that an option names and that is not granted, with the line that grants it; or that there is none.
fn ungranted(option: &str, spec: &PluginSpec) -> Option<OptionFinding> {
    let store_of = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
    let granted = |store: &String| spec.allow.store.contains(store);
    if let Some(secret) = spec.secrets.get(option) {
        let is_granted = granted(&store_of(secret.reveal()));
        let message = format!("option {option} names a store that is not granted: name it in allow.store");
        return (!is_granted).then(|| OptionFinding::new("allow.store", message));
    }
    let store =
        Some(store_of(spec.options.get(option)?.as_str()?)).filter(|store| !store.is_empty() && !granted(store))?;
    let message = if spec.stores.contains_key(&store) {
        let all: Vec<_> = spec.allow.store.iter().chain([&store]).map(|name| format!("{name:?}")).collect();
        let all = all.join(", ");
        format!("option {option} names the store {store:?}, which is not granted: write `allow.store = [{all}]`")
    } else {
        let advice = match cdchost_config::nearest(&store, spec.stores.keys().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("add [storage.{store}] with its `url`, and grant it with allow.store"),
        };
        format!("option {option} names the store {store:?}, which is not there: {advice}")
    };
    Some(OptionFinding::new("allow.store", message))
}

/// An instance without name, options and grants, with little of everything.
async fn probe(shared: &Arc<Shared>, kind: PluginKind, template: &Template) -> Result<Instance, ConnectorError> {
    let grant = Grant {
        kind,
        pipeline: String::new(),
        operator: "being loaded".into(),
        config: "{}".into(),
        secrets: BTreeMap::new(),
        stores: BTreeMap::new(),
        stdout: false,
        limits: probe_limits(shared.probe_timeout),
    };
    let site = Site::nameless(Arc::clone(shared), template.clone(), grant);
    Instance::start(Arc::new(site), Place { subtask: 0, parallelism: 1, generation: 0 }).await
}

fn probe_limits(call_timeout: Duration) -> Limits {
    Limits {
        memory: ByteSize(256 << 20),
        table_elements: 100_000,
        call_timeout,
        output: ByteSize(4 << 20),
        handles: 100,
        log_lines_per_second: 10,
    }
}

/// Asks a component that has no manifest section.
async fn describe(probe: &mut Instance) -> Result<Manifest, String> {
    let told = probe.describe().await.map_err(|e| e.message)?;
    let manifest = Manifest {
        name: told.name,
        version: told.version,
        description: told.description,
        config_schema: Value::String(told.config_schema),
        secrets: told.secrets,
        wants: told.wants,
        state_version: told.state_version,
        reads_state_from: told.reads_state_from,
    };
    manifest.checked()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_store_that_an_option_names_must_be_granted() {
        let spec = |options: Value, secrets: &[(&str, &str)], granted: &[&str]| PluginSpec {
            pipeline: String::new(),
            id: String::new(),
            options: options.as_object().unwrap().clone(),
            secrets: secrets.iter().map(|(key, text)| ((*key).to_owned(), Secret::new(*text))).collect(),
            allow: Grants { store: granted.iter().map(|&name| name.to_owned()).collect(), ..Grants::default() },
            limits: probe_limits(Duration::ZERO),
            stores: ["lake", "attic"].map(|name| (name.to_owned(), Store::memory())).into(),
        };
        let said = |spec: &PluginSpec| ungranted("path", spec).map(|finding| finding.message);
        for (options, granted) in
            [(json!({"path": "lake/x"}), "lake"), (json!({"path": "lake"}), "lake"), (json!({}), "")]
        {
            assert_eq!(said(&spec(options, &[], &[granted])), None);
        }
        assert_eq!(
            said(&spec(json!({"path": "lake/x"}), &[], &["attic"])).unwrap(),
            "option path names the store \"lake\", which is not granted: write `allow.store = [\"attic\", \"lake\"]`"
        );
        for (named, advice) in [("lak/x", "did you mean \"lake\"?"), ("wh/x", "add [storage.wh] with its `url`")] {
            let message = said(&spec(json!({"path": named}), &[], &["lake"])).unwrap();
            assert!(message.contains("which is not there: ") && message.contains(advice), "{message}");
        }
        // What came from a reference is not shown.
        assert_eq!(said(&spec(json!({}), &[("path", "lake/x")], &["lake"])), None);
        let message = said(&spec(json!({}), &[("path", "canary/x")], &["lake"])).unwrap();
        assert!(message.contains("names a store that is not granted") && !message.contains("canary"), "{message}");
    }

    #[test]
    fn a_secret_goes_back_to_its_place() {
        let Value::Object(options) = json!({"a": 1, "deep": {"b": 2}, "flat": 3}) else { unreachable!() };
        let secrets = ["deep.key", "new.table.key", "top", "flat.key"].map(|name| (name.to_owned(), Secret::new("s")));
        let expect = json!({
            "a": 1, "deep": {"b": 2, "key": "s"}, "new": {"table": {"key": "s"}}, "top": "s", "flat": 3
        });
        assert_eq!(Value::Object(filled(&options, &secrets.into())), expect);
    }
}
