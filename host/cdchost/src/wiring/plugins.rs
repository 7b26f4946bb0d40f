//! Loads the plugins that a pipeline file names, and asks each what it is; none is granted anything yet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cdchost_config::{Finding, Grants, Guarantee, Loaded, PipelineConfig, SinkConfig, StepConfig, TablePatterns};
use cdchost_connector::{
    Capabilities, Clock, Committer, ConnectorError, Delivery, SchemaChangeRequest, Sink, SinkWriter, StopClass,
};
use cdchost_model::{Cut, Epoch, Generation, Lineage, SchemaChange, SourceOffset, TableId, TableSchema};
use cdchost_pipeline::{NamedColumn, PathSetup, PlannedTable, RouteSetup, TransformSetup};
use cdchost_plugin::{EngineOptions, Plugin, PluginEngine, PluginError, PluginSpec};
use cdchost_storage::Store;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::places::shared;
use super::tables::{targets, unmet};
use super::{CheckedPath, CheckedSink, spec};
use crate::findings::{Blame, Findings, of_port};
use crate::server::hex;

/// The plugins of one pipeline file.
pub(super) struct Plugins<'a> {
    engine: PluginEngine,
    folder: &'a Path,
    loaded: &'a Loaded,
}

/// What a section between source and sinks is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    Transform,
    Route,
}

impl StepKind {
    fn name(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::Route => "route",
        }
    }
}

/// Everything of a step that decides what becomes of rows, but for secrets.
fn described(kind: StepKind, step: &StepConfig, plugin: &Plugin) -> Vec<u8> {
    let described = json!([kind.name(), plugin.digest(), step.tables, step.options]);
    described.to_string().into_bytes()
}

/// A step in a line, for people.
fn shown(kind: StepKind, step: &StepConfig, plugin: &Plugin) -> String {
    let digest = hex(&plugin.digest());
    let short = digest.get(..12).unwrap_or_default();
    let (version, tables) = (&plugin.manifest().version, step.tables.join(", "));
    let to = step.options.get("to").and_then(|to| to.as_str()).map(|to| format!(" -> {to}")).unwrap_or_default();
    format!("{} {}: {} {version} ({short}), tables {tables}{to}", kind.name(), step.id, step.plugin)
}

/// Instances beyond those that a run has.
const INSTANCES_SPARE: u32 = 16;

/// The generation that no run has: a sink that is only asked writes nothing under it.
const NO_RUN: Generation = Generation(0);

impl<'a> Plugins<'a> {
    pub(super) fn start(folder: &'a Path, loaded: &'a Loaded, clock: Arc<dyn Clock>) -> Result<Self, Findings> {
        let instances_max = instances(&loaded.config);
        match PluginEngine::new(EngineOptions { cache: cache_folder(), instances_max, ..EngineOptions::new(clock) }) {
            Ok(engine) => Ok(Self { engine, folder, loaded }),
            Err(error) => Err(of_plugin(loaded, "sink.0", &error)),
        }
    }

    /// Transforms, routes and sinks, or all that is wrong with any.
    pub(super) async fn all(&self) -> Result<(CheckedPath, Vec<CheckedSink>), Findings> {
        match (self.path().await, self.sinks().await) {
            (Ok(path), Ok(sinks)) => Ok((path, sinks)),
            (path, sinks) => {
                let mut findings = Findings::default();
                path.err().into_iter().chain(sinks.err()).for_each(|wrong| findings.append(wrong));
                Err(findings)
            }
        }
    }

    /// All transforms and routes, or all that is wrong with any. They touch nothing, so these are what a run uses.
    async fn path(&self) -> Result<CheckedPath, Findings> {
        let (mut path, mut findings) = (CheckedPath::default(), Findings::default());
        let config = &self.loaded.config;
        let mut digest = Sha256::new();
        for (kind, steps) in [(StepKind::Transform, &config.transforms), (StepKind::Route, &config.routes)] {
            for (index, step) in steps.iter().enumerate() {
                let place = format!("{}.{index}", kind.name());
                match self.step(kind, step, &mut path.setup).await {
                    Ok(plugin) => {
                        digest.update(described(kind, step, &plugin));
                        path.steps.push(shown(kind, step, &plugin));
                    }
                    Err(error) => findings.append(of_plugin(self.loaded, &place, &error)),
                }
                path.setup.lanes = path.setup.lanes.max(step.parallelism.unwrap_or(1));
            }
        }
        if !path.setup.is_plain() {
            path.setup.digest = digest.finalize().into();
        }
        if findings.exit_code().is_some() { Err(findings) } else { Ok(path) }
    }

    async fn step(&self, kind: StepKind, step: &StepConfig, path: &mut PathSetup) -> Result<Plugin, PluginError> {
        let file = PluginEngine::locate(self.folder, &step.plugin)?;
        let plugin = self.engine.load(&file, step.sha256.as_deref()).await?;
        let mut options = step.options.clone();
        // A plugin that has the option is told which tables it is for.
        if plugin.manifest().config_schema["properties"]["tables"].is_object() {
            options.insert("tables".into(), step.tables.clone().into());
        }
        let spec = PluginSpec {
            pipeline: self.loaded.config.name.clone(),
            id: step.id.clone(),
            options,
            secrets: step.secrets.clone(),
            allow: Grants::default(),
            limits: step.limits.clone(),
            stores: BTreeMap::new(),
        };
        let tables = TablePatterns::parse(&step.tables).expect("the file's patterns were checked when it was loaded");
        match kind {
            StepKind::Transform => {
                let named = plugin.manifest().named_columns(&step.options);
                let named = named.map(|(option, name)| NamedColumn { option: option.into(), name: name.into() });
                let columns = named.collect();
                path.transforms.push(TransformSetup { tables, columns, transform: plugin.transform(spec)? });
            }
            StepKind::Route => {
                let named = plugin.manifest().named_targets(&step.options);
                let named = named.iter().filter_map(|name| name.split_once('.'));
                let targets = named.map(|(database, table)| TableId::new(database, table)).collect();
                path.routes.push(RouteSetup { tables, targets, route: plugin.route(spec)? });
            }
        }
        Ok(plugin)
    }

    /// All sinks, or all that is wrong with any.
    async fn sinks(&self) -> Result<Vec<CheckedSink>, Findings> {
        let (mut sinks, mut findings) = (Vec::new(), Findings::default());
        for index in 0..self.loaded.config.sinks.len() {
            match self.sink(index).await {
                Ok(sink) => sinks.push(sink),
                Err(wrong) => findings.append(wrong),
            }
        }
        let manifests: Vec<_> = sinks.iter().map(|sink: &CheckedSink| sink.plugin.manifest()).collect();
        if manifests.len() == self.loaded.config.sinks.len() {
            findings.extend(Blame::Config, shared(self.loaded, &manifests));
        }
        if findings.exit_code().is_some() { Err(findings) } else { Ok(sinks) }
    }

    async fn sink(&self, index: usize) -> Result<CheckedSink, Findings> {
        let config = self.loaded.config.sinks.get(index).expect("sinks are asked for by their place");
        let place = format!("sink.{index}");
        let (plugin, stand_in) =
            self.load_sink(config).await.map_err(|error| of_plugin(self.loaded, &place, &error))?;
        match capabilities(stand_in.as_ref()).await {
            Ok(capabilities) => match broken_promise(self.loaded, index, &capabilities) {
                Some(finding) => Err(Findings::of(Blame::Config, [finding])),
                None => Ok(CheckedSink { plugin, capabilities, stand_in }),
            },
            Err(error) => Err(self.refused(index, &error)),
        }
    }

    /// Makes the sink over empty stores in memory: it can be asked what it is and reaches nothing.
    async fn load_sink(&self, sink: &SinkConfig) -> Result<(Plugin, Arc<dyn Sink>), PluginError> {
        let path = PluginEngine::locate(self.folder, &sink.plugin)?;
        let plugin = self.engine.load(&path, sink.sha256.as_deref()).await?;
        let stand_ins: BTreeMap<_, _> =
            self.loaded.config.storage.keys().map(|name| (name.clone(), Store::memory())).collect();
        let stand_in = plugin.sink(spec(&self.loaded.config.name, sink, stand_ins))?;
        Ok((plugin, stand_in))
    }

    /// Shows each sink the tables that it would get, over its stores in memory.
    pub(super) async fn show_tables(&self, sinks: &[CheckedSink], planned: &[PlannedTable]) -> Findings {
        let mut findings = Findings::default();
        let tables = targets(planned);
        for (index, sink) in sinks.iter().enumerate() {
            findings.extend(Blame::Config, unmet(self.loaded, (index, sink.plugin.manifest()), planned));
            for error in take_tables(sink.stand_in.as_ref(), &tables).await {
                findings.append(self.refused(index, &error));
            }
        }
        findings
    }

    fn refused(&self, index: usize, error: &ConnectorError) -> Findings {
        let id = self.loaded.config.sinks.get(index).map(|sink| sink.id.as_str()).unwrap_or_default();
        let place = self.loaded.places.find(&format!("sink.{index}"));
        let (blame, found) = of_port(error, &format!("sink {id}"), place.as_ref());
        Findings::of(blame, found)
    }
}

async fn capabilities(sink: &dyn Sink) -> Result<Capabilities, ConnectorError> {
    let mut committer = sink.committer(NO_RUN).await?;
    let capabilities = committer.open().await;
    committer.close().await;
    capabilities
}

/// Makes the tables in the sink's stand-in, and shows them to a writer; all that is refused.
async fn take_tables(sink: &dyn Sink, tables: &[Arc<TableSchema>]) -> Vec<ConnectorError> {
    let (mut committer, mut writer) = match open_stand_in(sink).await {
        Ok(opened) => opened,
        Err(error) => return vec![error],
    };
    let mut refused = Vec::new();
    for table in tables {
        let Err(error) = take_table(committer.as_mut(), writer.as_mut(), table).await else { continue };
        // After a fault of the plugin itself it cannot be asked again.
        let can_go_on = error.class != StopClass::Plugin;
        refused.push(error);
        if !can_go_on {
            break;
        }
    }
    writer.close(true).await;
    committer.close().await;
    refused
}

async fn open_stand_in(sink: &dyn Sink) -> Result<(Box<dyn Committer>, Box<dyn SinkWriter>), ConnectorError> {
    let mut committer = sink.committer(NO_RUN).await?;
    committer.open().await?;
    committer.recover(None, &[]).await?;
    let mut writer = sink.writer(NO_RUN, 0, 1).await?;
    writer.open(Vec::new()).await?;
    Ok((committer, writer))
}

async fn take_table(
    committer: &mut dyn Committer,
    writer: &mut dyn SinkWriter,
    table: &Arc<TableSchema>,
) -> Result<(), ConnectorError> {
    let request = SchemaChangeRequest {
        id: format!("{}@{}", table.table, table.version.0),
        at: before_all(),
        before: None,
        change: SchemaChange::CreateTable,
        after: Some(Arc::clone(table)),
    };
    committer.apply_schema_change(&request).await?;
    writer.on_schema(table).await
}

/// The cut of a pipeline that never ran.
fn before_all() -> Cut {
    Cut {
        epoch: Epoch(0),
        generation: NO_RUN,
        lineage: Lineage(String::new()),
        offset: SourceOffset::default(),
        change_seq: Default::default(),
        path_digest: [0; 32],
        tables_digest: [0; 32],
        end_of_input: false,
    }
}

/// A sink that may write rows twice where each shall come once.
fn broken_promise(loaded: &Loaded, index: usize, capabilities: &Capabilities) -> Option<Finding> {
    let asked = loaded.config.guarantee == Guarantee::ExactlyOnce;
    if !asked || capabilities.delivery != Delivery::AtLeastOnce {
        return None;
    }
    let id = loaded.config.sinks.get(index).map(|sink| sink.id.as_str()).unwrap_or_default();
    let message = format!("sink {id} delivers at least once, which cannot hold guarantee = \"exactly-once\"");
    let instruction = "write guarantee = \"at-least-once\" in [pipeline], or choose another sink";
    Some(Finding::error(message, instruction).at(loaded.places.find(&format!("sink.{index}.plugin"))))
}

/// What is wrong with the plugin of a section, each at the key that it is about.
pub(super) fn of_plugin(loaded: &Loaded, section: &str, error: &PluginError) -> Findings {
    let finding = |key: &str, message: String| {
        let place = loaded.places.find(&format!("{section}.{key}"));
        Finding::error(message, error.instruction()).at(place)
    };
    let blame = if error.is_environment() { Blame::Environment } else { Blame::Config };
    let list: Vec<Finding> = match error {
        PluginError::Options { findings, .. } => {
            let options = findings.iter().map(|found| found.option.as_str());
            options.zip(error.findings()).map(|(option, message)| finding(option, message)).collect()
        }
        PluginError::Digest { .. } => vec![finding("sha256", error.to_string())],
        _ => error.findings().into_iter().map(|message| finding("plugin", message)).collect(),
    };
    Findings::of(blame, list)
}

/// Instances that a pipeline may have at once: a committer and the writers of each sink, and each step in each lane. Those
/// of a run that failed may still be ending while the next run starts; what is looked at before it is less than that.
fn instances(config: &PipelineConfig) -> u32 {
    let writers = config.sinks.iter().map(|sink| sink.parallelism.unwrap_or(config.parallelism).max(1));
    let sinks = writers.fold(0_u32, |all, writers| all.saturating_add(writers).saturating_add(1));
    let steps = || config.transforms.iter().chain(&config.routes);
    let lanes = steps().map(|step| step.parallelism.unwrap_or(1)).max().unwrap_or(0).saturating_add(1);
    let steps = u32::try_from(steps().count()).unwrap_or(u32::MAX);
    sinks.saturating_add(lanes.saturating_mul(steps)).saturating_mul(2).saturating_add(INSTANCES_SPARE)
}

/// Where compiled plugins are kept: with this user's other things that can be made anew.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("cdchost/compiled"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_that_the_file_asks_for() {
        let sink = |parallelism: u32| {
            format!("[[sink]]\nplugin = \"file\"\nid = \"s{parallelism}\"\nparallelism = {parallelism}\n")
        };
        let step = "[[transform]]\ntable = \"d.t\"\nplugin = \"mask\"\nparallelism = 3\n";
        for (sections, least) in [
            (sink(1), 2),
            (sink(128), 129),
            (sink(127) + &sink(128), 257),
            (format!("{}{step}id = \"a\"\n{step}id = \"b\"\n", sink(1)), 2 + 6),
        ] {
            let file = format!(
                "[pipeline]\nname = \"p\"\n[source]\ntype = \"mysql\"\nhosts = [\"127.0.0.1:1\"]\nusername = \"u\"\n\
                 password = \"${{P}}\"\ntables = [\"d.*\"]\n[checkpoint]\nstore = \"file:///state\"\n{sections}"
            );
            let base = Path::new("/");
            let input = cdchost_config::Input { file: "p.toml", bytes: file.as_bytes(), base, lookup: &Password };
            let loaded = cdchost_config::load(input).map_err(|refused| format!("{:?}", refused.0)).unwrap();
            let room = instances(&loaded.config);
            assert!(room >= 2 * least && room < 2 * least + 64, "{sections}: {room}");
        }
    }

    struct Password;

    impl cdchost_config::Lookup for Password {
        fn variable(&self, _: &str) -> Option<String> {
            Some("secret".into())
        }

        fn file(&self, _: &Path) -> std::io::Result<Vec<u8>> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }
}
