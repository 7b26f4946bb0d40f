//! Looks at the file, the plugins, the source and the state folder, and gathers all that is wrong. Writes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cdchost_config::{Finding, Guarantee, Input, Loaded, Lookup, SinkConfig, StartupMode};
use cdchost_connector::{Capabilities, Clock, ConnectorError, Delivery, Sink, SourceConnector, SourceEnd, SystemClock};
use cdchost_model::Generation;
use cdchost_mysql::MysqlSource;
use cdchost_plugin::{EngineOptions, Plugin, PluginEngine, PluginError};
use cdchost_storage::Store;

use super::source::KeptSource;
use super::{Checked, CheckedSink, spec};
use crate::cli::{RunArguments, Until};
use crate::findings::{Blame, Findings, of_port};
use crate::state;

/// Looks at everything that a run needs.
pub(crate) async fn check(arguments: &RunArguments) -> Result<Checked, Findings> {
    let (loaded, mut findings) = load(&arguments.pipeline)?;
    let end = end_of(arguments.until, &loaded, &mut findings);
    let Some(folder) = loaded.state_folder() else {
        let finding = Finding::error("the checkpoint store is no folder of this machine", "use a file:/// store");
        findings.add(Blame::Config, finding.at(loaded.places.find("checkpoint.store")));
        return Err(findings);
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let fresh = state::is_fresh(&folder);
    findings.extend(Blame::Environment, state::inspect(&folder));
    let (source, sinks) =
        tokio::join!(check_source(&loaded, end, fresh), check_sinks(&arguments.plugins, &loaded, Arc::clone(&clock)),);
    let source = source.map_err(|wrong| findings.append(wrong));
    let sinks = sinks.map_err(|wrong| findings.append(wrong));
    match (source, sinks, findings.exit_code()) {
        (Ok(source), Ok(sinks), None) => {
            Ok(Checked { loaded, state: folder, source, clock, sinks, warnings: findings })
        }
        _ => Err(findings),
    }
}

/// The environment and the files of this process.
struct Process;

impl Lookup for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

fn load(file: &Path) -> Result<(Loaded, Findings), Findings> {
    let mut findings = Findings::default();
    let name = file.display().to_string();
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the pipeline file {name} cannot be read: {error}");
            findings.add(Blame::Config, Finding::error(message, "name a pipeline.toml that is there"));
            return Err(findings);
        }
    };
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let base = std::path::absolute(&folder).unwrap_or(folder);
    match cdchost_config::load(Input { file: &name, bytes: &bytes, base: &base, lookup: &Process }) {
        Ok(mut loaded) => {
            findings.extend(Blame::Config, loaded.warnings.drain(..));
            Ok((loaded, findings))
        }
        Err(refused) => {
            findings.extend(Blame::Config, refused.0);
            Err(findings)
        }
    }
}

fn end_of(until: Option<Until>, loaded: &Loaded, findings: &mut Findings) -> SourceEnd {
    let mut refuse = |message: &str, instruction: &str| {
        let place = loaded.places.find("source.startup.mode");
        findings.add(Blame::Config, Finding::error(message, instruction).at(place));
    };
    match (until, loaded.config.source.startup) {
        (Some(Until::CaughtUp), StartupMode::Snapshot) => {
            let message = "`--until caught-up` asks for more than startup.mode = \"snapshot\" reads";
            refuse(message, "take `--until` out, or write startup.mode = \"initial\"");
            SourceEnd::CaughtUp
        }
        (Some(Until::Snapshot), StartupMode::Latest) => {
            let message = "`--until snapshot` asks for a snapshot that startup.mode = \"latest\" does not read";
            refuse(message, "take `--until` out, or write startup.mode = \"initial\"");
            SourceEnd::Snapshot
        }
        (Some(Until::Snapshot), _) | (None, StartupMode::Snapshot) => SourceEnd::Snapshot,
        (Some(Until::CaughtUp), _) => SourceEnd::CaughtUp,
        (None, _) => SourceEnd::Never,
    }
}

/// A source that never ran is opened now, so that what it lacks is said at once. One that did finds out at its restore,
/// which knows more: what it needs depends on where it was.
async fn check_source(loaded: &Loaded, end: SourceEnd, fresh: bool) -> Result<Arc<dyn SourceConnector>, Findings> {
    let source: Arc<dyn SourceConnector> = Arc::new(MysqlSource::new(loaded.config.source.clone(), end));
    if !fresh {
        return Ok(source);
    }
    match source.open(None).await {
        Ok(opened) => Ok(Arc::new(KeptSource::new(source, opened))),
        Err(error) => {
            let (blame, found) = of_port(&error, "source", loaded.places.find("source").as_ref());
            let mut findings = Findings::default();
            findings.extend(blame, found);
            Err(findings)
        }
    }
}

async fn check_sinks(folder: &Path, loaded: &Loaded, clock: Arc<dyn Clock>) -> Result<Vec<CheckedSink>, Findings> {
    let mut findings = Findings::default();
    let engine = match PluginEngine::new(EngineOptions { cache: cache_folder(), ..EngineOptions::new(clock) }) {
        Ok(engine) => engine,
        Err(error) => {
            findings.extend(Blame::Environment, of_plugin(loaded, 0, &error));
            return Err(findings);
        }
    };
    let mut sinks = Vec::new();
    for (index, sink) in loaded.config.sinks.iter().enumerate() {
        match load_sink(&engine, folder, loaded, sink).await {
            Ok((plugin, stand_in)) => match capabilities(stand_in.as_ref()).await {
                Ok(capabilities) => {
                    findings.extend(Blame::Config, broken_promise(loaded, index, &capabilities));
                    sinks.push(CheckedSink { plugin, capabilities });
                }
                Err(error) => {
                    let place = loaded.places.find(&format!("sink.{index}"));
                    let (blame, found) = of_port(&error, &format!("sink {}", sink.id), place.as_ref());
                    findings.extend(blame, found);
                }
            },
            Err(error) => {
                let blame = if error.is_environment() { Blame::Environment } else { Blame::Config };
                findings.extend(blame, of_plugin(loaded, index, &error));
            }
        }
    }
    if findings.exit_code().is_some() { Err(findings) } else { Ok(sinks) }
}

/// Loads a sink's plugin, and makes the sink over empty stores in memory: it can be asked what it is and reaches nothing.
async fn load_sink(
    engine: &PluginEngine,
    folder: &Path,
    loaded: &Loaded,
    sink: &SinkConfig,
) -> Result<(Plugin, Arc<dyn Sink>), PluginError> {
    let path = PluginEngine::locate(folder, &sink.plugin)?;
    let plugin = engine.load(&path, sink.sha256.as_deref()).await?;
    let stand_ins: BTreeMap<_, _> = sink.allow.store.iter().map(|name| (name.clone(), Store::memory())).collect();
    let stand_in = plugin.sink(spec(&loaded.config.name, sink, stand_ins))?;
    Ok((plugin, stand_in))
}

/// The generation that no run has: a sink that is only asked writes nothing under it.
const NO_RUN: Generation = Generation(0);

async fn capabilities(sink: &dyn Sink) -> Result<Capabilities, ConnectorError> {
    let mut committer = sink.committer(NO_RUN).await?;
    let capabilities = committer.open().await;
    committer.close().await;
    capabilities
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

/// What is wrong with a plugin, each at the key that it is about.
fn of_plugin(loaded: &Loaded, index: usize, error: &PluginError) -> Vec<Finding> {
    let finding = |key: &str, message: String| {
        let place = loaded.places.find(&format!("sink.{index}.{key}"));
        Finding::error(message, error.instruction()).at(place)
    };
    match error {
        PluginError::Options { findings, .. } => {
            let options = findings.iter().map(|found| found.option.as_str());
            options.zip(error.findings()).map(|(option, message)| finding(option, message)).collect()
        }
        PluginError::Digest { .. } => vec![finding("sha256", error.to_string())],
        _ => error.findings().into_iter().map(|message| finding("plugin", message)).collect(),
    }
}

/// Where compiled plugins are kept: with this user's other things that can be made anew.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("cdchost/compiled"))
}
