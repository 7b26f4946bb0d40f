//! The contract of a route: which target tables a table's rows go to.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Batch, Manifest, ReadPlan, Result, Schema, TableId};

/// Chooses target tables; never changes rows. One instance for each lane of a pipeline, one call at a time.
///
/// It must be pure: a delete has to go where its insert went, after a restart too.
pub trait Route: Sized + 'static {
    /// What stands in the pipeline file for this route. Make it strict: `#[serde(deny_unknown_fields, rename_all =
    /// "kebab-case")]`; doc comments become the documentation of the options. The host hands its own keys `table` and
    /// `to` on to a route that has options of these names.
    type Options: DeserializeOwned + JsonSchema;

    /// What the plugin says of itself. Made by [`manifest!`](crate::manifest!).
    fn manifest() -> Manifest;

    /// Makes an instance. Also called to check a pipeline file.
    fn open(options: Self::Options) -> Result<Self>;

    /// Where the rows of this table go. Tables that share a target must have the same columns and key.
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<TableRoute>;

    /// For tables routed by row: where each row of the batch goes.
    fn route_rows(&mut self, _batch: Batch) -> Result<RowTargets> {
        Ok(RowTargets::default())
    }
}

/// Where the rows of a table go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRoute {
    /// All of them to each of these tables.
    To(Vec<TableId>),
    /// Each to a table of its own choice; these columns are handed to [`Route::route_rows`].
    ByRow(ReadPlan),
    /// Nowhere.
    Drop,
}

/// Where the rows of a batch go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowTargets {
    /// The tables, none twice.
    pub targets: Vec<TableId>,
    /// For each row the place of its table in `targets`.
    pub of_row: Vec<u32>,
}

impl RowTargets {
    /// The next row goes to this table.
    pub fn push(&mut self, target: TableId) {
        let place = self.targets.iter().position(|known| *known == target).unwrap_or_else(|| {
            self.targets.push(target);
            self.targets.len() - 1
        });
        self.of_row.push(u32::try_from(place).expect("a batch has less than 2^32 rows"));
    }
}
