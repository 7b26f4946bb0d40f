//! A backend over `object_store`: memory, or a bucket.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode};

use self::failure::failure;
pub(crate) use self::multipart::ObjectUpload;
use crate::path::ObjectPath;
use crate::upload::UploadInner;
use crate::{ObjectMeta, PutOutcome, StorageError, Upload};

mod failure;
mod multipart;
pub(crate) mod s3;

#[derive(Clone, Debug)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    /// What errors call it: the bucket and where it is; empty for memory.
    name: Arc<str>,
}

impl Objects {
    pub(crate) fn memory() -> Self {
        Self { store: Arc::new(InMemory::new()), name: "".into() }
    }

    /// An object or folder as errors name it.
    pub(crate) fn shown(&self, path: &str) -> String {
        match (path, &*self.name) {
            (path, "") => path.to_owned(),
            ("", name) => name.to_owned(),
            (path, name) => format!("{path} in {name}"),
        }
    }

    pub(crate) async fn get(&self, path: &ObjectPath, range: Option<Range<u64>>) -> Result<Bytes, StorageError> {
        let location = location(path)?;
        let refused = |error| failure("get", &self.shown(path.as_str()), error);
        let options = GetOptions { range: range.clone().map(Into::into), ..GetOptions::default() };
        let error = match self.store.get_opts(&location, options).await {
            Ok(found) => return found.bytes().await.map_err(refused),
            Err(error) => error,
        };
        // A range that begins behind the last byte is an error at a bucket, and here an empty answer.
        if let (object_store::Error::Generic { .. }, Some(range)) = (&error, range)
            && self.store.head(&location).await.map_err(refused)?.size <= range.start
        {
            return Ok(Bytes::new());
        }
        Err(refused(error))
    }

    pub(crate) async fn put(&self, path: &ObjectPath, data: Bytes) -> Result<(), StorageError> {
        let put = self.store.put(&location(path)?, data.into()).await;
        put.map(drop).map_err(|e| failure("put", &self.shown(path.as_str()), e))
    }

    pub(crate) async fn put_if_absent(&self, path: &ObjectPath, data: Bytes) -> Result<PutOutcome, StorageError> {
        match self.store.put_opts(&location(path)?, data.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(PutOutcome::Created),
            Err(object_store::Error::AlreadyExists { source, .. }) if failure::is_conflict(source.as_ref()) => {
                let source = "another write of it is under way".into();
                Err(StorageError::Unavailable { action: "put-if-absent", path: self.shown(path.as_str()), source })
            }
            Err(object_store::Error::AlreadyExists { .. }) => Ok(PutOutcome::AlreadyExists),
            Err(error) => Err(failure("put-if-absent", &self.shown(path.as_str()), error)),
        }
    }

    pub(crate) async fn list(
        &self,
        folder: Option<&ObjectPath>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, StorageError> {
        let shown = folder.map_or("", ObjectPath::as_str);
        let prefix = folder.map(location).transpose()?;
        // Where a bucket begins; a text that is no path only begins earlier.
        let listed = match after.and_then(|after| Path::parse(after).ok()) {
            Some(offset) => self.store.list_with_offset(prefix.as_ref(), &offset),
            None => self.store.list(prefix.as_ref()),
        };
        listed
            .map_ok(|meta| ObjectMeta {
                path: meta.location.to_string(),
                size: meta.size,
                modified_micros: u64::try_from(meta.last_modified.timestamp_micros()).unwrap_or(0),
            })
            .try_filter(|meta| std::future::ready(after.is_none_or(|after| meta.path.as_str() > after)))
            .take(limit)
            .try_collect()
            .await
            .map_err(|e| failure("list", &self.shown(shown), e))
    }

    pub(crate) async fn delete(&self, path: &ObjectPath) -> Result<(), StorageError> {
        match self.store.delete(&location(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failure("delete", &self.shown(path.as_str()), error)),
        }
    }

    pub(crate) fn upload(&self, path: &ObjectPath) -> Result<Upload, StorageError> {
        let upload = ObjectUpload::new(Arc::clone(&self.store), location(path)?, self.shown(path.as_str()));
        Ok(Upload::new(UploadInner::Objects(upload)))
    }
}

fn location(path: &ObjectPath) -> Result<Path, StorageError> {
    let refused = |_| StorageError::Path { path: path.as_str().into(), reason: "the store does not take such a name" };
    Path::parse(path.as_str()).map_err(refused)
}
