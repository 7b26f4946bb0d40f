use std::time::Duration;

use super::*;

/// Both kinds of store, each fresh; the folder is removed with the guard.
async fn stores() -> (tempfile::TempDir, Vec<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}/new/root", folder.path().display());
    let local = Store::open(&url, &BTreeMap::new()).await.unwrap();
    (folder, vec![local, Store::memory()])
}

fn paths(found: &[ObjectMeta]) -> Vec<&str> {
    found.iter().map(|meta| meta.path.as_str()).collect()
}

#[tokio::test]
async fn an_object_is_read_as_it_was_written() {
    let (_guard, stores) = stores().await;
    for store in stores {
        assert!(matches!(store.get("a/b").await, Err(StorageError::NotFound { .. })), "{store:?}");
        store.put("a/b", "first".into()).await.unwrap();
        store.put("a/b", "0123456789".into()).await.unwrap();
        assert_eq!(store.get("a/b").await.unwrap(), "0123456789");
        assert_eq!(store.get_range("a/b", 2..5).await.unwrap(), "234");
        assert_eq!(store.get_range("a/b", 8..50).await.unwrap(), "89");
        assert_eq!(store.get_range("a/b", 50..60).await.unwrap(), "");
        store.delete("a/b").await.unwrap();
        store.delete("a/b").await.unwrap();
        assert!(matches!(store.get("a/b").await, Err(StorageError::NotFound { .. })));
    }
}

#[tokio::test]
async fn of_many_creators_one_wins_and_its_content_stays() {
    let (_guard, stores) = stores().await;
    for store in stores {
        let creators: Vec<_> = (0..16)
            .map(|i| {
                let store = store.clone();
                tokio::spawn(async move { store.put_if_absent("slots/1", format!("{i}").into()).await.unwrap() })
            })
            .collect();
        let mut winners = Vec::new();
        for (i, creator) in creators.into_iter().enumerate() {
            if creator.await.unwrap() == PutOutcome::Created {
                winners.push(i);
            }
        }
        assert_eq!(winners.len(), 1);
        assert_eq!(store.get("slots/1").await.unwrap(), format!("{}", winners[0]));
    }
}

#[tokio::test]
async fn listings_are_in_byte_order_and_go_on_where_they_stopped() {
    let (_guard, stores) = stores().await;
    for store in stores {
        for path in ["t/b", "t/a/2", "t/a/1", "t/a!", "t/a.x", "u", "t/a/1.y/z"] {
            store.put(path, "x".into()).await.unwrap();
        }
        let all = store.list("t", None, 100).await.unwrap();
        assert_eq!(paths(&all), ["t/a!", "t/a.x", "t/a/1", "t/a/1.y/z", "t/a/2", "t/b"]);
        let mut seen = Vec::new();
        while let [meta] = &store.list("t/", seen.last().map(String::as_str), 1).await.unwrap()[..] {
            seen.push(meta.path.clone());
        }
        assert_eq!(seen, paths(&all));
        assert_eq!(store.list("", None, 100).await.unwrap().len(), 7);
        assert_eq!(store.list("absent", None, 100).await.unwrap(), []);
        let below = store.below("t/a").unwrap();
        assert_eq!(paths(&below.list("", Some("1"), 100).await.unwrap()), ["1.y/z", "2"]);
        assert_eq!(below.get("2").await.unwrap(), "x");
    }
}

#[tokio::test]
async fn a_path_cannot_leave_the_root() {
    let (_guard, stores) = stores().await;
    for store in stores {
        for path in ["../x", "a/../../x", "/etc/passwd", "a\0"] {
            assert!(matches!(store.get(path).await, Err(StorageError::Path { .. })), "{path}");
            assert!(matches!(store.put(path, "x".into()).await, Err(StorageError::Path { .. })), "{path}");
            assert!(store.below(path).is_err());
        }
    }
}

#[tokio::test]
async fn an_upload_is_there_when_finished_and_not_before() {
    let (guard, stores) = stores().await;
    for store in stores {
        let mut upload = store.upload("big/one").await.unwrap();
        for part in ["ab", "cd", "ef"] {
            upload.write(part.into()).await.unwrap();
        }
        assert_eq!(store.list("", None, 10).await.unwrap(), []);
        assert_eq!(upload.finish().await.unwrap(), 6);
        assert_eq!(store.get("big/one").await.unwrap(), "abcdef");
        let mut dropped = store.upload("big/two").await.unwrap();
        dropped.write("x".into()).await.unwrap();
        drop(dropped);
        assert_eq!(paths(&store.list("", None, 10).await.unwrap()), ["big/one"]);
    }
    let staged = walk(guard.path()).into_iter().filter(|path| path.contains("/.staging/") && !path.ends_with("lock"));
    assert_eq!(staged.count(), 0);
}

fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.display().to_string());
        if path.is_dir() {
            found.extend(walk(&path));
        }
    }
    found
}

#[tokio::test]
async fn urls_that_name_no_folder_are_refused_with_words() {
    for (url, word) in [
        ("s3://bucket/path", "kind `s3`"),
        ("/tmp/x", "no URL"),
        ("file://host/x", "not absolute"),
        ("file://relative", "not absolute"),
        ("file:///a?b", "'?'"),
        ("file:///a/../b", "`..`"),
        ("file:///a%zz", "hex"),
    ] {
        let error = Store::open(url, &BTreeMap::new()).await.unwrap_err().to_string();
        assert!(error.contains(word), "{url}: {error}");
    }
    let options = BTreeMap::from([("region".to_owned(), "x".to_owned())]);
    let error = Store::open("file:///tmp/never-made", &options).await.unwrap_err().to_string();
    assert!(error.contains("`region`"), "{error}");
    assert!(!Path::new("/tmp/never-made").exists());
}

#[tokio::test(start_paused = true)]
async fn scripted_faults_do_what_they_say() {
    let at = |fault| Store::memory().with_faults(Faults::nth(Operation::PutIfAbsent, 0, fault));

    let store = at(Fault::Fail);
    assert!(store.put_if_absent("a", "abc".into()).await.unwrap_err().is_transient());
    assert!(store.get("a").await.is_err());
    assert_eq!(store.put_if_absent("a", "abc".into()).await.unwrap(), PutOutcome::Created);

    let store = at(Fault::DoneButFail);
    assert!(store.put_if_absent("a", "abc".into()).await.is_err());
    assert_eq!(store.get("a").await.unwrap(), "abc");

    let store = at(Fault::Tear(2));
    assert!(store.put_if_absent("a", "abc".into()).await.is_err());
    assert_eq!(store.get("a").await.unwrap(), "ab");

    let store = at(Fault::Delay(Duration::from_secs(30)));
    let before = tokio::time::Instant::now();
    assert_eq!(store.put_if_absent("a", "abc".into()).await.unwrap(), PutOutcome::Created);
    assert_eq!(before.elapsed(), Duration::from_secs(30));
}
