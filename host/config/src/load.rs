//! Turns the text of a pipeline.toml into a checked [`PipelineConfig`], or into everything that is wrong with it.

mod assemble;
mod check;
mod interpolate;
mod node;
mod options;
mod reader;
mod show;
mod storage;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

pub use self::interpolate::Lookup;
use self::reader::Reader;
use crate::finding::Lines;
use crate::reference::keys::FILE;
use crate::{Finding, PipelineConfig, Place, Places, Severity};

/// The file to be loaded, and the world outside it.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The file's name, for messages.
    pub file: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
    /// Its folder: relative paths in it begin there.
    pub base: &'a Path,
    /// Variables and files that it refers to.
    pub lookup: &'a dyn Lookup,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A file that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// What it says.
    pub config: PipelineConfig,
    /// What the user should know.
    pub warnings: Vec<Finding>,
    /// Where each key stands.
    pub places: Places,
    /// The same as JSON, keyed as in the file, defaults filled in, secrets masked: for people and records.
    pub shown: serde_json::Value,
}

impl Loaded {
    /// [`Loaded::shown`] as it would stand in the file.
    pub fn shown_as_toml(&self) -> String {
        toml::to_string_pretty(&self.shown).expect("what came from TOML goes back into it")
    }

    /// The folder of this machine that holds the lock and the control socket.
    pub fn state_folder(&self) -> Option<PathBuf> {
        self.config.checkpoint.folder.clone().or_else(|| self.local_store())
    }

    /// Where the checkpoints lie, if it is a folder of this machine.
    pub fn local_store(&self) -> Option<PathBuf> {
        let root = |(name, storage): (&String, &crate::StorageConfig)| {
            storage::root(&storage.url, None).ok().map(|root| (name.clone(), root))
        };
        let roots = self.config.storage.iter().filter_map(root).collect();
        storage::store(&self.config.checkpoint.store, &roots).ok()?.local().map(PathBuf::from)
    }
}

/// A file that cannot be run: all that is wrong with it, warnings included, in the order of the file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Refused(pub Vec<Finding>);

/// A pipeline file is small; what is larger is the wrong file.
const BYTES_MAX: usize = 1 << 20;

/// Loads a pipeline file. Reads nothing but what [`Input::lookup`] gives.
pub fn load(input: Input<'_>) -> Result<Loaded, Refused> {
    let text = text_of(input).map_err(|finding| Refused(vec![finding]))?;
    let lines = Lines::new(input.file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    // Each bracket around a value that lies too deep is an echo of it.
    let deepest = errors.iter().find(|error| error.message().contains(TOO_DEEP)).map(std::slice::from_ref);
    let errors = deepest.unwrap_or(&errors);
    let mut findings: Vec<Finding> = errors.iter().map(|error| syntax_finding(&lines, error)).collect();
    // After a fault of syntax the rest is a guess; a key given twice leaves the rest readable.
    if errors.iter().any(|error| error.message() != DUPLICATE) {
        return Err(Refused(in_order(findings)));
    }
    let mut reader =
        Reader { lines, base: input.base, lookup: input.lookup, findings: Vec::new(), places: Places::default() };
    let node = reader.node(&FILE, "", &(0..0), document.get_ref());
    let config = assemble::pipeline(&mut reader, &node);
    check::all(&mut reader, &node, &config);
    findings.append(&mut reader.findings);
    let findings = in_order(findings);
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(Refused(findings));
    }
    let shown = show::section(&node, &config);
    Ok(Loaded { config, warnings: findings, places: reader.places, shown })
}

/// What the TOML reader says of values that lie in one another too deep.
const TOO_DEEP: &str = "max recursion depth";

/// What the TOML reader says of a key that stands twice.
const DUPLICATE: &str = "duplicate key";

fn text_of<'a>(input: Input<'a>) -> Result<&'a str, Finding> {
    let start = Place { file: input.file.to_owned(), line: 1, column: 1 };
    if input.bytes.len() > BYTES_MAX {
        let message = format!("the file has more than {BYTES_MAX} bytes");
        return Err(Finding::error(message, "name a pipeline.toml").at(Some(start)));
    }
    if input.bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        let message = "the file begins with a byte order mark";
        return Err(Finding::error(message, "save it as UTF-8 without byte order mark").at(Some(start)));
    }
    std::str::from_utf8(input.bytes).map_err(|error| {
        let readable = input.bytes.get(..error.valid_up_to()).unwrap_or_default();
        let readable = String::from_utf8_lossy(readable);
        let place = Lines::new(input.file, &readable).place(&(readable.len()..readable.len()));
        Finding::error("the file is not UTF-8 text", "save it as UTF-8").at(Some(place))
    })
}

fn syntax_finding(lines: &Lines<'_>, error: &toml::de::Error) -> Finding {
    let place = error.span().map(|span| lines.place(&span));
    if error.message() == DUPLICATE {
        return Finding::error("a key or table stands twice", "keep one of the two").at(place);
    }
    if error.message().contains(TOO_DEEP) {
        let message = "not TOML that can be read: values lie in one another too deep";
        return Finding::error(message, "take the brackets out that are too many").at(place);
    }
    Finding::error(format!("not TOML: {}", error.message()), "mend the line; see https://toml.io for the rules")
        .at(place)
}

fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|one, other| one.place.cmp(&other.place));
    findings
}

#[cfg(test)]
mod tests;
