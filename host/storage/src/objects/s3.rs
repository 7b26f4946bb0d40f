//! Buckets of S3 and of stores that speak its API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use super::Objects;
use crate::path::ObjectPath;

/// Calls are repeated inside for this long; then the caller decides.
const RETRIES: usize = 5;
const RETRY_FOR: Duration = Duration::from_secs(60);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// One answer, with its content.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// What the store is told where nothing is configured; those beside Amazon's take any.
const REGION: &str = "us-east-1";

/// The bucket and the prefix that a URL names; nothing is asked yet.
pub(crate) fn open(rest: &str, options: &BTreeMap<String, String>) -> Result<(Objects, Option<ObjectPath>), String> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() || !bucket.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        return Err("it names no bucket; write s3://bucket/prefix".into());
    }
    let prefix = ObjectPath::parse_folder(prefix).map_err(|error| error.to_string())?;
    const KNOWN: [&str; 5] = ["endpoint", "region", "access-key-id", "secret-access-key", "allow-http"];
    if let Some(key) = options.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("a bucket has no option `{key}`; remove it"));
    }
    let needed = |key| options.get(key).ok_or_else(|| format!("`{key}` is missing; add it"));
    let backoff = BackoffConfig { init_backoff: PAUSE_FIRST, max_backoff: PAUSE_MAX, base: 2.0 };
    let http = options.get("allow-http").is_some_and(|allowed| allowed == "true");
    let client = ClientOptions::new().with_timeout(ANSWER_LIMIT).with_connect_timeout(CONNECT_LIMIT);
    let region = options.get("region").map_or(REGION, String::as_str);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(region)
        .with_access_key_id(needed("access-key-id")?)
        .with_secret_access_key(needed("secret-access-key")?)
        .with_client_options(client.with_allow_http(http))
        .with_retry(RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_FOR })
        // Stores beside Amazon's often do not know it.
        .with_disable_bulk_delete(true);
    if let Some(endpoint) = options.get("endpoint") {
        builder = builder.with_endpoint(endpoint);
    }
    // The process has one provider of cryptography; whoever comes second finds the same one there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = builder.build().map_err(|error| error.to_string())?;
    let at = match options.get("endpoint") {
        // An account may stand in front of the host.
        Some(endpoint) => format!("bucket {bucket} at {}", endpoint.rsplit('@').next().unwrap_or_default()),
        None => format!("bucket {bucket} of S3 in region {region}"),
    };
    Ok((Objects { store: Arc::new(store), name: at.into() }, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn errors_name_the_bucket_and_where_it_is_and_no_key() {
        for (extra, place) in [
            (&[("endpoint", "http://127.0.0.1:9000")][..], "bucket lake at http://127.0.0.1:9000"),
            (&[("endpoint", "http://canary:canary@127.0.0.1:9000")], "bucket lake at 127.0.0.1:9000"),
            (&[("region", "eu-central-1")], "bucket lake of S3 in region eu-central-1"),
            (&[], "bucket lake of S3 in region us-east-1"),
        ] {
            let keys = [("access-key-id", "canary"), ("secret-access-key", "canary"), ("allow-http", "true")];
            let options = keys.iter().chain(extra).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let (objects, _) = open("lake/x", &options.collect()).unwrap();
            assert_eq!(objects.shown(""), place);
            assert_eq!(objects.shown("x/a"), format!("x/a in {place}"));
            // What a call says, without a call to anybody.
            let memory = Objects { name: objects.name, ..Objects::memory() };
            let missing = memory.get(&ObjectPath::parse("x/a").unwrap(), None).await.unwrap_err();
            assert_eq!(missing.to_string(), format!("object x/a in {place} does not exist"));
        }
    }
}
