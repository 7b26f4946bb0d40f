//! What a transform makes of a batch: rows kept, ops changed, columns passed on, renamed or computed, or other rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use crate::{BatchError, ChangeBatch, Op, TableSchema};

/// Where a column of the output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputColumn {
    /// The input's column at this place, as it is; its name may be another.
    Pass(usize),
    /// The next of the columns that come with the edit.
    Computed,
}

/// What becomes of the columns of one table at one version.
#[derive(Clone, Debug)]
pub struct Projection {
    output: Arc<TableSchema>,
    arrow: SchemaRef,
    columns: Vec<OutputColumn>,
}

/// What a transform says of a batch.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// One bit a row; a row whose bit is not set is left out.
    pub keep: Option<BooleanBuffer>,
    /// One byte a row instead of the input's ops.
    pub ops: Option<ScalarBuffer<u8>>,
    /// The computed columns, in the output's order, of the input's length.
    pub computed: Vec<ArrayRef>,
}

/// Rows that a transform gives instead of a batch's.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// One byte a row.
    pub ops: ScalarBuffer<u8>,
    /// All columns of the output.
    pub columns: Vec<ArrayRef>,
    /// For each row the row of the input that it comes from and has its metadata of; never falling.
    pub origins: Vec<u32>,
}

impl Projection {
    /// `columns` has one entry for each field of `output`.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn new(output: Arc<TableSchema>, columns: Vec<OutputColumn>) -> Self {
        assert_eq!(output.fields.len(), columns.len(), "one origin a column");
        let arrow = output.arrow();
        Self { output, arrow, columns }
    }

    /// The table as it comes out.
    pub fn output(&self) -> &Arc<TableSchema> {
        &self.output
    }

    /// The batch with the edit made; pairs of updates are restored on the output's key. Checks what the edit brings:
    /// lengths, types, ops, nulls.
    pub fn edit(&self, batch: &ChangeBatch, edit: Edit) -> Result<ChangeBatch, BatchError> {
        let rows = batch.rows();
        check_length(rows, "keep", edit.keep.as_ref().map_or(rows, BooleanBuffer::len))?;
        let ops = match edit.ops {
            Some(ops) => checked_ops(rows, ops)?,
            None => batch.ops().clone(),
        };
        let mut computed = edit.computed.into_iter();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (place, column) in self.columns.iter().enumerate() {
            columns.push(match *column {
                OutputColumn::Pass(from) => Arc::clone(batch.columns().column(from)),
                OutputColumn::Computed => self.checked(place, computed.next(), rows)?,
            });
        }
        check_length(0, "computed columns beyond those planned", computed.count())?;
        let columns = self.record_batch(columns, rows)?;
        let edited = ChangeBatch::from_parts(Arc::clone(&self.output), columns, ops, batch.meta().clone());
        let kept = match edit.keep {
            Some(keep) => edited.filter(&keep),
            None => edited,
        };
        Ok(kept.with_whole_pairs())
    }

    /// Other rows instead of the batch's.
    pub fn replace(&self, batch: &ChangeBatch, with: Replacement) -> Result<ChangeBatch, BatchError> {
        let Replacement { ops, columns, origins } = with;
        let rows = origins.len();
        let ops = checked_ops(rows, ops)?;
        check_length(self.columns.len(), "columns", columns.len())?;
        let beyond = origins.iter().position(|&origin| origin as usize >= batch.rows());
        let falling = origins.windows(2).position(|pair| pair[0] > pair[1]);
        if let Some(row) = beyond.or(falling) {
            return Err(BatchError::Origin { row });
        }
        let columns = columns.into_iter().enumerate();
        let columns =
            columns.map(|(place, column)| self.checked(place, Some(column), rows)).collect::<Result<_, _>>()?;
        let columns = self.record_batch(columns, rows)?;
        let meta = batch.meta_of(&origins);
        Ok(ChangeBatch::from_parts(Arc::clone(&self.output), columns, ops, meta).with_whole_pairs())
    }

    /// A column that came from a plugin, as the output's field has it.
    fn checked(&self, place: usize, column: Option<ArrayRef>, rows: usize) -> Result<ArrayRef, BatchError> {
        let field = &self.output.fields[place];
        let expected = field.ty.arrow();
        let wrong =
            |found: String| BatchError::Column { column: field.name.clone(), found, expected: expected.to_string() };
        let column = column.ok_or_else(|| wrong("not there".into()))?;
        if *column.data_type() != expected {
            return Err(wrong(column.data_type().to_string()));
        }
        check_length(rows, "a computed column", column.len())?;
        if !field.nullable && column.null_count() > 0 {
            return Err(BatchError::Null { column: field.name.clone() });
        }
        Ok(column)
    }

    fn record_batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, BatchError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options).map_err(|error| {
            BatchError::Column {
                column: "all".into(),
                found: error.to_string(),
                expected: "the output's schema".into(),
            }
        })
    }
}

fn checked_ops(rows: usize, ops: ScalarBuffer<u8>) -> Result<ScalarBuffer<u8>, BatchError> {
    check_length(rows, "ops", ops.len())?;
    match ops.iter().enumerate().find(|&(_, &byte)| Op::try_from(byte).is_err()) {
        Some((row, &byte)) => Err(BatchError::Op { row, byte }),
        None => Ok(ops),
    }
}

fn check_length(rows: usize, part: &'static str, found: usize) -> Result<(), BatchError> {
    if rows == found { Ok(()) } else { Err(BatchError::Length { rows, part, found }) }
}

#[cfg(test)]
mod tests;
