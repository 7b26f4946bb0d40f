//! What the checkpoint protocol asks of a store, and nothing more.

use bytes::Bytes;
use cdchost_storage::{PutOutcome, StorageError, Store};

use crate::paths::{self, Slot};

/// Names asked for in one listing.
const LIST_PAGE: usize = 1000;

/// The store that holds one pipeline's checkpoints.
///
/// What the protocol rests on: a put-if-absent is atomic and durable when it answers, whichever way; reads and
/// listings show every write that has answered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CheckpointStore {
    store: Store,
}

impl CheckpointStore {
    /// Keeps checkpoints in this store, which should hold nothing else.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    pub(crate) async fn read(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        match self.store.get(name).await {
            Ok(data) => Ok(Some(data)),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn create(&self, name: &str, data: Bytes) -> Result<PutOutcome, StorageError> {
        self.store.put_if_absent(name, data).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.store.delete(name).await
    }

    /// All names below a folder, after one of them, in byte order.
    pub(crate) async fn names(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, StorageError> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let last = names.last().map(String::as_str).or(after);
            let page = self.store.list(folder, last, LIST_PAGE).await?;
            let whole = page.len() < LIST_PAGE;
            names.extend(page.into_iter().map(|meta| meta.path));
            if whole {
                return Ok(names);
            }
        }
    }

    /// The slots of the chain after the given one; whatever else lies there does not count.
    pub(crate) async fn slots_after(&self, after: &str) -> Result<Vec<Slot>, StorageError> {
        let names = self.names(paths::SLOTS, Some(after)).await?;
        Ok(names.iter().filter_map(|name| paths::parse_slot(name)).collect())
    }
}
