//! Windows: what the stream changed while a chunk was read, so that the chunk's rows find their place in the log.

use std::collections::{HashMap, VecDeque};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use cdchost_model::{KeyEncoder, TableSchema};
use cdchost_mysql_position::{BinlogPosition, ServerUuid};
use cdchost_mysql_row::KeyValue;

/// What a collected key costs beside its bytes.
const KEY_OVERHEAD: usize = 48;

/// What windows leave out. A run leaves out nothing; the others are for tests that show that they would notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// A chunk is read without waiting until its session sees what the stream has handed on: from a view of before.
    NoWait,
    /// Changed keys are collected only from when the chunk has been read.
    LateCollector,
}

/// A stretch of a table as one query read it.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Its rows.
    pub(crate) rows: RecordBatch,
    /// Their bytes as the server sent them.
    pub(crate) bytes: u64,
    /// The key that it begins behind; none for the table's beginning.
    pub(crate) after: Option<Vec<KeyValue>>,
    /// The key that it ends at; the next chunk begins behind it.
    pub(crate) next: Option<Vec<KeyValue>>,
    /// The table ends with it.
    pub(crate) is_last: bool,
    /// The server that it was read from.
    pub(crate) server: ServerUuid,
    /// The high watermark: where the server's log ended after the read.
    pub(crate) high: BinlogPosition,
    /// When it was read, in microseconds since the epoch.
    pub(crate) read_at: i64,
}

/// A window: armed, and after a while filled with its chunk.
#[derive(Debug)]
struct Window {
    number: u64,
    table: usize,
    reader: usize,
    chunk: Option<Chunk>,
}

/// All open windows, in the order in which they were armed, and the keys that the stream changed meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    open: VecDeque<Window>,
    /// Number of the window armed last.
    armed: u64,
    /// For each key that was changed: the window that was the last armed one when it was changed last. A window's
    /// chunk loses the keys whose number is its own or greater.
    keys: HashMap<Box<[u8]>, u64>,
    key_bytes: usize,
    /// Keys of the transaction that is being read, one after the other, and where each ends. They count from its end.
    pending: Vec<u8>,
    pending_ends: Vec<usize>,
    pub(crate) fault: Fault,
}

/// A chunk whose window is passed, and which of its rows stand.
#[derive(Debug)]
pub(crate) struct PassedChunk {
    pub(crate) table: usize,
    pub(crate) chunk: Chunk,
    /// A bit for each row: no change of its key was handed on since the window was armed.
    pub(crate) keep: BooleanBuffer,
}

impl Windows {
    /// Opens a window on a table for a reader: from here on, the table's changed keys are collected. Between
    /// transactions only.
    pub(crate) fn arm(&mut self, table: usize, reader: usize) -> u64 {
        self.armed += 1;
        self.open.push_back(Window { number: self.armed, table, reader, chunk: None });
        self.armed
    }

    /// A reader's window that has no chunk yet is given up: its reading failed.
    pub(crate) fn give_up(&mut self, reader: usize) {
        self.open.retain(|window| window.reader != reader || window.chunk.is_some());
    }

    /// Gives a window its chunk. A chunk of a window that is not open is dropped (false): it will be read again.
    pub(crate) fn fill(&mut self, number: u64, chunk: Chunk) -> bool {
        let Some(window) = self.open.iter_mut().find(|window| window.number == number) else { return false };
        if self.fault == Fault::LateCollector {
            self.armed += 1;
            window.number = self.armed;
        }
        window.chunk.replace(chunk).is_none()
    }

    /// Number of open windows.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Bytes that the chunks of open windows take, where one that is still to come takes `expected`.
    pub(crate) fn chunk_bytes(&self, expected: u64) -> u64 {
        self.open.iter().map(|window| window.chunk.as_ref().map_or(expected, |chunk| chunk.bytes)).sum()
    }

    /// Whether changes of a table's rows must be collected.
    #[inline]
    pub(crate) fn watches(&self, table: usize) -> bool {
        self.open.iter().any(|window| window.table == table)
    }

    /// Collects the key of a changed row; `encode` appends its bytes.
    pub(crate) fn collect(&mut self, table: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        put_table(table, &mut self.pending);
        encode(&mut self.pending);
        self.pending_ends.push(self.pending.len());
    }

    /// Bytes that collected keys take.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_bytes + self.pending.len() + self.pending_ends.len() * size_of::<usize>()
    }

    /// The transaction has been handed on.
    pub(crate) fn end_transaction(&mut self) {
        let mut start = 0;
        for end in self.pending_ends.drain(..) {
            let key = &self.pending[start..end];
            start = end;
            if let Some(number) = self.keys.get_mut(key) {
                *number = self.armed;
            } else {
                self.key_bytes += key.len() + KEY_OVERHEAD;
                self.keys.insert(key.into(), self.armed);
            }
        }
        self.pending.clear();
    }

    /// Keys collected of the transaction that is being read.
    pub(crate) fn pending(&self) -> usize {
        self.pending_ends.len()
    }

    /// What the transaction changed behind so many keys is taken back.
    pub(crate) fn roll_back(&mut self, keys: usize) {
        self.pending_ends.truncate(keys);
        self.pending.truncate(self.pending_ends.last().copied().unwrap_or(0));
    }

    /// Takes out a chunk whose high watermark the stream, between two transactions at `position` of `server`, has
    /// passed. `is_next` says whether a table's walk has come to the chunk.
    pub(crate) fn take_passed(
        &mut self,
        server: ServerUuid,
        position: &BinlogPosition,
        schema: impl FnOnce(usize) -> std::sync::Arc<TableSchema>,
        is_next: impl Fn(usize, &Chunk) -> bool,
    ) -> Option<PassedChunk> {
        let is_passed = |window: &Window| {
            window
                .chunk
                .as_ref()
                .is_some_and(|chunk| chunk.server == server && *position >= chunk.high && is_next(window.table, chunk))
        };
        let window = self.open.remove(self.open.iter().position(is_passed)?)?;
        let chunk = window.chunk?;
        let keep = self.standing_rows(window.number, window.table, &chunk, &schema(window.table));
        self.forget_old_keys();
        Some(PassedChunk { table: window.table, chunk, keep })
    }

    /// Closes all windows; their chunks will be read again.
    pub(crate) fn close(&mut self) {
        self.open.clear();
        self.roll_back(0);
        self.forget_old_keys();
    }

    fn standing_rows(&self, number: u64, table: usize, chunk: &Chunk, schema: &TableSchema) -> BooleanBuffer {
        let rows = chunk.rows.num_rows();
        if self.keys.is_empty() {
            return BooleanBuffer::new_set(rows);
        }
        let encoder = KeyEncoder::of_primary_key(schema);
        let columns = encoder.columns(&chunk.rows);
        let mut key = Vec::new();
        BooleanBuffer::collect_bool(rows, |row| {
            key.clear();
            put_table(table, &mut key);
            columns.encode(row, &mut key);
            self.keys.get(key.as_slice()).is_none_or(|&changed| changed < number)
        })
    }

    fn forget_old_keys(&mut self) {
        match self.open.front().map(|window| window.number) {
            None => self.keys = HashMap::new(),
            Some(oldest) => self.keys.retain(|_, changed| *changed >= oldest),
        }
        self.key_bytes = self.keys.keys().map(|key| key.len() + KEY_OVERHEAD).sum();
    }
}

/// Keys of all tables share one map, so each begins with its table.
fn put_table(table: usize, out: &mut Vec<u8>) {
    let table = u32::try_from(table).expect("tables are far below 2^32");
    out.extend_from_slice(&table.to_le_bytes());
}

#[cfg(test)]
mod tests;
