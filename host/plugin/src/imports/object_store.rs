//! Import `object-store`: files of the roots that the pipeline file grants by name.
//!
//! Paths are checked by [`cdchost_storage`]: relative, and without a way out of the root.

use bytes::Bytes;
use cdchost_storage::{PutOutcome, StorageError, Store};
use wasmtime::component::Resource;

use super::GuestState;
use crate::bindings::v0_1::cdchost::plugin::object_store::{Host, HostUpload, ObjectMeta, StoreError};
use crate::imports::log::plain;

/// Entries of one listing.
const LIST_MAX: u32 = 10_000;
/// Paths of one delete.
const DELETE_MAX: usize = 10_000;

/// A file being written in parts. Dropped before it is finished, nothing of it remains.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct Upload {
    root: String,
    stage: Stage,
}

/// A constructor cannot fail in the contract: its fault is told by the calls that follow.
#[derive(Debug)]
enum Stage {
    Open(Box<cdchost_storage::Upload>),
    Refused(StoreError),
    Ended,
}

type StoreResult<T> = wasmtime::Result<Result<T, StoreError>>;

impl GuestState {
    fn store(&self, root: &str) -> Result<Store, StoreError> {
        let granted = self.grant.stores.get(root).cloned();
        granted.ok_or_else(|| StoreError::Denied(format!("root {:?} is not granted", plain(root))))
    }
}

/// Bytes of an object, at most as many as fit into the guest.
async fn read(
    (root, store): (&str, Store),
    path: &str,
    (offset, length): (u64, Option<u64>),
    bytes_max: u64,
) -> Result<Bytes, StoreError> {
    let asked = length.unwrap_or(u64::MAX).min(bytes_max.saturating_add(1));
    let bytes =
        store.get_range(path, offset..offset.saturating_add(asked)).await.map_err(|error| refuse(root, error))?;
    if bytes.len() as u64 > bytes_max {
        let path = plain(path);
        return Err(StoreError::Denied(format!("{path} is larger than the guest's memory: read it in ranges")));
    }
    Ok(bytes)
}

/// Objects whose path begins with `prefix`, which need not end at a folder; a [`Store`] lists whole folders.
async fn list(
    store: &Store,
    prefix: &str,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<cdchost_storage::ObjectMeta>, StorageError> {
    let folder = prefix.rfind('/').and_then(|end| prefix.get(..end)).unwrap_or_default();
    // In byte order all that begin with the prefix follow the prefix without its last character.
    let mut before = prefix.to_owned();
    before.pop();
    let mut after = after.max(Some(before).filter(|before| !before.is_empty()));
    let mut found = Vec::new();
    while found.len() < limit {
        // Buckets answer this many at once at least: asking for fewer saves nothing.
        let asked = (limit - found.len()).max(1_000);
        let page = store.list(folder, after.as_deref(), asked).await?;
        after = page.last().map(|last| last.path.clone());
        let ended = page.len() < asked
            || page.last().is_some_and(|last| last.path.as_str() > prefix && !last.path.starts_with(prefix));
        found.extend(page.into_iter().filter(|meta| meta.path.starts_with(prefix)));
        if ended {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

impl Host for GuestState {
    async fn get(&mut self, root: String, path: String) -> StoreResult<Vec<u8>> {
        let (store, bytes_max) = (self.store(&root), self.grant.limits.memory.0);
        Ok(match store {
            Ok(store) => read((&root, store), &path, (0, None), bytes_max).await.map(Vec::from),
            Err(denied) => Err(denied),
        })
    }

    async fn get_range(&mut self, root: String, path: String, offset: u64, length: u64) -> StoreResult<Vec<u8>> {
        let (store, bytes_max) = (self.store(&root), self.grant.limits.memory.0);
        Ok(match store {
            Ok(store) => read((&root, store), &path, (offset, Some(length)), bytes_max).await.map(Vec::from),
            Err(denied) => Err(denied),
        })
    }

    async fn put(&mut self, root: String, path: String, data: Vec<u8>) -> StoreResult<()> {
        let store = match self.store(&root) {
            Ok(store) => store,
            Err(denied) => return Ok(Err(denied)),
        };
        Ok(store.put(&path, data.into()).await.map_err(|error| refuse(&root, error)))
    }

    async fn put_if_absent(&mut self, root: String, path: String, data: Vec<u8>) -> StoreResult<()> {
        let store = match self.store(&root) {
            Ok(store) => store,
            Err(denied) => return Ok(Err(denied)),
        };
        Ok(match store.put_if_absent(&path, data.into()).await {
            Ok(PutOutcome::Created) => Ok(()),
            Ok(PutOutcome::AlreadyExists) => Err(StoreError::AlreadyExists),
            Err(error) => Err(refuse(&root, error)),
        })
    }

    async fn list(
        &mut self,
        root: String,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> StoreResult<Vec<ObjectMeta>> {
        let store = match self.store(&root) {
            Ok(store) => store,
            Err(denied) => return Ok(Err(denied)),
        };
        let found = list(&store, &prefix, after, limit.min(LIST_MAX) as usize).await;
        let meta = |found: cdchost_storage::ObjectMeta| ObjectMeta {
            path: found.path,
            size: found.size,
            modified_micros: found.modified_micros,
        };
        Ok(found.map(|found| found.into_iter().map(meta).collect()).map_err(|error| refuse(&root, error)))
    }

    async fn delete(&mut self, root: String, paths: Vec<String>) -> StoreResult<()> {
        let store = match self.store(&root) {
            Ok(store) => store,
            Err(denied) => return Ok(Err(denied)),
        };
        if paths.len() > DELETE_MAX {
            return Ok(Err(StoreError::Denied(format!("a call deletes {DELETE_MAX} objects at most"))));
        }
        for path in &paths {
            if let Err(error) = store.delete(path).await {
                return Ok(Err(refuse(&root, error)));
            }
        }
        Ok(Ok(()))
    }
}

impl HostUpload for GuestState {
    async fn new(&mut self, root: String, path: String) -> wasmtime::Result<Resource<Upload>> {
        let stage = match self.store(&root) {
            Ok(store) => match store.upload(&path).await {
                Ok(upload) => Stage::Open(Box::new(upload)),
                Err(error) => Stage::Refused(refuse(&root, error)),
            },
            Err(denied) => Stage::Refused(denied),
        };
        Ok(self.table.push(Upload { root, stage })?)
    }

    async fn write(&mut self, upload: Resource<Upload>, data: Vec<u8>) -> StoreResult<()> {
        let upload = self.table.get_mut(&upload)?;
        match &mut upload.stage {
            Stage::Open(open) => match open.write(data.into()).await {
                Ok(()) => Ok(Ok(())),
                Err(error) => {
                    upload.stage = Stage::Ended;
                    Ok(Err(refuse(&upload.root, error)))
                }
            },
            Stage::Refused(error) => Ok(Err(error.clone())),
            Stage::Ended => Ok(Err(ended())),
        }
    }

    async fn finish(&mut self, upload: Resource<Upload>) -> StoreResult<u64> {
        let upload = self.table.get_mut(&upload)?;
        Ok(match std::mem::replace(&mut upload.stage, Stage::Ended) {
            Stage::Open(open) => open.finish().await.map_err(|error| refuse(&upload.root, error)),
            Stage::Refused(error) => Err(error),
            Stage::Ended => Err(ended()),
        })
    }

    async fn drop(&mut self, upload: Resource<Upload>) -> wasmtime::Result<()> {
        self.table.delete(upload)?;
        Ok(())
    }
}

fn ended() -> StoreError {
    StoreError::Denied("the upload has ended: it failed or was finished".into())
}

/// What a guest gets to know: no path of the host, no credentials.
fn refuse(root: &str, error: StorageError) -> StoreError {
    match error {
        StorageError::NotFound { .. } => StoreError::NotFound,
        error if error.is_transient() => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            StoreError::Unavailable(plain(&format!("store {root}: {error}{cause}")))
        }
        error => StoreError::Denied(plain(&format!("store {root}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(prefix: &str, after: Option<&str>, limit: usize, expect: &[&str]) {
        let store = Store::memory();
        for path in ["a/b-1", "a/b-2", "a/b/c", "a/c", "ab", "b"] {
            store.put(path, Bytes::new()).await.unwrap();
        }
        let found = list(&store, prefix, after.map(str::to_owned), limit).await.unwrap();
        assert_eq!(found.iter().map(|meta| meta.path.as_str()).collect::<Vec<_>>(), expect, "{prefix:?} {after:?}");
    }

    #[tokio::test]
    async fn a_prefix_need_not_end_at_a_folder() {
        check("", None, 9, &["a/b-1", "a/b-2", "a/b/c", "a/c", "ab", "b"]).await;
        check("a", None, 9, &["a/b-1", "a/b-2", "a/b/c", "a/c", "ab"]).await;
        check("a/", None, 9, &["a/b-1", "a/b-2", "a/b/c", "a/c"]).await;
        check("a/b-", None, 9, &["a/b-1", "a/b-2"]).await;
        check("a/b-2", None, 9, &["a/b-2"]).await;
        check("x/y", None, 9, &[]).await;
        check("a/b", Some("a/b-1"), 1, &["a/b-2"]).await;
        check("a/b", Some("a/b/c"), 9, &[]).await;
        check("a/b", Some("a/a"), 9, &["a/b-1", "a/b-2", "a/b/c"]).await;
        check("a/b", None, 0, &[]).await;
    }
}
