//! Compiled code on disk, so that a plugin is compiled once and not at every start.
//!
//! A file is `magic, SHA-256 of the code, code`. Its name holds the component's digest and a digest of everything that
//! decides about the code (wasmtime's version, the CPU, the engine's settings). What does not check out is made anew.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const MAGIC: &[u8; 8] = b"cdccode1";
/// How long code is kept after it was written.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
const HEADER_BYTES: usize = MAGIC.len() + 32;

/// A folder that only this user can write to.
#[derive(Debug)]
pub(super) struct CompiledCache {
    folder: PathBuf,
    engine_key: String,
}

impl CompiledCache {
    /// Makes the folder where it is missing. None, with a log line, where it cannot be trusted or made.
    pub(super) fn open(folder: PathBuf, engine: &Engine) -> Option<Self> {
        match trusted(&folder) {
            Ok(()) => {
                remove_old(&folder);
                Some(Self { folder, engine_key: engine_key(engine) })
            }
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "compiled plugins are not cached");
                None
            }
        }
    }

    /// The component, compiled now or earlier.
    pub(super) fn component(
        &self,
        engine: &Engine,
        wasm: &[u8],
        digest: &[u8; 32],
        name: &str,
    ) -> wasmtime::Result<Component> {
        let path = self.folder.join(format!("{}-{}.code", hex(digest), self.engine_key));
        if let Some(component) = read(&path).and_then(|code| deserialize(engine, &code)) {
            return Ok(component);
        }
        tracing::info!(plugin = name, bytes = wasm.len(), "compiling plugin");
        let code = engine.precompile_component(wasm)?;
        if let Err(error) = self.write(&path, &code) {
            tracing::warn!(path = %path.display(), %error, "compiled plugin is not cached");
        }
        deserialize(engine, &code).ok_or_else(|| wasmtime::format_err!("code compiled just now does not load"))
    }

    /// Whole or not at all: written aside, then renamed.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside).and_then(
            |mut file| {
                file.write_all(MAGIC)?;
                file.write_all(&Sha256::digest(code))?;
                file.write_all(code)
            },
        );
        written.and_then(|()| fs::rename(&aside, path)).inspect_err(|_| {
            // What is left over is only litter; the error that matters is already on its way.
            let _ = fs::remove_file(&aside);
        })
    }
}

/// Refuses a folder that another user owns or can write to.
fn trusted(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    // A file that this process makes belongs to its effective user; /proc/self does too.
    let own = fs::metadata("/proc/self")?.uid();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o022 != 0 {
        return Err(io::Error::other("the folder must belong to this user and be writable by nobody else"));
    }
    Ok(())
}

/// Removes what no one has written for a month: code of plugins and versions long gone. What is still used is compiled
/// anew once.
fn remove_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|written| written.elapsed().ok());
        if age.is_some_and(|age| age > KEPT)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "old compiled plugin is not removed");
        }
    }
}

/// The code of a cache file that is whole.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let (header, code) = bytes.split_at_checked(HEADER_BYTES)?;
    let whole = header.starts_with(MAGIC) && header.ends_with(&Sha256::digest(code));
    if !whole {
        tracing::warn!(path = %path.display(), "compiled plugin is damaged: compiling anew");
        return None;
    }
    bytes.drain(..HEADER_BYTES);
    Some(bytes)
}

/// Loads compiled code.
#[expect(unsafe_code, reason = "the code comes from this engine, through a folder that only this user can write to")]
fn deserialize(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: the bytes were made by `precompile_component` of an engine with the same key and their digest was checked
    // (or they were made just now).
    let loaded = unsafe { Component::deserialize(engine, code) };
    loaded.inspect_err(|error| tracing::warn!(%error, "compiled plugin does not load: compiling anew")).ok()
}

/// Digest of everything that decides whether compiled code fits this engine.
fn engine_key(engine: &Engine) -> String {
    let mut hasher = DigestHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex(hasher.0.finalize().get(..16).unwrap_or_default())
}

/// A hasher that is the same in every build of this program.
struct DigestHasher(Sha256);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

fn hex(bytes: &[u8]) -> String {
    crate::loader::hex(bytes)
}
