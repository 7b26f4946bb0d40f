//! An upload to a bucket: one put while it is small, parts from then on.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};

use super::failure::failure;
use crate::StorageError;

/// Bytes of a part: the least that S3 takes. Up to here an upload is a put.
const PART_BYTES: usize = 5 << 20;
/// Parts under way at once.
const PARTS_AT_ONCE: usize = 2;

#[derive(Debug)]
pub(crate) struct ObjectUpload {
    store: Arc<dyn ObjectStore>,
    location: Path,
    /// The object as errors name it.
    shown: String,
    held: Vec<Bytes>,
    held_bytes: usize,
    parts: Option<WriteMultipart>,
}

impl ObjectUpload {
    pub(super) fn new(store: Arc<dyn ObjectStore>, location: Path, shown: String) -> Self {
        Self { store, location, shown, held: Vec::new(), held_bytes: 0, parts: None }
    }

    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), StorageError> {
        self.held_bytes += data.len();
        self.held.push(data);
        if self.parts.is_none() && self.held_bytes < PART_BYTES {
            return Ok(());
        }
        let refused = |error| failure("upload", &self.shown, error);
        if self.parts.is_none() {
            let begun = self.store.put_multipart(&self.location).await.map_err(refused)?;
            self.parts = Some(WriteMultipart::new_with_chunk_size(begun, PART_BYTES));
        }
        if let Some(parts) = &mut self.parts {
            self.held.drain(..).for_each(|data| parts.put(data));
            parts.wait_for_capacity(PARTS_AT_ONCE).await.map_err(refused)?;
        }
        Ok(())
    }

    pub(crate) async fn finish(mut self) -> Result<(), StorageError> {
        let finished = match self.parts.take() {
            Some(parts) => parts.finish().await,
            None => self.store.put(&self.location, PutPayload::from_iter(self.held.drain(..))).await,
        };
        finished.map(drop).map_err(|error| failure("upload", &self.shown, error))
    }
}

impl Drop for ObjectUpload {
    /// Parts of an upload that was given up cost money, and no listing shows them.
    fn drop(&mut self) {
        if let (Some(parts), Ok(runtime)) = (self.parts.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = parts.abort().await; // the bucket's own rule for old parts removes them otherwise
            });
        }
    }
}
