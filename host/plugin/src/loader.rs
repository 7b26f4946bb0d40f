//! From a name to a component that is known to fit: find, read once, look at, compare with the contract, compile.

mod contract;
mod inspection;
mod sections;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use crate::engine::Shared;
use crate::limits::{COMPONENT_BYTES_MAX, MANIFEST_BYTES_MAX};
use crate::{Manifest, PluginError};

pub use inspection::Inspection;
pub(crate) use inspection::inspect;

/// What a component is, by its exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKind {
    /// Writes rows to a target.
    Sink,
    /// Changes rows.
    Transform,
    /// Chooses the target table.
    Route,
    /// Scalar functions for expressions.
    Functions,
}

impl PluginKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::Transform => "transform",
            Self::Route => "route",
            Self::Functions => "function library",
        }
    }
}

/// A component that was read, checked and compiled.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) digest: [u8; 32],
    pub(crate) kind: PluginKind,
    pub(crate) component: Component,
    /// None where the file has no manifest section: `describe` is to be asked.
    pub(crate) manifest: Option<Manifest>,
}

/// See [`crate::PluginEngine::locate`].
pub(crate) fn locate(folder: &Path, name: &str) -> Result<PathBuf, PluginError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(PluginError::Name { name: name.into() });
    }
    let file = format!("{name}.wasm");
    let places = [folder.join(&file), folder.join(name).join(&file)];
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| PluginError::NotFound { name: name.into(), folder: folder.into() })
}

/// Reads, checks and compiles; blocks.
pub(crate) fn load(shared: &Shared, path: &Path, pin: Option<&str>) -> Result<Loaded, PluginError> {
    let wasm = read(path)?;
    let digest: [u8; 32] = Sha256::digest(&wasm).into();
    check_pin(path, &digest, pin)?;
    let kind = sections::check_component(&wasm)
        .and_then(|()| contract::Interfaces::of(&wasm))
        .map_err(|found| PluginError::NotComponent { path: path.into(), found })?
        .check()
        .map_err(|findings| PluginError::Contract { path: path.into(), findings })?;
    if kind == PluginKind::Functions {
        return Err(PluginError::Kind { path: path.into(), kind: kind.name(), wanted: "sink, transform or route" });
    }
    let manifest = read_manifest(path, &wasm)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let component = shared
        .compile(&wasm, &digest, &name)
        .map_err(|source| PluginError::Compile { path: path.into(), source: source.into() })?;
    Ok(Loaded { path: path.into(), digest, kind, component, manifest })
}

fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let fault = |source| PluginError::Read { path: path.into(), source };
    let file = File::open(path).map_err(fault)?;
    // With room for all of it, the bytes are not copied as they grow.
    let expected = file.metadata().map_err(fault)?.len().min(COMPONENT_BYTES_MAX);
    let mut wasm = Vec::with_capacity(usize::try_from(expected).unwrap_or_default() + 1);
    file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut wasm).map_err(fault)?;
    if wasm.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(PluginError::TooLarge { path: path.into(), bytes_max: COMPONENT_BYTES_MAX });
    }
    Ok(wasm)
}

fn check_pin(path: &Path, digest: &[u8; 32], pin: Option<&str>) -> Result<(), PluginError> {
    let (found, Some(expected)) = (hex(digest), pin) else { return Ok(()) };
    if expected.trim().eq_ignore_ascii_case(&found) {
        return Ok(());
    }
    Err(PluginError::Digest { path: path.into(), expected: expected.into(), found })
}

fn read_manifest(path: &Path, wasm: &[u8]) -> Result<Option<Manifest>, PluginError> {
    let refuse = |reason| PluginError::Manifest { path: path.into(), reason };
    match sections::custom(wasm, "cdchost:manifest") {
        Some(section) if section.len() > MANIFEST_BYTES_MAX => {
            Err(refuse(format!("it has {} bytes, at most {MANIFEST_BYTES_MAX} are read", section.len())))
        }
        Some(section) => Manifest::from_section(section).map(Some).map_err(refuse),
        None => Ok(None),
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
