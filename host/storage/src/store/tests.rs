use std::time::Duration;

use super::*;

#[tokio::test]
async fn urls_that_name_no_folder_are_refused_with_words() {
    for (url, word) in [
        ("gs://bucket/path", "kind `gs`"),
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

#[test]
fn what_heals_a_folder_fits_what_is_wrong() {
    for (kind, word) in [
        (std::io::ErrorKind::ReadOnlyFilesystem, "another file system"),
        (std::io::ErrorKind::NotFound, "owned by this user"),
        (std::io::ErrorKind::PermissionDenied, "owned by this user"),
    ] {
        let said = healing(&kind.into());
        assert!(said.contains(word), "{kind}: {said}");
    }
}

#[tokio::test]
async fn buckets_that_cannot_be_opened_are_refused_with_words() {
    let whole = [("access-key-id", "A"), ("secret-access-key", "s3cret-canary"), ("endpoint", "http://127.0.0.1:1")];
    let without = |key: &str| whole.into_iter().filter(|(k, _)| *k != key).collect::<Vec<_>>();
    for (url, options, word) in [
        ("s3://", whole.to_vec(), "no bucket"),
        ("s3:///x", whole.to_vec(), "no bucket"),
        ("s3://a?b", whole.to_vec(), "no bucket"),
        ("s3://a/b/../c", whole.to_vec(), "leads elsewhere"),
        ("s3://a/b", without("access-key-id"), "`access-key-id`"),
        ("s3://a/b", without("secret-access-key"), "`secret-access-key`"),
        ("s3://a/b", [&whole[..], &[("bucket", "x")]].concat(), "`bucket`"),
    ] {
        let options = options.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let error = Store::open(url, &options).await.unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains("canary"), "{url}: {error}");
    }
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

    let store = at(Fault::Deny);
    assert!(matches!(store.put_if_absent("a", "abc".into()).await, Err(StorageError::Denied { .. })));
    assert!(store.get("a").await.is_err());

    let store = at(Fault::Tear(2));
    assert!(store.put_if_absent("a", "abc".into()).await.is_err());
    assert_eq!(store.get("a").await.unwrap(), "ab");
    let store = store.with_faults(Faults::nth(Operation::PutIfAbsent, 0, Fault::Tear(1)));
    assert_eq!(store.put_if_absent("a", "xyz".into()).await.unwrap(), PutOutcome::AlreadyExists);
    assert_eq!(store.get("a").await.unwrap(), "ab", "what is there is not torn");

    let store = at(Fault::Delay(Duration::from_secs(30)));
    let before = tokio::time::Instant::now();
    assert_eq!(store.put_if_absent("a", "abc".into()).await.unwrap(), PutOutcome::Created);
    assert_eq!(before.elapsed(), Duration::from_secs(30));

    let store = at(Fault::Late(Duration::from_secs(30)));
    let mut put = std::pin::pin!(store.put_if_absent("a", "abc".into()));
    assert!(tokio::time::timeout(Duration::from_secs(29), put.as_mut()).await.is_err());
    assert_eq!(store.get("a").await.unwrap(), "abc", "it is done before it answers");
    assert_eq!(put.await.unwrap(), PutOutcome::Created);
}
