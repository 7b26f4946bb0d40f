//! The store itself: which backend, below which prefix, with which faults.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::faults::{Call, Fault, Faults, Operation};
use crate::folder::{Access, Folder};
use crate::objects::{Objects, s3};
use crate::path::ObjectPath;
use crate::{StorageError, Upload};

/// What became of a [`Store::put_if_absent`]. Either way the object that is there now is whole and durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object is there now, with the content given.
    Created,
    /// An object of this name was there before. It may be one's own of an earlier call whose answer got lost.
    AlreadyExists,
}

/// An object as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Its path below the root.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was written, in microseconds since the epoch.
    pub modified_micros: u64,
}

/// A rooted store of named byte strings. Cheap to clone.
///
/// Writes are atomic: an object is there whole or not at all. When a write has returned, it survives the loss of
/// power. Paths are segments joined by `/`, as bytes, with no way out of the root.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Backend,
    prefix: Option<ObjectPath>,
    faults: Option<Arc<Faults>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Folder(Folder),
    Objects(Objects),
}

impl Store {
    /// Opens the store that a URL names: `file:///folder`, which is made if it is absent, or `s3://bucket/prefix`, which
    /// is asked whether it lets us in and keeps its promises. Files in a folder get the rights that the umask leaves.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self, StorageError> {
        Self::open_for(url, options, Access::Umask).await
    }

    /// As [`Store::open`], for what is this user's alone: files in a folder are readable by nobody else.
    pub async fn open_private(url: &str, options: &BTreeMap<String, String>) -> Result<Self, StorageError> {
        Self::open_for(url, options, Access::Private).await
    }

    async fn open_for(url: &str, options: &BTreeMap<String, String>, access: Access) -> Result<Self, StorageError> {
        let refuse = |reason: String| StorageError::Url { url: url.into(), reason };
        if let Some(rest) = url.strip_prefix("s3://") {
            let (objects, prefix) = s3::open(rest, options).map_err(refuse)?;
            let store = Self { backend: Backend::Objects(objects), prefix, faults: None };
            store.prove().await?;
            return Ok(store);
        }
        let root = folder_of(url).map_err(refuse)?;
        if let Some(key) = options.keys().next() {
            return Err(refuse(format!("a folder has no option `{key}`; remove it")));
        }
        let folder = tokio::task::spawn_blocking(move || Folder::open(&root, access))
            .await
            .map_err(|e| refuse(e.to_string()))?;
        let folder = folder.map_err(|e| refuse(format!("{e}; {}", healing(&e))))?;
        Ok(Self { backend: Backend::Folder(folder), prefix: None, faults: None })
    }

    /// Looks whether the store lists, and creates only what is absent: all that is exact here rests on that, and there
    /// are stores that do not know the condition and write all the same.
    async fn prove(&self) -> Result<(), StorageError> {
        const PROOF: &str = "_cdchost/create-if-absent";
        self.list("", None, 1).await?;
        let content = Bytes::from_static(b"cdchost sees here that the store creates only what is absent\n");
        for _ in 0..2 {
            if self.put_if_absent(PROOF, content.clone()).await? == PutOutcome::AlreadyExists {
                return Ok(());
            }
        }
        let path = match &self.backend {
            Backend::Objects(objects) => objects.shown(PROOF),
            Backend::Folder(_) => PROOF.to_owned(),
        };
        Err(StorageError::Denied {
            path,
            reason: "the store writes over an object that shall only be created".into(),
            instruction: "choose a store that knows `If-None-Match`",
        })
    }

    /// A store in memory, for tests and simulations.
    pub fn memory() -> Self {
        Self { backend: Backend::Objects(Objects::memory()), prefix: None, faults: None }
    }

    /// The same store under a script of faults, for tests.
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = Some(Arc::new(faults));
        self
    }

    /// The part of the store below a folder, as a store of its own.
    pub fn below(&self, folder: &str) -> Result<Self, StorageError> {
        let mut store = self.clone();
        if let Some(folder) = ObjectPath::parse_folder(folder)? {
            store.prefix = Some(folder.below(self.prefix.as_ref()));
        }
        Ok(store)
    }

    /// The same store, whose new files in a folder are readable by this user alone.
    pub fn private(mut self) -> Self {
        if let Backend::Folder(folder) = &self.backend {
            self.backend = Backend::Folder(folder.private());
        }
        self
    }

    /// The folder that is the store's root, where it is one: for a lock and a socket beside the objects.
    pub fn local_root(&self) -> Option<PathBuf> {
        let Backend::Folder(folder) = &self.backend else { return None };
        let mut root = folder.root().to_owned();
        root.extend(self.prefix.iter().flat_map(ObjectPath::segments));
        Some(root)
    }

    /// The whole object.
    pub async fn get(&self, path: &str) -> Result<Bytes, StorageError> {
        let full = self.full(path)?;
        self.fault(Operation::Get, path, 0)
            .around(path, || async {
                match &self.backend {
                    Backend::Folder(folder) => folder.get(full.clone(), None).await,
                    Backend::Objects(objects) => objects.get(&full, None).await,
                }
            })
            .await
    }

    /// Bytes `range` of the object; what lies beyond its end is left out.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes, StorageError> {
        let full = self.full(path)?;
        if range.start >= range.end {
            return Ok(Bytes::new());
        }
        self.fault(Operation::Get, path, 0)
            .around(path, || async {
                match &self.backend {
                    Backend::Folder(folder) => folder.get(full.clone(), Some(range.clone())).await,
                    Backend::Objects(objects) => objects.get(&full, Some(range.clone())).await,
                }
            })
            .await
    }

    /// Writes the object, in place of what may be there.
    pub async fn put(&self, path: &str, data: Bytes) -> Result<(), StorageError> {
        let full = self.full(path)?;
        match self.fault(Operation::Put, path, data.len()) {
            Fault::Tear(at) => self.put_whole(&full, torn(&data, at)).await.and_then(|()| Err(Fault::error(path))),
            fault => fault.around(path, || self.put_whole(&full, data)).await,
        }
    }

    /// Writes the object unless one of this name is there; of several callers at once, one creates it.
    pub async fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome, StorageError> {
        let full = self.full(path)?;
        let put = |data: Bytes| {
            let full = &full;
            async move {
                match &self.backend {
                    Backend::Folder(folder) => folder.put_if_absent(full.clone(), data).await,
                    Backend::Objects(objects) => objects.put_if_absent(full, data).await,
                }
            }
        };
        match self.fault(Operation::PutIfAbsent, path, data.len()) {
            Fault::Tear(at) => match put(torn(&data, at)).await? {
                PutOutcome::Created => Err(Fault::error(path)),
                there => Ok(there),
            },
            fault => fault.around(path, || put(data)).await,
        }
    }

    /// Up to `limit` objects below a folder (empty = all), in byte order of their paths, after the path `after`.
    pub async fn list(&self, folder: &str, after: Option<&str>, limit: usize) -> Result<Vec<ObjectMeta>, StorageError> {
        let full = match ObjectPath::parse_folder(folder)? {
            Some(folder) => Some(folder.below(self.prefix.as_ref())),
            None => self.prefix.clone(),
        };
        let strip = self.prefix.as_ref().map_or(0, |prefix| prefix.as_str().len() + 1);
        let after = match (after, &self.prefix) {
            (Some(after), Some(prefix)) => Some(format!("{}/{after}", prefix.as_str())),
            (after, _) => after.map(str::to_owned),
        };
        let mut found = self
            .fault(Operation::List, folder, 0)
            .around(folder, || async {
                match &self.backend {
                    Backend::Folder(local) => local.list(full.clone(), after.clone(), limit).await,
                    Backend::Objects(objects) => objects.list(full.as_ref(), after.as_deref(), limit).await,
                }
            })
            .await?;
        for meta in &mut found {
            meta.path.drain(..strip);
        }
        Ok(found)
    }

    /// Removes the object; one that is not there is no error.
    pub async fn delete(&self, path: &str) -> Result<(), StorageError> {
        let full = self.full(path)?;
        self.fault(Operation::Delete, path, 0)
            .around(path, || async {
                match &self.backend {
                    Backend::Folder(folder) => folder.delete(full.clone()).await,
                    Backend::Objects(objects) => objects.delete(&full).await,
                }
            })
            .await
    }

    /// Begins a large object that is written in parts and is there when finished, in place of what may be there.
    pub async fn upload(&self, path: &str) -> Result<Upload, StorageError> {
        let full = self.full(path)?;
        self.fault(Operation::Upload, path, 0)
            .around(path, || async {
                match &self.backend {
                    Backend::Folder(folder) => folder.upload(full.clone()).await,
                    Backend::Objects(objects) => objects.upload(&full),
                }
            })
            .await
    }

    fn full(&self, path: &str) -> Result<ObjectPath, StorageError> {
        let full = ObjectPath::parse(path)?.below(self.prefix.as_ref());
        ObjectPath::parse(full.as_str())
    }

    async fn put_whole(&self, full: &ObjectPath, data: Bytes) -> Result<(), StorageError> {
        match &self.backend {
            Backend::Folder(folder) => folder.put(full.clone(), data).await,
            Backend::Objects(objects) => objects.put(full, data).await,
        }
    }

    fn fault(&self, operation: Operation, path: &str, bytes: usize) -> Fault {
        self.faults.as_ref().map_or(Fault::None, |faults| faults.decide(&Call { operation, path, bytes }))
    }
}

/// Half a write, as a store without atomic writes leaves it: the first bytes.
fn torn(data: &Bytes, at: usize) -> Bytes {
    data.slice(..at.min(data.len()))
}

/// The folder that a URL names.
fn folder_of(url: &str) -> Result<PathBuf, String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("it is no URL; write file:///absolute/folder".into());
    };
    if scheme != "file" {
        return Err(format!(
            "stores of kind `{scheme}` are not offered; write file:///absolute/folder or s3://bucket/prefix"
        ));
    }
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err("its path is not absolute; write file:///absolute/folder".into());
    }
    if let Some(odd) = path.chars().find(|c| matches!(c, '?' | '#' | '\0')) {
        return Err(format!("a folder's URL has no {odd:?}"));
    }
    let decoded = decode_percent(path).ok_or("a % in it is not followed by two hex digits of UTF-8 text")?;
    if Path::new(&decoded).components().any(|part| part == std::path::Component::ParentDir) {
        return Err("its path has a `..`; write the folder that is meant".into());
    }
    Ok(decoded.into())
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}

/// What a person can do about a folder that cannot be opened.
fn healing(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder of another file system: this one cannot be written to"
        }
        _ => "make the folder, owned by this user",
    }
}

#[cfg(test)]
mod tests;
