//! A backend over `object_store`: memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, WriteMultipart};

use crate::path::ObjectPath;
use crate::upload::UploadInner;
use crate::{ObjectMeta, PutOutcome, StorageError, Upload};

#[derive(Clone, Debug)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
}

impl Objects {
    pub(crate) fn memory() -> Self {
        Self { store: Arc::new(InMemory::new()) }
    }

    pub(crate) async fn get(&self, path: &ObjectPath, range: Option<Range<u64>>) -> Result<Bytes, StorageError> {
        let location = location(path)?;
        let size = self.store.head(&location).await.map_err(|e| failure("get", path.as_str(), e))?.size;
        let range = range.unwrap_or(0..size);
        let range = range.start.min(size)..range.end.min(size);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.store.get_range(&location, range).await.map_err(|e| failure("get", path.as_str(), e))
    }

    pub(crate) async fn put(&self, path: &ObjectPath, data: Bytes) -> Result<(), StorageError> {
        let put = self.store.put(&location(path)?, data.into()).await;
        put.map(drop).map_err(|e| failure("put", path.as_str(), e))
    }

    pub(crate) async fn put_if_absent(&self, path: &ObjectPath, data: Bytes) -> Result<PutOutcome, StorageError> {
        match self.store.put_opts(&location(path)?, data.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(PutOutcome::Created),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(PutOutcome::AlreadyExists),
            Err(error) => Err(failure("put-if-absent", path.as_str(), error)),
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
        let mut found = self
            .store
            .list(prefix.as_ref())
            .map_ok(|meta| ObjectMeta {
                path: meta.location.to_string(),
                size: meta.size,
                modified_micros: u64::try_from(meta.last_modified.timestamp_micros()).unwrap_or(0),
            })
            .try_collect::<Vec<_>>()
            .await
            .map_err(|e| failure("list", shown, e))?;
        found.retain(|meta| after.is_none_or(|after| meta.path.as_str() > after));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.truncate(limit);
        Ok(found)
    }

    pub(crate) async fn delete(&self, path: &ObjectPath) -> Result<(), StorageError> {
        match self.store.delete(&location(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failure("delete", path.as_str(), error)),
        }
    }

    pub(crate) async fn upload(&self, path: &ObjectPath) -> Result<Upload, StorageError> {
        let parts =
            self.store.put_multipart(&location(path)?).await.map_err(|e| failure("upload", path.as_str(), e))?;
        let inner = UploadInner::Objects(WriteMultipart::new(parts));
        Ok(Upload::new(path.as_str().into(), inner))
    }
}

fn location(path: &ObjectPath) -> Result<Path, StorageError> {
    let refused = |_| StorageError::Path { path: path.as_str().into(), reason: "the store does not take such a name" };
    Path::parse(path.as_str()).map_err(refused)
}

pub(crate) fn failure(action: &'static str, path: &str, error: object_store::Error) -> StorageError {
    match error {
        object_store::Error::NotFound { .. } => StorageError::NotFound { path: path.into() },
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            StorageError::Denied { path: path.into(), reason: "the store refused the credentials".into() }
        }
        other => StorageError::Unavailable { action, path: path.into(), source: Box::new(other) },
    }
}
