//! A backend over a folder of this machine: atomic, durable, and never through a symbolic link.
//!
//! `object_store`'s own file backend is not used: it follows links, knows no private files, and leaves half-written
//! files of dead processes for ever. Here every write goes to a file of its own under `.staging`,
//! is synced, gets its name by one link or rename, and the folder that holds the name is synced before the call
//! returns. So a name never leads to content that could be lost.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use self::staging::{Staged, Staging};
use crate::path::{ObjectPath, STAGING};
use crate::upload::UploadInner;
use crate::{ObjectMeta, PutOutcome, StorageError, Upload};

mod staging;

/// Makes written bytes and names survive a loss of power. Handed in so that tests see the order and fail it.
pub(crate) trait Disk: Send + Sync + std::fmt::Debug {
    fn sync(&self, file: &File, path: &Path) -> io::Result<()>;
}

#[derive(Debug)]
struct SystemDisk;

impl Disk for SystemDisk {
    fn sync(&self, file: &File, _: &Path) -> io::Result<()> {
        file.sync_all()
    }
}

/// For whom files and folders are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Whom the process's umask lets in: what is written is for others to read.
    Umask,
    /// This user alone.
    Private,
}

impl Access {
    fn file_mode(self) -> u32 {
        match self {
            Self::Umask => 0o666,
            Self::Private => 0o600,
        }
    }

    fn folder_mode(self) -> u32 {
        match self {
            Self::Umask => 0o777,
            Self::Private => 0o700,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    staging: Arc<Staging>,
    disk: Arc<dyn Disk>,
    access: Access,
}

impl Folder {
    /// Opens a folder, makes it if need be, and removes what dead processes left half-written in it. Blocks.
    pub(crate) fn open(root: &Path, access: Access) -> io::Result<Self> {
        Self::open_on(root, access, Arc::new(SystemDisk))
    }

    fn open_on(root: &Path, access: Access, disk: Arc<dyn Disk>) -> io::Result<Self> {
        make_folders(root, access, disk.as_ref())?;
        let root = root.canonicalize()?;
        let staging = Arc::new(Staging::open(&root.join(STAGING))?);
        Ok(Self { shared: Arc::new(Shared { root, staging, disk, access }) })
    }

    /// The same folder, whose new files and folders are for this user alone.
    pub(crate) fn private(&self) -> Self {
        let Shared { root, staging, disk, .. } = self.shared.as_ref();
        let (root, staging, disk) = (root.clone(), Arc::clone(staging), Arc::clone(disk));
        Self { shared: Arc::new(Shared { root, staging, disk, access: Access::Private }) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.shared.root
    }

    pub(crate) async fn get(&self, path: ObjectPath, range: Option<Range<u64>>) -> Result<Bytes, StorageError> {
        self.run("get", path, move |shared, path| shared.read(path, range)).await
    }

    pub(crate) async fn put(&self, path: ObjectPath, data: Bytes) -> Result<(), StorageError> {
        self.run("put", path, move |shared, path| {
            let mut staged = shared.stage()?;
            staged.file.write_all(&data)?;
            shared.publish(staged, path)
        })
        .await
    }

    pub(crate) async fn put_if_absent(&self, path: ObjectPath, data: Bytes) -> Result<PutOutcome, StorageError> {
        self.run("put-if-absent", path, move |shared, path| {
            let mut staged = shared.stage()?;
            staged.file.write_all(&data)?;
            shared.publish_new(&staged, path)
        })
        .await
    }

    pub(crate) async fn delete(&self, path: ObjectPath) -> Result<(), StorageError> {
        self.run("delete", path, move |shared, path| {
            let target = shared.resolve(path)?;
            match fs::remove_file(&target) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        })
        .await
    }

    pub(crate) async fn list(
        &self,
        folder: Option<ObjectPath>,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, StorageError> {
        let shown = folder.as_ref().map_or(String::new(), |f| f.as_str().into());
        let shared = Arc::clone(&self.shared);
        let listed = tokio::task::spawn_blocking(move || {
            let start = match &folder {
                Some(folder) => shared.resolve(folder)?,
                None => shared.root.clone(),
            };
            let prefix = folder.map_or(String::new(), |f| format!("{}/", f.as_str()));
            let mut listing = Listing { after, limit, found: Vec::new() };
            listing.walk(&start, &prefix)?;
            Ok(listing.found)
        });
        flat(listed.await).map_err(|e| StorageError::io("list", &shown, e))
    }

    pub(crate) async fn upload(&self, path: ObjectPath) -> Result<Upload, StorageError> {
        let staged = self
            .run("upload", path.clone(), |shared, path| {
                shared.resolve(path)?;
                shared.stage()
            })
            .await?;
        let inner = FolderUpload { folder: self.clone(), path, staged };
        Ok(Upload::new(UploadInner::Folder(inner)))
    }

    /// Runs blocking work away from the tasks, and words its error.
    async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        path: ObjectPath,
        work: impl FnOnce(&Shared, &ObjectPath) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StorageError> {
        let shared = Arc::clone(&self.shared);
        let shown = path.as_str().to_owned();
        let done = tokio::task::spawn_blocking(move || work(&shared, &path)).await;
        flat(done).map_err(|e| StorageError::io(action, &shown, e))
    }
}

fn flat<T>(joined: Result<io::Result<T>, tokio::task::JoinError>) -> io::Result<T> {
    joined.unwrap_or_else(|error| Err(io::Error::other(error)))
}

impl Shared {
    /// The file behind a path; refuses to go through a symbolic link.
    fn resolve(&self, path: &ObjectPath) -> io::Result<PathBuf> {
        let mut target = self.root.clone();
        for segment in path.segments() {
            target.push(segment);
            match fs::symlink_metadata(&target) {
                Ok(meta) if meta.is_symlink() => {
                    return Err(io::Error::new(ErrorKind::PermissionDenied, "a symbolic link is in the way"));
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => break,
                Err(error) => return Err(error),
            }
        }
        let mut whole = self.root.clone();
        whole.extend(path.segments());
        Ok(whole)
    }

    fn read(&self, path: &ObjectPath, range: Option<Range<u64>>) -> io::Result<Bytes> {
        let mut file = File::open(self.resolve(path)?)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        let range = range.unwrap_or(0..meta.len());
        let end = range.end.min(meta.len());
        let length = end.saturating_sub(range.start);
        file.seek(SeekFrom::Start(range.start))?;
        let mut data = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
        file.take(length).read_to_end(&mut data)?;
        Ok(data.into())
    }

    fn stage(&self) -> io::Result<Staged> {
        self.staging.create(self.access.file_mode())
    }

    /// Syncs the staged content and moves it to its name.
    fn publish(&self, staged: Staged, path: &ObjectPath) -> io::Result<()> {
        let target = self.prepare(&staged, path)?;
        fs::rename(&staged.path, &target)?;
        self.sync_parent(&target)
    }

    /// Syncs the staged content and gives it its name if that is free. Either answer is durable.
    fn publish_new(&self, staged: &Staged, path: &ObjectPath) -> io::Result<PutOutcome> {
        let target = self.prepare(staged, path)?;
        let outcome = match fs::hard_link(&staged.path, &target) {
            Ok(()) => PutOutcome::Created,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => PutOutcome::AlreadyExists,
            Err(error) => return Err(error),
        };
        self.sync_parent(&target)?;
        Ok(outcome)
    }

    fn prepare(&self, staged: &Staged, path: &ObjectPath) -> io::Result<PathBuf> {
        let target = self.resolve(path)?;
        self.disk.sync(&staged.file, &staged.path)?;
        if let Some(parent) = target.parent() {
            make_folders(parent, self.access, self.disk.as_ref())?;
        }
        Ok(target)
    }

    fn sync_parent(&self, target: &Path) -> io::Result<()> {
        target.parent().map_or(Ok(()), |parent| sync_folder(parent, self.disk.as_ref()))
    }
}

/// Makes a folder and those above it, each name durable.
fn make_folders(folder: &Path, access: Access, disk: &dyn Disk) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folders(parent, access, disk)?;
        match DirBuilder::new().mode(access.folder_mode()).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(parent, disk)?,
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path, disk: &dyn Disk) -> io::Result<()> {
    disk.sync(&File::open(folder)?, folder)
}

/// Collects files in byte order of their paths.
struct Listing {
    after: Option<String>,
    limit: usize,
    found: Vec<ObjectMeta>,
}

impl Listing {
    fn walk(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            // Names that are no text, links and devices were not made by us and are nobody's objects.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if kind.is_dir() && name != STAGING {
                names.push(format!("{prefix}{name}/"));
            } else if kind.is_file() {
                names.push(format!("{prefix}{name}"));
            }
        }
        names.sort_unstable();
        for path in names {
            if self.found.len() >= self.limit {
                return Ok(());
            }
            self.visit(folder, &path, prefix.len())?;
        }
        Ok(())
    }

    fn visit(&mut self, folder: &Path, path: &str, name_at: usize) -> io::Result<()> {
        let name = &path[name_at..];
        if let Some(name) = name.strip_suffix('/') {
            // Everything below sorts between `path` and the next sibling, so a folder wholly passed is not read.
            let passed = self.after.as_ref().is_some_and(|after| after.as_str() > path && !after.starts_with(path));
            return if passed { Ok(()) } else { self.walk(&folder.join(name), path) };
        }
        if self.after.as_ref().is_some_and(|after| path <= after.as_str()) {
            return Ok(());
        }
        let meta = match fs::symlink_metadata(folder.join(name)) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()), // removed meanwhile
            Err(error) => return Err(error),
        };
        let modified = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.found.push(ObjectMeta {
            path: path.into(),
            size: meta.len(),
            modified_micros: u64::try_from(modified.as_micros()).unwrap_or(u64::MAX),
        });
        Ok(())
    }
}

/// A large file on its way.
#[derive(Debug)]
pub(crate) struct FolderUpload {
    folder: Folder,
    path: ObjectPath,
    staged: Staged,
}

impl FolderUpload {
    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), StorageError> {
        let mut file = self.staged.file.try_clone().map_err(|e| StorageError::io("upload", self.path.as_str(), e))?;
        self.folder.run("upload", self.path.clone(), move |_, _| file.write_all(&data)).await
    }

    pub(crate) async fn finish(self) -> Result<(), StorageError> {
        let staged = self.staged;
        self.folder.run("upload", self.path, move |shared, path| shared.publish(staged, path)).await
    }
}

fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests;
