//! A large object on its way into a store.

use bytes::Bytes;
use object_store::WriteMultipart;

use crate::StorageError;
use crate::folder::FolderUpload;
use crate::objects::failure;

/// An object written in parts. It is there when [`Upload::finish`] has returned; dropped before, nothing remains.
#[derive(Debug)]
pub struct Upload {
    path: String,
    inner: UploadInner,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) enum UploadInner {
    Folder(FolderUpload),
    Objects(WriteMultipart),
}

impl Upload {
    pub(crate) fn new(path: String, inner: UploadInner) -> Self {
        Self { path, inner, bytes: 0 }
    }

    /// Appends. After an error the upload is of no more use.
    pub async fn write(&mut self, data: Bytes) -> Result<(), StorageError> {
        self.bytes += data.len() as u64;
        match &mut self.inner {
            UploadInner::Folder(upload) => upload.write(data).await,
            UploadInner::Objects(upload) => {
                upload.put(data);
                upload.wait_for_capacity(2).await.map_err(|e| failure("upload", &self.path, e))
            }
        }
    }

    /// Gives the object its name, and says its size in bytes.
    pub async fn finish(self) -> Result<u64, StorageError> {
        match self.inner {
            UploadInner::Folder(upload) => upload.finish().await?,
            UploadInner::Objects(upload) => {
                upload.finish().await.map_err(|e| failure("upload", &self.path, e))?;
            }
        }
        Ok(self.bytes)
    }
}
