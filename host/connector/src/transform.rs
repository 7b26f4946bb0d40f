//! A transform as the engine sees it: rows in, other rows of the same table out.

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_model::{ChangeBatch, Generation, TableSchema};

use crate::ConnectorError;

/// A transform that is configured and checked, not yet opened. Gives out one instance for each lane of a run.
#[async_trait]
pub trait TransformConnector: Send + Sync + std::fmt::Debug {
    /// Its id in the pipeline.
    fn id(&self) -> &str;

    /// An instance for `lane` of `lanes`, opened.
    async fn open(&self, generation: Generation, lane: u32, lanes: u32) -> Result<Box<dyn Transform>, ConnectorError>;
}

/// One instance, for the tables of one lane. One call at a time; all rows of a table come to the same instance, in order.
///
/// What it keeps in memory is gone after a restart, and rows since the last checkpoint come again then. Where it changes
/// key columns it must be pure: a delete has to map to the key that its insert had.
#[async_trait]
pub trait Transform: Send {
    /// Rows of this table and version follow. Gives the table as it comes out; its name and version stay.
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<TableSchema>, ConnectorError>;

    /// Gives the rows as they come out, halves of updates together. An error means that nothing of the batch was taken:
    /// on [`crate::Verdict::Retry`] the same batch comes again.
    async fn process(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch, ConnectorError>;
}
