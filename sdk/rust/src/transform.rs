//! The contract of a transform: what is planned for a table, what becomes of its rows.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::data::RawColumn;
use crate::{Batch, Field, Manifest, Op, Result, RowMeta, Schema};

/// Changes rows between source and sinks. One instance for each lane of a pipeline, one call at a time; all rows of a
/// table come to the same instance, in the source's order.
///
/// What an instance keeps in memory is gone after a restart, and rows since the last checkpoint come again to a new one.
/// So where key columns change the transform must be pure: a delete has to map to the key that its insert had.
pub trait Transform: Sized + 'static {
    /// What stands in the pipeline file for this transform. Make it strict: `#[serde(deny_unknown_fields, rename_all =
    /// "kebab-case")]`; doc comments become the documentation of the options.
    type Options: DeserializeOwned + JsonSchema;

    /// What the plugin says of itself. Made by [`manifest!`](crate::manifest!).
    fn manifest() -> Manifest;

    /// Makes an instance. Also called to check a pipeline file.
    fn open(options: Self::Options) -> Result<Self>;

    /// Rows of this table and version follow: says what it reads and how the table comes out. An error stops the pipeline
    /// before any row of the table moves.
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<Plan>;

    /// What becomes of a batch of the columns that the plan reads. On an error nothing of it counts as taken.
    fn process(&mut self, batch: Batch) -> Result<Processed>;
}

/// Where a column of the output comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutField {
    /// The input's column at this place, as it is.
    Pass(u32),
    /// The same under another name.
    Renamed(u32, String),
    /// The next column of [`Edit::computed`].
    Computed(Field),
}

/// What a transform does with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Places in the schema's fields of the columns that it gets, in this order; nothing else is handed over.
    pub reads: Vec<u32>,
    /// The metadata that it gets.
    pub meta: RowMeta,
    /// All columns of the table as it comes out.
    pub output: Vec<OutField>,
    /// Names of the output's key columns; none = the input's, each of which must pass.
    pub primary_key: Option<Vec<String>>,
    /// Likewise of the columns that partition the target.
    pub partition_key: Option<Vec<String>>,
    /// Options of the table, instead of those of the same name.
    pub options: Vec<(String, String)>,
    /// [`Transform::process`] is never called for this table.
    pub bypass: bool,
}

impl Plan {
    /// All columns as they are, none of them read.
    pub fn pass(schema: &Schema) -> Self {
        let places = (0..).take(schema.fields.len());
        Self {
            reads: Vec::new(),
            meta: RowMeta::default(),
            output: places.map(OutField::Pass).collect(),
            primary_key: None,
            partition_key: None,
            options: Vec::new(),
            bypass: true,
        }
    }
}

/// What becomes of a batch, row by row; every part has the batch's length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Which rows stay; none = all.
    pub keep: Option<Vec<bool>>,
    /// What the rows say now; none = what they said.
    pub ops: Option<Vec<Op>>,
    /// The computed columns of the plan, in the output's order.
    pub computed: Vec<RawColumn>,
}

/// Other rows than those that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    /// What each row says.
    pub ops: Vec<Op>,
    /// All columns of the output.
    pub columns: Vec<RawColumn>,
    /// For each row the row of the batch that it comes from; never falling.
    pub origins: Vec<u32>,
}

/// What a transform makes of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processed {
    /// All rows stay as they are; only where nothing is computed.
    Unchanged,
    /// The rows, edited.
    Edited(Edit),
    /// Other rows.
    Replaced(Replacement),
}
