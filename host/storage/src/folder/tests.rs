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
    (Folder::open_on(root, Access::Private, Arc::new(disk)).unwrap(), log)
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
async fn private_files_are_for_their_owner_alone_and_others_for_whom_the_umask_lets_in() {
    let guard = tempfile::tempdir().unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // A umask is the whole process's: what it is shows at a file of the standard library's.
    fs::write(guard.path().join("file"), "").unwrap();
    fs::create_dir(guard.path().join("folder")).unwrap();
    let usual = (mode(guard.path().join("file")), mode(guard.path().join("folder")));
    for (access, (file, made)) in [(Access::Private, (0o600, 0o700)), (Access::Umask, usual)] {
        let root = guard.path().join(format!("{access:?}"));
        let folder = Folder::open(&root, access).unwrap();
        folder.put(path("a/b/c"), "x".into()).await.unwrap();
        folder.put_if_absent(path("a/b/d"), "x".into()).await.unwrap();
        let mut upload = folder.upload(path("a/b/e")).await.unwrap();
        upload.write("x".into()).await.unwrap();
        upload.finish().await.unwrap();
        assert_eq!(["a/b/c", "a/b/d", "a/b/e"].map(|name| mode(root.join(name))), [file; 3], "{access:?}");
        assert_eq!([root.clone(), root.join("a"), root.join("a/b")].map(mode), [made; 3], "{access:?}");
        assert_eq!(mode(root.join(STAGING)), 0o700);
        folder.private().put(path("own/f"), "x".into()).await.unwrap();
        assert_eq!((mode(root.join("own")), mode(root.join("own/f"))), (0o700, 0o600));
    }
}

#[tokio::test]
async fn symbolic_links_are_not_followed() {
    let guard = tempfile::tempdir().unwrap();
    let (root, outside) = (guard.path().join("root"), guard.path().join("outside"));
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    let folder = Folder::open(&root, Access::Private).unwrap();
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
    let living = Folder::open(guard.path(), Access::Private).unwrap();
    let staged = living.shared.stage().unwrap();
    let dead = guard.path().join(STAGING).join("1-1-0");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("lock"), "").unwrap();
    fs::write(dead.join("7"), "half").unwrap();
    fs::create_dir(guard.path().join(STAGING).join("1-2-0")).unwrap();
    let second = Folder::open(guard.path(), Access::Private).unwrap();
    assert!(staged.path.exists() && !dead.exists());
    assert_eq!(fs::read_dir(guard.path().join(STAGING)).unwrap().count(), 2);
    drop((living, staged, second));
    assert_eq!(fs::read_dir(guard.path().join(STAGING)).unwrap().count(), 0);
}
