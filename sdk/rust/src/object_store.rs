//! Files of a root that the pipeline file grants by name; credentials and addresses stay in the host.

use std::fmt;
use std::io;

use crate::{PluginError, imports};

/// Why an object could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such object.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// The root is not granted, or the store refuses us.
    Denied(String),
    /// The store did not answer, or answered that it cannot now. What was asked may have happened.
    Unavailable(String),
}

/// What failed, and at which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Why.
    pub refusal: Refusal,
    /// `get`, `put`, …
    pub action: &'static str,
    /// The root.
    pub root: String,
    /// The object, or the folder.
    pub path: String,
}

impl StoreError {
    /// Whether there was no such object.
    pub fn is_not_found(&self) -> bool {
        self.refusal == Refusal::NotFound
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} in store {}: ", self.action, self.path, self.root)?;
        match &self.refusal {
            Refusal::NotFound => f.write_str("no such object"),
            Refusal::AlreadyExists => f.write_str("already there"),
            Refusal::Denied(why) => write!(f, "denied: {why}"),
            Refusal::Unavailable(why) => write!(f, "unavailable: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// An object that is missing or there where it must not be is the target's fault and final; a store that does not
/// answer is tried again.
impl From<StoreError> for PluginError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error.refusal {
            Refusal::NotFound => Self::remote("object-not-found", message).with_retry(crate::Retry::Never),
            Refusal::AlreadyExists => Self::remote("object-already-exists", message).with_retry(crate::Retry::Never),
            Refusal::Denied(_) => Self::auth("store-denied", message),
            Refusal::Unavailable(_) => Self::remote("store-unavailable", message),
        }
    }
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Its path under the root.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in microseconds since the epoch.
    pub modified_micros: u64,
}

/// What became of a put that must not overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// The object is new and holds the data.
    Created,
    /// There was an object; it is as it was. It may be one's own from a call whose answer was lost.
    AlreadyExists,
}

/// A granted root. Paths are relative to it, parts joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    name: String,
}

impl Root {
    /// The root of this name in the pipeline file. Whether it is granted shows at the first use.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole object.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        imports::get(&self.name, path).map_err(self.failed("get", path))
    }

    /// `length` bytes from `offset` on; fewer at the object's end.
    pub fn get_range(&self, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, StoreError> {
        imports::get_range(&self.name, path, offset, length).map_err(self.failed("get", path))
    }

    /// Writes the object, or writes it anew.
    pub fn put(&self, path: &str, data: &[u8]) -> Result<(), StoreError> {
        imports::put(&self.name, path, data).map_err(self.failed("put", path))
    }

    /// Creates the object in one step, if there is none: the only safe way to publish.
    pub fn put_if_absent(&self, path: &str, data: &[u8]) -> Result<Creation, StoreError> {
        match imports::put_if_absent(&self.name, path, data) {
            Ok(()) => Ok(Creation::Created),
            Err(Refusal::AlreadyExists) => Ok(Creation::AlreadyExists),
            Err(refusal) => Err(self.failed("put-if-absent", path)(refusal)),
        }
    }

    /// At most `limit` objects below a folder (empty = all) whose path sorts behind `after`, in byte order.
    pub fn list(&self, folder: &str, after: Option<&str>, limit: u32) -> Result<Vec<ObjectMeta>, StoreError> {
        imports::list(&self.name, folder, after, limit).map_err(self.failed("list", folder))
    }

    /// All objects below a folder, in order, however many calls it takes.
    pub fn list_all(&self, folder: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        const PAGE: u32 = 1000;
        let mut all: Vec<ObjectMeta> = Vec::new();
        loop {
            let page = self.list(folder, all.last().map(|last| last.path.as_str()), PAGE)?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Removes the objects; those that are not there are no error.
    pub fn delete<P: AsRef<str>>(&self, paths: &[P]) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let owned: Vec<String> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        imports::delete(&self.name, &owned).map_err(self.failed("delete", &owned[0]))
    }

    /// Begins an object that is written in parts and is there when it is finished. It replaces one of its name.
    pub fn upload(&self, path: &str) -> Upload {
        Upload {
            inner: imports::Upload::new(&self.name, path),
            root: self.clone(),
            path: path.into(),
            part: Vec::new(),
        }
    }

    fn failed(&self, action: &'static str, path: &str) -> impl FnOnce(Refusal) -> StoreError {
        let (root, path) = (self.name.clone(), path.to_owned());
        move |refusal| StoreError { refusal, action, root, path }
    }
}

/// An object being written in parts. Dropped before [`Upload::finish`], nothing of it remains.
#[derive(Debug)]
pub struct Upload {
    inner: imports::Upload,
    root: Root,
    path: String,
    /// Gathers small writes: each hand-over to the host costs a call.
    part: Vec<u8>,
}

/// Bytes handed over at once.
const PART_BYTES: usize = 1 << 20;

impl Upload {
    /// Makes the object be there; answers its size in bytes.
    pub fn finish(mut self) -> Result<u64, StoreError> {
        self.hand_over()?;
        self.inner.finish().map_err(self.root.failed("upload", &self.path))
    }

    fn hand_over(&mut self) -> Result<(), StoreError> {
        if self.part.is_empty() {
            return Ok(());
        }
        self.inner.write(&self.part).map_err(self.root.failed("upload", &self.path))?;
        self.part.clear();
        Ok(())
    }
}

/// Errors carry a [`StoreError`] inside.
impl io::Write for Upload {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.part.extend_from_slice(data);
        if self.part.len() >= PART_BYTES {
            self.hand_over().map_err(io::Error::other)?;
        }
        Ok(data.len())
    }

    /// Nothing is there before [`Upload::finish`]; small rests stay gathered until then.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
