//! A change batch as one writer asked for it: its columns, its metadata, nothing else.

use arrow_buffer::Buffer;
use cdchost_model::{ChangeBatch, RowMeta, TableSchema};

use super::column::{HostColumn, TextColumn};
use crate::bindings::v0_1::cdchost::plugin::types::{Batch, ColumnParam, RowMeta as Wanted};

/// What a writer wants of a table at one version.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    handle: u32,
    columns: Vec<u32>,
    meta: Wanted,
}

impl TablePlan {
    /// Checks a writer's answer against the schema it was asked about.
    pub(crate) fn new(handle: u32, columns: Vec<u32>, meta: Wanted, schema: &TableSchema) -> Result<Self, String> {
        let count = schema.fields.len();
        let mut seen = vec![false; count];
        for &column in &columns {
            match seen.get_mut(column as usize) {
                Some(seen) if *seen => return Err(format!("asks for column {column} twice")),
                Some(seen) => *seen = true,
                None => return Err(format!("asks for column {column} of {count}")),
            }
        }
        Ok(Self { handle, columns, meta })
    }
}

/// The buffers of one batch, ready to be copied into a guest.
#[derive(Debug)]
pub(crate) struct HostBatch {
    handle: u32,
    rows: u32,
    ops: Buffer,
    columns: Vec<HostColumn>,
    meta: Vec<HostColumn>,
}

impl HostBatch {
    /// None where the batch cannot be handed over: a column of no contract type, or metadata beyond 2 GiB.
    pub(crate) fn new(batch: &ChangeBatch, plan: &TablePlan) -> Option<Self> {
        let arrays = batch.columns().columns();
        let column = |&index: &u32| HostColumn::of(arrays.get(index as usize)?);
        let ops = batch.ops();
        Some(Self {
            handle: plan.handle,
            rows: u32::try_from(batch.rows()).ok()?,
            ops: ops.inner().slice_with_length(0, ops.len()),
            columns: plan.columns.iter().map(column).collect::<Option<_>>()?,
            meta: meta_columns(batch.meta(), plan.meta)?,
        })
    }

    /// Bytes of all that is handed over.
    pub(crate) fn bytes(&self) -> usize {
        self.ops.len() + self.columns.iter().chain(&self.meta).map(HostColumn::bytes).sum::<usize>()
    }

    /// Rows, so that rows named in an error can be checked.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// The contract's views of the columns, then of the metadata.
    pub(crate) fn columns(&self) -> (Vec<ColumnParam<'_>>, Vec<ColumnParam<'_>>) {
        (self.columns.iter().map(HostColumn::wit).collect(), self.meta.iter().map(HostColumn::wit).collect())
    }

    /// The contract's batch over views taken with [`HostBatch::columns`].
    pub(crate) fn wit<'a>(&'a self, columns: &'a [ColumnParam<'a>], meta: &'a [ColumnParam<'a>]) -> Batch<'a> {
        Batch { schema: self.handle, rows: self.rows, ops: &self.ops, columns, meta }
    }
}

/// The metadata asked for, in the order of the contract's flags.
fn meta_columns(meta: &RowMeta, wanted: Wanted) -> Option<Vec<HostColumn>> {
    let mut columns = Vec::new();
    if wanted.contains(Wanted::CHANGE_SEQ) {
        columns.push(HostColumn::plain(meta.change_seq.inner().clone()));
    }
    if wanted.contains(Wanted::COMMIT_TIME) {
        let times = meta.transactions.iter().flat_map(|run| std::iter::repeat_n(run.commit_time, run.rows as usize));
        columns.push(HostColumn::plain(times.collect::<Vec<i64>>().into()));
    }
    if wanted.contains(Wanted::TRANSACTION) {
        columns.push(texts(meta, |run| run.id.as_ref().map(ToString::to_string))?);
    }
    if wanted.contains(Wanted::ORDINAL) {
        columns.push(HostColumn::plain(meta.ordinal.inner().clone()));
    }
    if wanted.contains(Wanted::POSITION) {
        columns.push(texts(meta, |run| run.position.as_ref().map(ToString::to_string))?);
    }
    Some(columns)
}

/// A text a run of rows; null for rows that a snapshot read.
fn texts(meta: &RowMeta, text: impl Fn(&cdchost_model::TransactionRun) -> Option<String>) -> Option<HostColumn> {
    let mut column = TextColumn::with_capacity(meta.ordinal.len());
    let fits = meta.transactions.iter().all(|run| column.push(run.rows, text(run).as_deref()));
    fits.then(|| column.finish())
}

#[cfg(test)]
mod tests;
