//! A route as the engine sees it: which target tables a table's rows go to.

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_model::{ChangeBatch, Generation, TableId, TableSchema};

use crate::ConnectorError;

/// A route that is configured and checked, not yet opened. Gives out one instance for each lane of a run.
#[async_trait]
pub trait RouteConnector: Send + Sync + std::fmt::Debug {
    /// Its id in the pipeline.
    fn id(&self) -> &str;

    /// An instance for `lane` of `lanes`, opened.
    async fn open(&self, generation: Generation, lane: u32, lanes: u32) -> Result<Box<dyn Router>, ConnectorError>;
}

/// Where the rows of a table go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRoute {
    /// All of them to each of these tables.
    To(Vec<TableId>),
    /// Each to a table of its own choice: [`Router::route_rows`] is asked.
    ByRow,
    /// Nowhere.
    Drop,
}

/// Where the rows of a batch go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTargets {
    /// The tables.
    pub targets: Vec<TableId>,
    /// For each row of the batch the place of its table in `targets`.
    pub of_row: Vec<u32>,
}

/// One instance, for the tables of one lane. It never changes rows. It must be pure: a delete has to go where its insert
/// went, after a restart too.
#[async_trait]
pub trait Router: Send {
    /// Rows of this table and version follow, as the transforms give them out.
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<TableRoute, ConnectorError>;

    /// For tables that are routed by row. Every place in the answer is one of its targets.
    async fn route_rows(&mut self, batch: &ChangeBatch) -> Result<RowTargets, ConnectorError>;
}
