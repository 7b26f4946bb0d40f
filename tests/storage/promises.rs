//! The same promises, kept by a folder, by memory and by a bucket.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cdchost_storage::{ObjectMeta, PutOutcome, StorageError, Store};
use cdchost_tests::bucket::{self, Bucket};
use cdchost_tests::wait;

/// Each kind of store, fresh; folder and bucket end with the guards.
struct Stores {
    folder: tempfile::TempDir,
    bucket: Bucket,
    all: Vec<Store>,
}

async fn stores() -> Stores {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}/new/root", folder.path().display());
    let local = Store::open(&url, &BTreeMap::new()).await.unwrap();
    let bucket = Bucket::open().unwrap();
    let url = format!("s3://{}/a prefix/of two", bucket::NAME);
    let remote = Store::open(&url, &bucket.options()).await.unwrap().below("own").unwrap();
    Stores { folder, bucket, all: vec![local, Store::memory(), remote] }
}

fn paths(found: &[ObjectMeta]) -> Vec<&str> {
    found.iter().map(|meta| meta.path.as_str()).collect()
}

#[tokio::test]
async fn an_object_is_read_as_it_was_written() {
    for store in stores().await.all {
        assert!(matches!(store.get("a/b").await, Err(StorageError::NotFound { .. })), "{store:?}");
        assert!(matches!(store.get_range("a/b", 2..5).await, Err(StorageError::NotFound { .. })), "{store:?}");
        store.put("a/b", "first".into()).await.unwrap();
        store.put("a/b", "0123456789".into()).await.unwrap();
        assert_eq!(store.get("a/b").await.unwrap(), "0123456789");
        assert_eq!(store.get_range("a/b", 2..5).await.unwrap(), "234");
        assert_eq!(store.get_range("a/b", 8..50).await.unwrap(), "89");
        assert_eq!(store.get_range("a/b", 10..11).await.unwrap(), "");
        assert_eq!(store.get_range("a/b", 50..60).await.unwrap(), "");
        store.put("a/empty", Bytes::new()).await.unwrap();
        assert_eq!(store.get("a/empty").await.unwrap(), "");
        assert_eq!(store.get_range("a/empty", 0..9).await.unwrap(), "");
        store.delete("a/b").await.unwrap();
        store.delete("a/b").await.unwrap();
        assert!(matches!(store.get("a/b").await, Err(StorageError::NotFound { .. })));
    }
}

#[tokio::test]
async fn names_are_bytes_and_nothing_in_them_has_a_meaning() {
    for store in stores().await.all {
        for path in ["ü/#1", "a b/c+d", "per%cent/%2F", "q?x=1&y=2", "k=v/<x>'\"", "~!*()", "a..b/..."] {
            store.put(path, path.to_owned().into()).await.unwrap();
            assert_eq!(store.get(path).await.unwrap(), path, "{store:?}");
            assert_eq!(paths(&store.list("", None, 9).await.unwrap()), [path], "{store:?}");
            store.delete(path).await.unwrap();
        }
    }
}

#[tokio::test]
async fn of_many_creators_one_wins_and_its_content_stays() {
    for store in stores().await.all {
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
    for store in stores().await.all {
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
        // A place to go on from need not be a path.
        assert_eq!(paths(&store.list("t", Some("t/a/"), 100).await.unwrap()), ["t/a/1", "t/a/1.y/z", "t/a/2", "t/b"]);
        let below = store.below("t/a").unwrap();
        assert_eq!(paths(&below.list("", Some("1"), 100).await.unwrap()), ["1.y/z", "2"]);
        assert_eq!(below.get("2").await.unwrap(), "x");
    }
}

/// More than the page of any store, so that pages are put together.
#[tokio::test]
async fn a_long_listing_is_whole() {
    let stores = stores().await;
    for store in stores.all.iter().skip(1) {
        let names: Vec<String> = (0..2_100).map(|n| format!("many/{n:04}")).collect();
        for name in &names {
            store.put(name, "x".into()).await.unwrap();
        }
        assert_eq!(paths(&store.list("many", None, 9_999).await.unwrap()), names);
        assert_eq!(paths(&store.list("many", Some("many/0999"), 1_050).await.unwrap()), names[1_000..2_050]);
    }
}

#[tokio::test]
async fn a_path_cannot_leave_the_root() {
    for store in stores().await.all {
        for path in ["../x", "a/../../x", "/etc/passwd", "a\0"] {
            assert!(matches!(store.get(path).await, Err(StorageError::Path { .. })), "{path}");
            assert!(matches!(store.put(path, "x".into()).await, Err(StorageError::Path { .. })), "{path}");
            assert!(store.below(path).is_err());
        }
    }
}

#[tokio::test]
async fn an_upload_is_there_when_finished_and_not_before() {
    let Stores { folder, bucket, all } = stores().await;
    // Small ones; and one of several parts at a bucket, cut at other places than those parts.
    let large = Bytes::from((0..3_000_001_u32).map(|n| n as u8).collect::<Vec<u8>>());
    for parts in [vec!["ab".into(), "cd".into(), "ef".into()], vec![large; 4], vec![]] {
        let whole: Vec<u8> = parts.iter().flatten().copied().collect();
        for store in &all {
            let mut upload = store.upload("big/one").await.unwrap();
            for part in &parts {
                upload.write(part.clone()).await.unwrap();
            }
            assert_eq!(store.list("", None, 10).await.unwrap(), []);
            assert_eq!(upload.finish().await.unwrap(), whole.len() as u64);
            assert!(store.get("big/one").await.unwrap() == whole, "{store:?}");
            let mut dropped = store.upload("big/two").await.unwrap();
            for part in &parts {
                dropped.write(part.clone()).await.unwrap();
            }
            drop(dropped);
            assert_eq!(paths(&store.list("", None, 10).await.unwrap()), ["big/one"]);
            store.delete("big/one").await.unwrap();
        }
    }
    drop(all);
    let staged = walk(folder.path()).into_iter();
    assert_eq!(staged.filter(|path| path.contains("/.staging/") && !path.ends_with("lock")).count(), 0);
    // What was given up at a bucket goes beside us.
    let gone = async || Ok((bucket.open_uploads() == 0).then_some(()));
    wait::until_async("what was given up is gone", Duration::from_secs(30), gone).await.unwrap();
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
