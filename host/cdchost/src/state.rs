//! The state folder as this process' own: its lock, its rights, its control socket.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use cdchost_config::Finding;
use rustix::fs::{Access, access};

const LOCK: &str = "lock";
const SOCKET: &str = "control.sock";

/// What may lie in the folder of a pipeline that never stored anything.
const NOT_STATE: [&str; 3] = [LOCK, SOCKET, ".staging"];

/// The longest path that a unix socket can have.
const SOCKET_PATH_MAX: usize = 107;

/// A state folder that this process holds alone, until it is dropped.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    /// Held, not read: the lock ends with it.
    _lock: File,
}

/// Whether nothing was ever stored in the folder.
pub(crate) fn is_fresh(path: &Path) -> bool {
    let Ok(entries) = path.read_dir() else { return true };
    let known = |name: &std::ffi::OsStr| NOT_STATE.iter().any(|known| name == *known);
    !entries.flatten().any(|entry| !known(&entry.file_name()))
}

/// Everything that would keep [`StateFolder::claim`] from succeeding. Changes nothing.
pub(crate) fn inspect(path: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let shown = path.display();
    let length = path.join(SOCKET).as_os_str().len();
    if length > SOCKET_PATH_MAX {
        let message = format!("the path of the control socket in {shown} has {length} bytes");
        findings.push(Finding::error(message, "choose a `checkpoint.store` whose path has at most 94 bytes"));
    }
    match path.metadata() {
        Ok(meta) if !meta.is_dir() => {
            let message = format!("the state folder {shown} is not a folder");
            findings.push(Finding::error(message, "choose another `checkpoint.store`"));
        }
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
            let message = format!("the state folder {shown} belongs to another user");
            findings.push(Finding::error(message, "run as that user, or choose another `checkpoint.store`"));
        }
        Ok(_) => {
            findings.extend(not_writable(path, path));
            // The socket of another host is no finding of its own.
            findings.extend(other_host(path).or_else(|| socket_in_use(path)));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let existing = path.ancestors().skip(1).find(|folder| folder.exists());
            findings.extend(existing.and_then(|existing| not_writable(path, existing)));
        }
        Err(error) => findings.push(unusable(path, &error)),
    }
    findings
}

impl StateFolder {
    /// Takes the folder for this process; makes it, for this user alone, if it is not there.
    pub(crate) fn claim(path: &Path) -> Result<Self, Finding> {
        let failed = |error: io::Error| unusable(path, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let mode = path.metadata().map_err(failed)?.permissions();
        if mode.mode() & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let mut lock = options().create(true).truncate(false).open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(path, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let id = format!("{}\n", std::process::id());
        lock.set_len(0).and_then(|()| lock.write_all(id.as_bytes())).map_err(failed)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Listens at the control socket. One that a dead process left is replaced.
    pub(crate) fn listen(&self) -> Result<UnixListener, Finding> {
        if let Some(finding) = socket_in_use(&self.path) {
            return Err(finding);
        }
        let socket = self.socket();
        let failed = |error: io::Error| {
            let message = format!("the control socket {} cannot be made: {error}", socket.display());
            Finding::error(message, "choose a `checkpoint.store` on a file system that has sockets")
        };
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(listener)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }
}

impl Drop for StateFolder {
    /// Removes the socket while the lock is held, so that it is never the socket of a successor.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.socket());
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn not_writable(path: &Path, existing: &Path) -> Option<Finding> {
    let error = access(existing, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(unusable(path, &error.into()))
}

fn other_host(path: &Path) -> Option<Finding> {
    let mut lock = File::open(path.join(LOCK)).ok()?;
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock)).then(|| held(path, &mut lock))
}

fn held(path: &Path, lock: &mut File) -> Finding {
    let mut owner = String::new();
    let read = lock.rewind().and_then(|()| lock.take(32).read_to_string(&mut owner));
    let owner = match (read, owner.trim().parse::<u32>()) {
        (Ok(_), Ok(id)) => format!(" (process {id})"),
        _ => String::new(),
    };
    let message = format!("another cdchost{owner} runs on the state folder {}", path.display());
    Finding::error(message, "stop that one first, or give this pipeline a `checkpoint.store` of its own")
}

fn socket_in_use(path: &Path) -> Option<Finding> {
    let socket = path.join(SOCKET);
    UnixStream::connect(&socket).ok()?;
    let message = format!("another process answers at the control socket {}", socket.display());
    Some(Finding::error(message, "stop that process, or choose another `checkpoint.store`"))
}

fn unusable(path: &Path, error: &io::Error) -> Finding {
    let message = format!("the state folder {} cannot be used: {error}", path.display());
    Finding::error(message, "make it writable for this user, or choose another `checkpoint.store`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/state");
        (dir, path)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_for_this_user_alone() {
        let (_dir, path) = folder();
        assert!(inspect(&path).is_empty());
        assert!(!path.exists(), "looking makes nothing");
        let state = StateFolder::claim(&path).unwrap();
        let _listener = state.listen().unwrap();
        assert_eq!((mode(&path), mode(&path.join(LOCK)), mode(&path.join(SOCKET))), (0o700, 0o600, 0o600));
    }

    #[test]
    fn an_open_folder_is_closed() {
        let (_dir, path) = folder();
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let _state = StateFolder::claim(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_second_host_is_refused_with_the_first_ones_process() {
        let (_dir, path) = folder();
        let first = StateFolder::claim(&path).unwrap();
        let _listener = first.listen().unwrap();
        let words = format!("another cdchost (process {}) runs", std::process::id());
        let findings = inspect(&path);
        assert!(findings.len() == 1 && findings[0].message.starts_with(&words), "{findings:?}");
        assert!(StateFolder::claim(&path).unwrap_err().message.starts_with(&words));
        drop(first);
        assert!(!path.join(SOCKET).exists());
        assert!(StateFolder::claim(&path).is_ok());
    }

    #[test]
    fn a_dead_hosts_socket_is_replaced_and_a_live_one_is_not() {
        let (_dir, path) = folder();
        let state = StateFolder::claim(&path).unwrap();
        let live = UnixListener::bind(path.join(SOCKET)).unwrap();
        assert!(state.listen().unwrap_err().message.starts_with("another process answers"));
        drop(live);
        assert!(state.listen().is_ok());
    }

    #[test]
    fn a_folder_without_records_is_fresh() {
        let (_dir, path) = folder();
        assert!(is_fresh(&path));
        let state = StateFolder::claim(&path).unwrap();
        let _listener = state.listen().unwrap();
        assert!(is_fresh(&path));
        std::fs::create_dir(path.join("chain")).unwrap();
        assert!(!is_fresh(&path));
    }

    #[test]
    fn a_file_and_a_long_path_are_refused() {
        let (_dir, path) = folder();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(inspect(&path)[0].message.ends_with("is not a folder"));
        let long = path.with_file_name("x".repeat(100));
        assert!(inspect(&long)[0].message.contains("the path of the control socket"));
    }
}
