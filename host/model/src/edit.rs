//! Surgery on change batches: choose rows, drop before images, restore update pairs.

use std::sync::Arc;

use arrow_array::{Array as _, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use crate::batch::TransactionRun;
use crate::key::KeyEncoder;
use crate::{ChangeBatch, Op, RowMeta};

impl ChangeBatch {
    /// Keeps the rows whose bit is set. Halves of an update may lose each other: see [`ChangeBatch::restore_pairs`].
    ///
    /// # Panics
    /// If `keep` has another length than the batch.
    pub fn filter(&self, keep: &BooleanBuffer) -> Self {
        assert_eq!(keep.len(), self.rows(), "one bit a row");
        if keep.count_set_bits() == self.rows() {
            return self.clone();
        }
        let columns = filter_record_batch(self.columns(), &BooleanArray::new(keep.clone(), None))
            .expect("the mask has the batch's length");
        let rows: Vec<u32> = keep.set_indices_u32().collect();
        self.chosen(columns, &rows)
    }

    /// The named rows, in the order named. Halves of an update may lose each other.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn take(&self, rows: &[u32]) -> Self {
        let columns =
            take_record_batch(self.columns(), &UInt32Array::from(rows.to_vec())).expect("indices are in range");
        self.chosen(columns, rows)
    }

    /// The batch in pieces whose values take at most `bytes_max` bytes. What cannot be parted may take more: a row, or
    /// both halves of an update.
    pub fn pieces(self, bytes_max: usize) -> Vec<Self> {
        let (mut pieces, mut rest) = (Vec::new(), vec![self]);
        while let Some(batch) = rest.pop() {
            match batch.middle().filter(|_| batch.value_bytes() > bytes_max) {
                Some(middle) => {
                    let rows: Vec<u32> = (0..).take(batch.rows()).collect();
                    let (first, second) = rows.split_at(middle);
                    rest.push(batch.take(second));
                    rest.push(batch.take(first));
                }
                None => pieces.push(batch),
            }
        }
        pieces
    }

    /// The row at which two halves of the batch meet; none where it cannot be parted.
    fn middle(&self) -> Option<usize> {
        let middle = self.rows() / 2;
        let is_within_update = self.ops().get(middle.checked_sub(1)?) == Some(&(Op::UpdateBefore as u8));
        // Behind the other half, since every update has both.
        let middle = if is_within_update { middle + 1 } else { middle };
        (middle < self.rows()).then_some(middle)
    }

    /// Bytes of the values alone.
    fn value_bytes(&self) -> usize {
        // What the buffers could hold is no less, and known at once.
        let held = self.bytes();
        let columns = self.columns().columns().iter();
        columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(held)).sum::<usize>().min(held)
    }

    /// Without the rows as they were before updates, for those who write by key.
    pub fn without_update_before(&self) -> Self {
        let keep = BooleanBuffer::collect_bool(self.rows(), |row| self.ops()[row] != Op::UpdateBefore as u8);
        self.filter(&keep)
    }

    /// Restores the rule that an update's halves stand together and are of one row: halves that lost each other, or
    /// whose key or partition columns differ (in bytes), become a delete and an insert; the insert takes the second
    /// of the two change-seqs that every row change owns.
    pub fn restore_pairs(self) -> Self {
        let mut ops = self.ops().to_vec();
        let mut seqs: Option<Vec<i64>> = None;
        let keys = KeyEncoder::of_row_identity(self.schema());
        let columns = keys.columns(self.columns());
        let mut row = 0;
        while row < ops.len() {
            let pair = ops[row] == Op::UpdateBefore as u8 && ops.get(row + 1) == Some(&(Op::UpdateAfter as u8));
            if pair && columns.equal(row, row + 1) {
                row += 2;
                continue;
            }
            if ops[row] == Op::UpdateBefore as u8 {
                ops[row] = Op::Delete as u8;
            } else if ops[row] == Op::UpdateAfter as u8 {
                ops[row] = Op::Insert as u8;
                seqs.get_or_insert_with(|| self.meta().change_seq.to_vec())[row] += 1;
            }
            row += 1;
        }
        let (schema, columns, _, mut meta) = self.into_parts();
        if let Some(seqs) = seqs {
            meta.change_seq = seqs.into();
        }
        Self::from_parts(schema, columns, ops.into(), meta)
    }

    /// As [`ChangeBatch::restore_pairs`], at no cost where nothing was updated.
    pub fn with_whole_pairs(self) -> Self {
        if self.has_updates() { self.restore_pairs() } else { self }
    }

    fn chosen(&self, columns: RecordBatch, rows: &[u32]) -> Self {
        let ops: ScalarBuffer<u8> = rows.iter().map(|&row| self.ops()[row as usize]).collect();
        Self::from_parts(Arc::clone(self.schema()), columns, ops, self.meta_of(rows))
    }

    /// The metadata of the named rows, in the order named.
    pub(crate) fn meta_of(&self, rows: &[u32]) -> RowMeta {
        let meta = self.meta();
        let rows = rows.iter().map(|&row| row as usize);
        RowMeta {
            change_seq: rows.clone().map(|row| meta.change_seq[row]).collect(),
            ordinal: rows.clone().map(|row| meta.ordinal[row]).collect(),
            transactions: pick_runs(&meta.transactions, rows),
        }
    }
}

/// The runs that hold the chosen rows, in the order chosen.
fn pick_runs(runs: &[TransactionRun], rows: impl Iterator<Item = usize>) -> Vec<TransactionRun> {
    let mut ends = Vec::with_capacity(runs.len());
    let mut end = 0usize;
    for run in runs {
        end += run.rows as usize;
        ends.push(end);
    }
    let mut picked: Vec<TransactionRun> = Vec::new();
    let mut last = usize::MAX;
    for row in rows {
        let at = if last != usize::MAX && row < ends[last] && (last == 0 || row >= ends[last - 1]) {
            last
        } else {
            ends.partition_point(|&end| end <= row)
        };
        if at == last {
            picked.last_mut().expect("a run is open").rows += 1;
        } else {
            picked.push(TransactionRun { rows: 1, ..runs[at].clone() });
            last = at;
        }
    }
    picked
}

#[cfg(test)]
mod tests;
