//! From a pipeline file to a pipeline that can be started: looks at everything first, then takes hold of it.

mod check;
mod examine;
mod places;
mod plugins;
mod source;
mod tables;

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{Finding, Loaded, PipelineConfig, SinkConfig};
use cdchost_connector::{Capabilities, Clock, Sink, SourceConnector};
use cdchost_pipeline::{PathSetup, PipelineMetrics, PipelineSetup, SinkSetup};
use cdchost_plugin::{Plugin, PluginSpec};
use cdchost_storage::{StorageError, Store};

pub(crate) use self::check::check;
pub(crate) use self::examine::{Examined, examine};
use crate::findings::{Blame, Findings};
use crate::server::{SinkIdentity, hex};
use crate::state::StateFolder;

/// A pipeline that was looked at and found good. Nothing was written yet.
#[derive(Debug)]
pub(crate) struct Checked {
    loaded: Loaded,
    state: PathBuf,
    source: Arc<dyn SourceConnector>,
    clock: Arc<dyn Clock>,
    path: CheckedPath,
    sinks: Vec<CheckedSink>,
    /// What the user should know.
    pub(crate) warnings: Findings,
}

/// A sink whose plugin is loaded and whose options are good.
#[derive(Debug)]
struct CheckedSink {
    plugin: Plugin,
    capabilities: Capabilities,
    /// The same sink over empty stores in memory, to be asked what it takes.
    stand_in: Arc<dyn Sink>,
}

/// Transforms and routes whose plugins are loaded and whose options are good.
#[derive(Debug, Default)]
struct CheckedPath {
    setup: PathSetup,
    /// A line each, for people.
    steps: Vec<String>,
}

/// What a sink promises, for the user.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) sink: SinkIdentity,
    pub(crate) version: String,
    pub(crate) lines: Vec<(String, String)>,
}

/// A pipeline whose state folder this process holds.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) setup: PipelineSetup,
    pub(crate) listener: UnixListener,
    pub(crate) state: StateFolder,
    pub(crate) sinks: Vec<SinkIdentity>,
}

impl Checked {
    /// The write contract of each sink, in the order of the file.
    pub(crate) fn contracts(&self) -> Vec<Contract> {
        contracts(&self.loaded.config, &self.sinks)
    }

    /// Transforms and routes, a line each.
    pub(crate) fn steps(&self) -> &[String] {
        &self.path.steps
    }

    /// Takes hold of the state folder and opens the stores.
    pub(crate) async fn take_hold(self) -> Result<Ready, Findings> {
        let state = StateFolder::claim(&self.state).map_err(environment)?;
        let listener = state.listen().map_err(environment)?;
        let stores = self.stores().await?;
        let store = self.checkpoint_store(&stores).await?;
        let sinks = identities(&self.loaded.config, &self.sinks);
        let config = self.loaded.config;
        let mut setups = Vec::new();
        for ((checked, sink), identity) in self.sinks.iter().zip(&config.sinks).zip(&sinks) {
            let built = checked.plugin.sink(spec(&config.name, sink, stores.clone()));
            let built = built.map_err(|error| {
                let instruction = error.instruction();
                Findings::of(Blame::Config, error.findings().into_iter().map(|f| Finding::error(f, instruction)))
            })?;
            setups.push(SinkSetup { sink: built, parallelism: identity.parallelism });
        }
        let setup = PipelineSetup {
            metrics: PipelineMetrics::unregistered(&config.name),
            name: config.name,
            config: self.loaded.shown.to_string(),
            checkpoint: config.checkpoint,
            restart: config.restart,
            source: self.source,
            path: self.path.setup,
            sinks: setups,
            store,
            clock: self.clock,
        };
        Ok(Ready { setup, listener, state, sinks })
    }

    /// The roots that any sink is granted.
    async fn stores(&self) -> Result<BTreeMap<String, Store>, Findings> {
        let config = &self.loaded.config;
        let mut stores = BTreeMap::new();
        for (name, storage) in &config.storage {
            let mut options = storage.options.clone();
            options.extend(storage.secrets.iter().map(|(key, secret)| (key.clone(), secret.reveal().to_owned())));
            let (what, place) = (format!("storage {name}"), format!("storage.{name}.url"));
            let opened = Store::open(&storage.url, &options).await;
            let store = opened.map_err(|error| self.storage(&error, (&what, &place)))?;
            stores.insert(name.clone(), store);
        }
        Ok(stores)
    }

    async fn checkpoint_store(&self, stores: &BTreeMap<String, Store>) -> Result<CheckpointStore, Findings> {
        let url = &self.loaded.config.checkpoint.store;
        let inside = url.strip_prefix("storage:").and_then(|rest| rest.split_once('/'));
        let opened = match inside.and_then(|(name, folder)| Some((stores.get(name)?, folder))) {
            Some((store, folder)) => store.below(folder).map(Store::private),
            None => Store::open_private(url, &BTreeMap::new()).await,
        };
        opened.map(CheckpointStore::new).map_err(|error| self.storage(&error, ("checkpoint store", "checkpoint.store")))
    }

    fn storage(&self, error: &StorageError, (what, place): (&str, &str)) -> Findings {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        environment(
            Finding::error(format!("{what}: {error}{cause}"), error.instruction()).at(self.loaded.places.find(place)),
        )
    }
}

/// The write contract of each sink, in the order of the file.
fn contracts(config: &PipelineConfig, sinks: &[CheckedSink]) -> Vec<Contract> {
    let contract = |(sink, checked): (SinkIdentity, &CheckedSink)| Contract {
        sink,
        version: checked.plugin.manifest().version.clone(),
        lines: checked.capabilities.contract.clone(),
    };
    identities(config, sinks).into_iter().zip(sinks).map(contract).collect()
}

fn identities(config: &PipelineConfig, sinks: &[CheckedSink]) -> Vec<SinkIdentity> {
    let identity = |(sink, checked): (&SinkConfig, &CheckedSink)| SinkIdentity {
        id: sink.id.clone(),
        plugin: sink.plugin.clone(),
        digest: checked.plugin.digest(),
        parallelism: sink.parallelism.unwrap_or(config.parallelism),
    };
    config.sinks.iter().zip(sinks).map(identity).collect()
}

impl Contract {
    /// What the sink promises, as one JSON object.
    pub(crate) fn lines_as_json(&self) -> serde_json::Map<String, serde_json::Value> {
        self.lines.iter().map(|(key, text)| (key.clone(), text.clone().into())).collect()
    }

    /// For people: what the sink is, then what it promises.
    pub(crate) fn text_lines(&self) -> impl Iterator<Item = String> {
        let Self { sink, version, lines } = self;
        let digest = hex(&sink.digest);
        let short = digest.get(..12).unwrap_or_default();
        let head = format!("sink {}: {} {version} ({short}), parallelism {}", sink.id, sink.plugin, sink.parallelism);
        std::iter::once(head).chain(lines.iter().map(|(key, text)| format!("  {key}: {text}")))
    }
}

fn environment(finding: Finding) -> Findings {
    Findings::of(Blame::Environment, [finding])
}

fn spec(pipeline: &str, sink: &SinkConfig, stores: BTreeMap<String, Store>) -> PluginSpec {
    PluginSpec {
        pipeline: pipeline.to_owned(),
        id: sink.id.clone(),
        options: sink.options.clone(),
        secrets: sink.secrets.clone(),
        allow: sink.allow.clone(),
        limits: sink.limits.clone(),
        stores,
    }
}
