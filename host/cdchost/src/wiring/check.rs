//! Looks at the file, the plugins, the source and the state folder, and gathers all that is wrong. Writes nothing.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cdchost_config::{Finding, Input, Loaded, Lookup, StartupMode};
use cdchost_connector::{Clock, OpenedSource, SourceConnector, SourceEnd, SystemClock};
use cdchost_model::TableSchema;
use cdchost_mysql::MysqlSource;

use super::Checked;
use super::examine::{plan, plugins_of};
use super::source::KeptSource;
use crate::cli::{RunArguments, Until};
use crate::findings::{Blame, Findings, of_port};
use crate::state;

/// Looks at everything that a run needs.
pub(crate) async fn check(arguments: &RunArguments) -> Result<Checked, Findings> {
    let (loaded, mut findings) = load(&arguments.pipeline)?;
    let end = end_of(arguments.until, &loaded, &mut findings);
    let folder = match state_folder(&loaded) {
        Ok(folder) => folder,
        Err(wrong) => {
            findings.append(wrong);
            return Err(findings);
        }
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    // What lies in a bucket is asked when the run begins.
    let fresh = loaded.local_store().is_some_and(|store| state::is_fresh(&store));
    findings.extend(Blame::Environment, state::inspect(&folder));
    let (source, plugins) =
        tokio::join!(check_source(&loaded, end, fresh), plugins_of(&loaded, &arguments.plugins, Arc::clone(&clock)));
    let source = source.map_err(|wrong| findings.append(wrong));
    let plugins = plugins.map_err(|wrong| findings.append(wrong));
    let (Ok((source, tables)), Ok((plugins, path, sinks))) = (source, plugins) else { return Err(findings) };
    // Before anything is read, so that all tables that cannot be written are said at once.
    if !tables.is_empty() {
        let planned = plan(&loaded, &path, &tables, &mut findings).await;
        findings.append(plugins.show_tables(&sinks, &planned).await);
    }
    drop(plugins);
    match findings.exit_code() {
        None => Ok(Checked { loaded, state: folder, source, clock, path, sinks, warnings: findings }),
        Some(_) => Err(findings),
    }
}

/// The folder of the pipeline's state.
pub(super) fn state_folder(loaded: &Loaded) -> Result<PathBuf, Findings> {
    loaded.state_folder().ok_or_else(|| {
        let finding =
            Finding::error("the checkpoint store is no folder of this machine", "name a `folder` for its lock");
        Findings::of(Blame::Config, [finding.at(loaded.places.find("checkpoint.store"))])
    })
}

/// The environment and the files of this process.
struct Process;

impl Lookup for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        read(path, SECRET_BYTES_MAX)
    }
}

/// Files larger than this are no pipeline files.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Files larger than this hold no secret.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// A file's bytes, if they are no more than `max`: what a name leads to may have no end.
fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max} bytes")));
    }
    Ok(bytes)
}

pub(super) fn load(file: &Path) -> Result<(Loaded, Findings), Findings> {
    let mut findings = Findings::default();
    let name = file.display().to_string();
    let bytes = match read(file, FILE_BYTES_MAX) {
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

/// A source that never ran is opened now, so that what it lacks is said at once, and what its tables are. One that did
/// finds out at its restore, which knows more: what it needs depends on where it was.
async fn check_source(
    loaded: &Loaded,
    end: SourceEnd,
    fresh: bool,
) -> Result<(Arc<dyn SourceConnector>, Vec<Arc<TableSchema>>), Findings> {
    let source: Arc<dyn SourceConnector> = Arc::new(MysqlSource::new(loaded.config.source.clone(), end));
    if !fresh {
        return Ok((source, Vec::new()));
    }
    let opened = open_afresh(source.as_ref(), loaded).await?;
    let tables = opened.tables.clone();
    Ok((Arc::new(KeptSource::new(source, opened)), tables))
}

/// Opens a source without any record.
pub(super) async fn open_afresh(source: &dyn SourceConnector, loaded: &Loaded) -> Result<OpenedSource, Findings> {
    source.open(None).await.map_err(|error| {
        let (blame, found) = of_port(&error, "source", loaded.places.find("source").as_ref());
        Findings::of(blame, found)
    })
}
