//! What only a bucket can do: refuse keys, answer late, lose answers, not know conditions.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use cdchost_storage::{PutOutcome, StorageError, Store};
use cdchost_tests::bucket::{self, Bucket, Fault, SECRET};

const URL: &str = "s3://lake-bucket/root";

fn with(bucket: &Bucket, key: &str, value: &str) -> BTreeMap<String, String> {
    let mut options = bucket.options();
    options.insert(key.into(), value.into());
    options
}

/// All that an error says, to whoever asks.
fn said(error: &StorageError) -> String {
    let cause = error.source().map(|cause| format!("{cause} {cause:?}")).unwrap_or_default();
    format!("{error}: {cause} {error:?} {}", error.instruction())
}

#[tokio::test]
async fn what_is_wrong_with_a_bucket_is_said_in_words() {
    let bucket = Bucket::open().unwrap();
    assert!(URL.contains(bucket::NAME));
    for (url, options, words) in [
        (URL, with(&bucket, "access-key-id", "AKOTHER"), ["does not know the access key", "`access-key-id`"]),
        (URL, with(&bucket, "secret-access-key", "s3cret-canary"), ["secret does not belong", "`secret-access-key`"]),
        (URL, with(&bucket, "region", "us-east-1"), ["another region", "`region`"]),
        ("s3://no-such-bucket/root", bucket.options(), ["bucket is not there", "make the bucket"]),
    ] {
        let error = Store::open(url, &options).await.unwrap_err();
        assert!(!error.is_transient(), "{error}");
        let said = said(&error);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        let place = format!("bucket {} at {}", url["s3://".len()..].trim_end_matches("/root"), options["endpoint"]);
        assert!(said.contains(&place) && !said.contains("canary") && !said.contains(SECRET), "{said}");
    }
    assert_eq!(bucket.keys(), [""; 0]);
}

#[tokio::test]
async fn a_store_that_is_away_may_come_back() {
    let bucket = Bucket::open().unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Store::open(URL, &with(&bucket, "endpoint", &format!("http://{nobody}"))).await.unwrap_err();
    let said = said(&error);
    assert!(error.is_transient() && said.contains("Connection refused") && said.contains("reachable"), "{said}");
    assert!(said.contains(&format!("bucket {} at http://{nobody}", bucket::NAME)) && !said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn an_address_without_encryption_must_be_asked_for() {
    let bucket = Bucket::open().unwrap();
    let error = Store::open(URL, &with(&bucket, "allow-http", "false")).await.unwrap_err();
    assert!(!error.to_string().contains(SECRET), "{error}");
    assert_eq!(bucket.asked(), [""; 0]);
}

#[tokio::test]
async fn a_store_that_does_not_know_conditions_is_refused() {
    let bucket = Bucket::open().unwrap();
    bucket.script(|_, _| Fault::Unconditional);
    let error = Store::open(URL, &bucket.options()).await.unwrap_err();
    let said = said(&error);
    assert!(
        said.contains("writes over an object") && said.contains("If-None-Match") && !error.is_transient(),
        "{said}"
    );
}

/// Every write of a small object, at each fault that passes: done once or already there, and read back as written.
#[tokio::test]
async fn writes_outlive_what_passes() {
    let slow = Fault::Slow(Duration::from_millis(300));
    for (fault, times) in [(Fault::Error, 1), (Fault::Error, 3), (Fault::LostAnswer, 1), (slow, 1)] {
        let bucket = Bucket::open().unwrap();
        let store = Store::open(URL, &bucket.options()).await.unwrap();
        let mut left = times;
        let hit = move |method: &hyper::Method, _: &str| {
            let hit = left > 0 && method == hyper::Method::PUT;
            left -= usize::from(hit);
            if hit { fault } else { Fault::None }
        };
        bucket.script(hit);
        store.put("plain", "1".into()).await.unwrap();
        bucket.script(hit);
        let created = store.put_if_absent("created", "2".into()).await.unwrap();
        // After a lost answer the repeated call meets its own object: the caller must look, and the store says so.
        let own = if fault == Fault::LostAnswer { PutOutcome::AlreadyExists } else { PutOutcome::Created };
        assert_eq!(created, own, "{fault:?}");
        assert_eq!(store.put_if_absent("created", "3".into()).await.unwrap(), PutOutcome::AlreadyExists);
        bucket.script(hit);
        let mut upload = store.upload("parts").await.unwrap();
        upload.write(vec![7; 6 << 20].into()).await.unwrap();
        upload.finish().await.unwrap();
        assert_eq!(store.get("plain").await.unwrap(), "1");
        assert_eq!(store.get("created").await.unwrap(), "2");
        assert_eq!(store.get("parts").await.unwrap().len(), 6 << 20);
    }
}

/// "Under way" is not "there": what the other write makes may never come.
#[tokio::test]
async fn a_conflict_is_no_word_about_the_object() {
    let bucket = Bucket::open().unwrap();
    let store = Store::open(URL, &bucket.options()).await.unwrap();
    bucket.script(|_, _| Fault::Conflict);
    let error = store.put_if_absent("slots/1", "x".into()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    bucket.script(|_, _| Fault::None);
    assert_eq!(store.put_if_absent("slots/1", "x".into()).await.unwrap(), PutOutcome::Created);
}

#[tokio::test]
async fn a_store_that_stays_broken_is_an_error_in_the_end() {
    let bucket = Bucket::open().unwrap();
    let store = Store::open(URL, &bucket.options()).await.unwrap();
    store.put("a", "x".into()).await.unwrap();
    bucket.script(|_, _| Fault::Error);
    let error = store.get("a").await.unwrap_err();
    assert!(error.is_transient() && said(&error).contains("InternalError"), "{}", said(&error));
    assert!(bucket.asked().len() > 3);
}

/// A small upload costs one call, a large one its parts and two.
#[tokio::test]
async fn an_upload_asks_no_more_than_it_must() {
    let bucket = Bucket::open().unwrap();
    let store = Store::open(URL, &bucket.options()).await.unwrap();
    for (bytes, asked) in [(1 << 20, vec!["PUT"]), (11 << 20, vec!["POST", "PUT", "PUT", "PUT", "POST"])] {
        bucket.asked();
        let mut upload = store.upload("x").await.unwrap();
        for _ in 0..bytes >> 18 {
            upload.write(Bytes::from_static(&[1; 1 << 18])).await.unwrap();
        }
        assert_eq!(upload.finish().await.unwrap(), bytes);
        assert_eq!(bucket.asked().iter().map(|call| call.split(' ').next().unwrap()).collect::<Vec<_>>(), asked);
    }
    assert_eq!(bucket.open_uploads(), 0);
}
