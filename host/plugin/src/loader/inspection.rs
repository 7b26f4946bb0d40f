//! What can be told of a component without running it in a pipeline.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{PluginKind, contract, read, read_manifest, sections};
use crate::{Manifest, PluginError};

/// What a component is, imports and exports, and whether it fits this host.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub digest: [u8; 32],
    /// Its kind; none where it is no plugin of this contract's version.
    pub kind: Option<PluginKind>,
    /// Version of the contract that it was built for; none where it names none.
    pub contract: Option<String>,
    /// Interfaces that it imports, with their versions.
    pub imports: Vec<String>,
    /// Interfaces that it exports.
    pub exports: Vec<String>,
    /// Everything that does not fit; empty for a plugin that can be loaded.
    pub findings: Vec<String>,
    /// What it says of itself in its manifest section; none where it has no such section.
    pub manifest: Option<Manifest>,
}

/// Reads a component and looks at it. A file that is no component is an error.
pub(crate) fn inspect(path: &Path) -> Result<Inspection, PluginError> {
    let wasm = read(path)?;
    let interfaces = sections::check_component(&wasm)
        .and_then(|()| contract::Interfaces::of(&wasm))
        .map_err(|found| PluginError::NotComponent { path: path.into(), found })?;
    let (kind, findings) = match interfaces.check() {
        Ok(kind) => (Some(kind), Vec::new()),
        Err(findings) => (interfaces.kind(), findings),
    };
    Ok(Inspection {
        bytes: wasm.len() as u64,
        digest: Sha256::digest(&wasm).into(),
        kind,
        contract: interfaces.version(),
        imports: interfaces.imports(),
        exports: interfaces.exports(),
        findings,
        manifest: read_manifest(path, &wasm)?,
    })
}
