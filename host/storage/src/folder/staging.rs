//! Where half-written files lie: a folder of its own per process, held by a lock, so that the next process can tell
//! the dead ones' from the living ones'.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Access, new_file};

/// The file in each process's folder that is locked while the process lives.
const LOCK: &str = "lock";

#[derive(Debug)]
pub(super) struct Staging {
    folder: PathBuf,
    next: AtomicU64,
    /// Held open; the kernel lets go of the lock when the process ends, however it ends.
    _lock: File,
}

/// A file that has no name yet. Dropped, its staging name is removed.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Staging {
    pub(super) fn open(all: &Path) -> io::Result<Self> {
        make_private(all)?;
        remove_dead(all)?;
        let (folder, lock) = claim(all)?;
        Ok(Self { folder, next: AtomicU64::new(0), _lock: lock })
    }

    /// A new file; it keeps its mode when it gets its name.
    pub(super) fn create(&self, mode: u32) -> io::Result<Staged> {
        let path = self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        Ok(Staged { file: new_file(&path, mode)?, path })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = remove(&self.folder); // the next process to open the store removes it otherwise
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // renamed away already, or removed with the staging folder later
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(Access::Private.folder_mode()).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && fs::symlink_metadata(folder)?.is_dir() => Ok(()),
        other => other,
    }
}

/// A folder of our own, its lock held. Another process that opens the store between our two steps may take the new
/// folder for a dead one's; then we try the next name.
fn claim(all: &Path) -> io::Result<(PathBuf, File)> {
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    for attempt in 0..100 {
        let folder = all.join(format!("{}-{start:x}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(Access::Private.folder_mode()).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            other => other?,
        }
        let Ok(lock) = new_file(&folder.join(LOCK), Access::Private.file_mode()) else { continue };
        if lock.try_lock().is_ok() && folder.join(LOCK).exists() {
            return Ok((folder, lock));
        }
    }
    Err(io::Error::other("no staging folder could be made in 100 attempts"))
}

fn remove_dead(all: &Path) -> io::Result<()> {
    for entry in fs::read_dir(all)? {
        let folder = entry?.path();
        match File::open(folder.join(LOCK)) {
            // Held while its folder goes, so that two who find the same dead one do not meet.
            Ok(lock) => match lock.try_lock() {
                Ok(()) => remove(&folder)?,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            },
            // Just made and not locked yet, or removed down to the last step: only an empty one goes.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let _ = fs::remove_dir(&folder); // not empty: its owner is making its lock now
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a staging folder, the lock last: a folder without lock is empty.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    fs::remove_dir(folder)
}
