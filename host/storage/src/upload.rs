//! A large object on its way into a store.

use bytes::Bytes;

use crate::StorageError;
use crate::folder::FolderUpload;
use crate::objects::ObjectUpload;

/// An object written in parts. It is there when [`Upload::finish`] has returned; dropped before, nothing remains.
#[derive(Debug)]
pub struct Upload {
    inner: UploadInner,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) enum UploadInner {
    Folder(FolderUpload),
    Objects(ObjectUpload),
}

impl Upload {
    pub(crate) fn new(inner: UploadInner) -> Self {
        Self { inner, bytes: 0 }
    }

    /// Appends. After an error the upload is of no more use.
    pub async fn write(&mut self, data: Bytes) -> Result<(), StorageError> {
        self.bytes += data.len() as u64;
        match &mut self.inner {
            UploadInner::Folder(upload) => upload.write(data).await,
            UploadInner::Objects(upload) => upload.write(data).await,
        }
    }

    /// Gives the object its name, and says its size in bytes.
    pub async fn finish(self) -> Result<u64, StorageError> {
        match self.inner {
            UploadInner::Folder(upload) => upload.finish().await?,
            UploadInner::Objects(upload) => upload.finish().await?,
        }
        Ok(self.bytes)
    }
}
