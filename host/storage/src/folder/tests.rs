use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use super::*;

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

/// What was synced, and whether the watched name existed then.
type SyncLog = Arc<Mutex<Vec<(PathBuf, bool)>>>;

/// Writes down every sync, and whether `watched` existed then; fails the `fail`th.
#[derive(Debug)]
struct Watch {
    watched: PathBuf,
    log: SyncLog,
    fail: Option<usize>,
}

impl Disk for Watch {
    fn sync(&self, _: &File, path: &Path) -> io::Result<()> {
        let mut log = self.log.lock().unwrap();
        log.push((path.to_owned(), self.watched.exists()));
        if self.fail == Some(log.len() - 1) { Err(io::Error::other("disk error")) } else { Ok(()) }
    }
}

fn watched(root: &Path, fail: Option<usize>) -> (Folder, SyncLog) {
    let log = SyncLog::default();
    let disk = Watch { watched: root.join("slots/1"), log: Arc::clone(&log), fail };
    (Folder::open_on(root, Box::new(disk)).unwrap(), log)
}

#[tokio::test]
async fn content_is_synced_before_its_name_exists_and_the_name_before_the_answer() {
    let guard = tempfile::tempdir().unwrap();
    let root = guard.path().canonicalize().unwrap();
    let (folder, log) = watched(&root, None);
    assert_eq!(folder.put_if_absent(path("slots/1"), "x".into()).await.unwrap(), PutOutcome::Created);
    let seen = std::mem::take(&mut *log.lock().unwrap());
    let [(content, named), (made, _), (holder, there)] = &seen[..] else { panic!("{seen:?}") };
    assert!(content.starts_with(root.join(STAGING)) && !named);
    assert_eq!(made, &root);
    assert!(holder == &root.join("slots") && *there);

    // Someone else's object: the answer is durable as well.
    assert_eq!(folder.put_if_absent(path("slots/1"), "y".into()).await.unwrap(), PutOutcome::AlreadyExists);
    assert_eq!(log.lock().unwrap().last(), Some(&(root.join("slots"), true)));
}

#[tokio::test]
async fn content_that_could_not_be_synced_never_gets_the_name() {
    let guard = tempfile::tempdir().unwrap();
    let (folder, _) = watched(guard.path(), Some(0));
    assert!(folder.put_if_absent(path("slots/1"), "x".into()).await.unwrap_err().is_transient());
    assert!(matches!(folder.get(path("slots/1"), None).await, Err(StorageError::NotFound { .. })));
    assert_eq!(folder.put_if_absent(path("slots/1"), "x".into()).await.unwrap(), PutOutcome::Created);
}

#[tokio::test]
async fn a_name_that_could_not_be_synced_is_an_error_though_done() {
    let guard = tempfile::tempdir().unwrap();
    let (folder, _) = watched(guard.path(), Some(2));
    assert!(folder.put_if_absent(path("slots/1"), "x".into()).await.is_err());
    assert_eq!(folder.put_if_absent(path("slots/1"), "x".into()).await.unwrap(), PutOutcome::AlreadyExists);
    assert_eq!(folder.get(path("slots/1"), None).await.unwrap(), "x");
}

#[tokio::test]
async fn files_and_folders_are_for_their_owner_alone() {
    let guard = tempfile::tempdir().unwrap();
    let root = guard.path().join("root");
    let folder = Folder::open(&root).unwrap();
    folder.put(path("a/b/c"), "x".into()).await.unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(root.join("a/b/c")), 0o600);
    for made in [root.clone(), root.join("a"), root.join("a/b"), root.join(STAGING)] {
        assert_eq!(mode(made), 0o700);
    }
}

#[tokio::test]
async fn symbolic_links_are_not_followed() {
    let guard = tempfile::tempdir().unwrap();
    let (root, outside) = (guard.path().join("root"), guard.path().join("outside"));
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    let folder = Folder::open(&root).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret"), root.join("file")).unwrap();
    for object in ["link/secret", "file", "link/new"] {
        assert!(matches!(folder.get(path(object), None).await, Err(StorageError::Denied { .. })), "{object}");
        assert!(matches!(folder.put(path(object), "x".into()).await, Err(StorageError::Denied { .. })), "{object}");
        assert!(matches!(folder.delete(path(object)).await, Err(StorageError::Denied { .. })), "{object}");
    }
    assert!(folder.list(Some(path("link")), None, 9).await.is_err());
    assert_eq!(folder.list(None, None, 9).await.unwrap(), []);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"s");
}

#[tokio::test]
async fn what_dead_processes_left_half_written_is_removed_and_the_living_ones_is_kept() {
    let guard = tempfile::tempdir().unwrap();
    let living = Folder::open(guard.path()).unwrap();
    let staged = living.shared.staging.create().unwrap();
    let dead = guard.path().join(STAGING).join("1-1-0");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("lock"), "").unwrap();
    fs::write(dead.join("7"), "half").unwrap();
    fs::create_dir(guard.path().join(STAGING).join("1-2-0")).unwrap();
    let second = Folder::open(guard.path()).unwrap();
    assert!(staged.path.exists() && !dead.exists());
    assert_eq!(fs::read_dir(guard.path().join(STAGING)).unwrap().count(), 2);
    drop((living, staged, second));
    assert_eq!(fs::read_dir(guard.path().join(STAGING)).unwrap().count(), 0);
}
