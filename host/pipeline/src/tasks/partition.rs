//! Spreads rows over the writers of one sink.

use cdchost_connector::Ordering;
use cdchost_model::{ChangeBatch, KEY_GROUPS, KeyEncoder, TableId, key_group};

/// How rows find their writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// There is one writer.
    Single,
    /// By the row's key.
    Key(u32),
    /// By the table's name.
    Table(u32),
}

impl Spread {
    pub(crate) fn new(ordering: Ordering, writers: u32) -> Self {
        match (writers, ordering) {
            (0 | 1, _) => Self::Single,
            (_, Ordering::PerTable) => Self::Table(writers),
            // Rows without an order may go anywhere; by key they go evenly.
            (_, Ordering::PerKey | Ordering::None) => Self::Key(writers),
        }
    }

    /// The batch in parts, each with its writer. Both halves of an update have one key, so they stay together.
    pub(crate) fn parts(self, batch: ChangeBatch) -> Vec<(usize, ChangeBatch)> {
        match self {
            Self::Single => vec![(0, batch)],
            Self::Table(writers) => vec![(writer_of_table(&batch.schema().table, writers), batch)],
            Self::Key(writers) => by_key(batch, writers),
        }
    }
}

/// The writer that a key group belongs to: neighbouring groups lie together, so that a rescale moves ranges.
pub(crate) fn writer_of_group(group: u32, writers: u32) -> usize {
    (u64::from(group) * u64::from(writers) / u64::from(KEY_GROUPS)) as usize // below `writers`
}

fn writer_of_table(table: &TableId, writers: u32) -> usize {
    let name = format!("{}\0{}", table.database, table.table);
    writer_of_group(key_group(name.as_bytes()), writers)
}

fn by_key(batch: ChangeBatch, writers: u32) -> Vec<(usize, ChangeBatch)> {
    let encoder = KeyEncoder::of_primary_key(batch.schema());
    let columns = encoder.columns(batch.columns());
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); writers as usize];
    let mut key = Vec::new();
    for row in 0..batch.rows() {
        key.clear();
        columns.encode(row, &mut key);
        let row_number = u32::try_from(row).expect("a batch has less than 2^32 rows");
        rows[writer_of_group(key_group(&key), writers)].push(row_number);
    }
    let all = batch.rows();
    let mut parts = Vec::with_capacity(rows.len());
    for (writer, rows) in rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        if rows.len() == all {
            return vec![(writer, batch)];
        }
        parts.push((writer, batch.take(&rows)));
    }
    parts
}

#[cfg(test)]
mod tests;
