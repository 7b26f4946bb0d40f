//! A source that was opened to be looked at, kept for the run that follows.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cdchost_connector::{ConnectorError, Containment, OpenedSource, SourceConnector, SourceRestore};
use cdchost_model::SourceOffset;

/// Gives out the source that is open already once, to a run that begins afresh; opens anew for any other.
#[derive(Debug)]
pub(super) struct KeptSource {
    inner: Arc<dyn SourceConnector>,
    opened: Mutex<Option<OpenedSource>>,
}

impl KeptSource {
    pub(super) fn new(inner: Arc<dyn SourceConnector>, opened: OpenedSource) -> Self {
        Self { inner, opened: Mutex::new(Some(opened)) }
    }
}

#[async_trait]
impl SourceConnector for KeptSource {
    async fn open(&self, restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError> {
        let kept = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(opened) if restore.is_none() => Ok(opened),
            _ => self.inner.open(restore).await,
        }
    }

    fn compare(&self, one: &SourceOffset, other: &SourceOffset) -> Result<Containment, ConnectorError> {
        self.inner.compare(one, other)
    }

    fn describe(&self, offset: &SourceOffset) -> String {
        self.inner.describe(offset)
    }
}
