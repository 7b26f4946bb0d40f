//! Rows of one table and one schema version on their way from the source to the sinks.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::ScalarBuffer;

use crate::{SourcePosition, TableSchema, TransactionId};

/// What a row of a batch says. The number is the byte that stands in [`ChangeBatch::ops`] and in the plugin contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// The row came to be.
    Insert = 0,
    /// The row as it was; the next row of the batch is its [`Op::UpdateAfter`].
    UpdateBefore = 1,
    /// The row as it is now.
    UpdateAfter = 2,
    /// The row is gone; its columns hold the last values.
    Delete = 3,
    /// The row as a snapshot read it.
    Read = 4,
}

impl TryFrom<u8> for Op {
    type Error = BatchError;

    fn try_from(byte: u8) -> Result<Self, BatchError> {
        Ok(match byte {
            0 => Self::Insert,
            1 => Self::UpdateBefore,
            2 => Self::UpdateAfter,
            3 => Self::Delete,
            4 => Self::Read,
            _ => return Err(BatchError::Op { row: 0, byte }),
        })
    }
}

/// Consecutive rows of one batch that came from one source transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRun {
    /// How many rows.
    pub rows: u32,
    /// The transaction; none for rows that a snapshot read.
    pub id: Option<TransactionId>,
    /// Where the transaction ends in the source's log; none for rows that a snapshot read.
    pub position: Option<SourcePosition>,
    /// When the source committed it (for a snapshot: when it was read), in microseconds since the epoch.
    pub commit_time: i64,
}

/// What is known of each row beside its columns.
#[derive(Clone, Debug)]
pub struct RowMeta {
    /// One a row; both halves of an update share it.
    pub change_seq: ScalarBuffer<i64>,
    /// Place of the row change among its table's row changes in the transaction, from 0; both halves of an update
    /// share it. With table and transaction it is the stable id.
    pub ordinal: ScalarBuffer<u32>,
    /// In row order; their `rows` add up to the batch's.
    pub transactions: Vec<TransactionRun>,
}

/// Why parts do not make a batch.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BatchError {
    /// Parts of different lengths.
    #[error("batch has {rows} rows but {part} has {found}")]
    Length {
        /// Rows of the columns.
        rows: usize,
        /// Which part differs.
        part: &'static str,
        /// Its length.
        found: usize,
    },
    /// Columns that do not fit the schema.
    #[error("column {column} of the batch is {found}, the schema says {expected}")]
    Column {
        /// Place or name.
        column: String,
        /// What came.
        found: String,
        /// What the schema has.
        expected: String,
    },
    /// An op byte that does not exist.
    #[error("row {row} has op {byte}, known are 0 to 4")]
    Op {
        /// The row.
        row: usize,
        /// The byte.
        byte: u8,
    },
    /// NULL in a column that has none.
    #[error("column {column} of the batch has NULLs, the schema allows none")]
    Null {
        /// The column.
        column: String,
    },
    /// A row that comes from no row of the input, or from one before that of the row before.
    #[error("row {row} comes from a row that is not there or is out of order")]
    Origin {
        /// The row.
        row: usize,
    },
    /// Half of an update stands alone.
    #[error("row {row} is half of an update without the other half")]
    Pair {
        /// The row.
        row: usize,
    },
}

/// Rows of one table and one schema version: columns, an op a row, and their metadata.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    schema: Arc<TableSchema>,
    columns: RecordBatch,
    ops: ScalarBuffer<u8>,
    meta: RowMeta,
}

impl ChangeBatch {
    /// Puts the parts together and checks that they fit: lengths, column types, op bytes, update pairs adjacent.
    pub fn new(
        schema: Arc<TableSchema>,
        columns: RecordBatch,
        ops: ScalarBuffer<u8>,
        meta: RowMeta,
    ) -> Result<Self, BatchError> {
        let batch = Self { schema, columns, ops, meta };
        batch.check_lengths()?;
        batch.check_columns()?;
        batch.check_ops()?;
        Ok(batch)
    }

    /// For surgery that keeps every invariant but the pair rule, which [`ChangeBatch::restore_pairs`] mends.
    pub(crate) fn from_parts(
        schema: Arc<TableSchema>,
        columns: RecordBatch,
        ops: ScalarBuffer<u8>,
        meta: RowMeta,
    ) -> Self {
        Self { schema, columns, ops, meta }
    }

    /// The table's schema at this version.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The columns, of the Arrow types that [`crate::LogicalType::arrow`] gives.
    pub fn columns(&self) -> &RecordBatch {
        &self.columns
    }

    /// One byte a row, each a value of [`Op`].
    pub fn ops(&self) -> &ScalarBuffer<u8> {
        &self.ops
    }

    /// Metadata of the rows.
    pub fn meta(&self) -> &RowMeta {
        &self.meta
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ops.len()
    }

    /// Number of row changes: an update counts once.
    pub fn changes(&self) -> usize {
        self.ops.iter().filter(|&&op| op != Op::UpdateBefore as u8).count()
    }

    /// Whether any row is half of an update.
    pub fn has_updates(&self) -> bool {
        self.ops.iter().any(|&op| op == Op::UpdateBefore as u8 || op == Op::UpdateAfter as u8)
    }

    /// The same rows as those of another table; its columns must be of the same types.
    pub fn of_table(self, schema: &Arc<TableSchema>) -> Result<Self, BatchError> {
        let batch = Self { schema: Arc::clone(schema), ..self };
        batch.check_columns()?;
        Ok(batch)
    }

    /// Bytes that the batch holds in memory, near enough for back-pressure.
    pub fn bytes(&self) -> usize {
        self.columns.get_array_memory_size() + self.rows() * 13 + self.meta.transactions.len() * 64
    }

    /// The parts, for those who build another batch out of them.
    pub fn into_parts(self) -> (Arc<TableSchema>, RecordBatch, ScalarBuffer<u8>, RowMeta) {
        (self.schema, self.columns, self.ops, self.meta)
    }

    fn check_lengths(&self) -> Result<(), BatchError> {
        let rows = self.columns.num_rows();
        let in_runs = self.meta.transactions.iter().map(|run| run.rows as usize).sum();
        let parts = [
            ("ops", self.ops.len()),
            ("change-seq", self.meta.change_seq.len()),
            ("ordinal", self.meta.ordinal.len()),
            ("transactions", in_runs),
        ];
        match parts.into_iter().find(|&(_, found)| found != rows) {
            Some((part, found)) => Err(BatchError::Length { rows, part, found }),
            None => Ok(()),
        }
    }

    fn check_columns(&self) -> Result<(), BatchError> {
        let (expected, found) = (self.schema.fields.len(), self.columns.num_columns());
        if expected != found {
            return Err(BatchError::Column {
                column: "count".into(),
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
        for (field, column) in self.schema.fields.iter().zip(self.columns.columns()) {
            let expected = field.ty.arrow();
            if *column.data_type() != expected {
                return Err(BatchError::Column {
                    column: field.name.clone(),
                    found: column.data_type().to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        Ok(())
    }

    fn check_ops(&self) -> Result<(), BatchError> {
        let mut open = false;
        for (row, &byte) in self.ops.iter().enumerate() {
            let op = Op::try_from(byte).map_err(|_| BatchError::Op { row, byte })?;
            if open != (op == Op::UpdateAfter) {
                return Err(BatchError::Pair { row });
            }
            open = op == Op::UpdateBefore;
        }
        if open { Err(BatchError::Pair { row: self.ops.len() - 1 }) } else { Ok(()) }
    }
}
