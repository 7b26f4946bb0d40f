//! Gathers lines by table, stages full files, hands them over at prepare.

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_sdk::json_lines::{self, Metadata};
use cdchost_sdk::{Batch, Committable, Cut, PluginError, ReadPlan, Result, Schema, TableId, Writer, runtime};

use crate::Options;
use crate::client::{Part, Target};

/// Bytes of lines that a writer holds in memory, over all tables.
const BUFFERED_BYTES_MAX: usize = 64 << 20;

/// One subtask.
#[derive(Debug)]
pub struct FileWriter {
    target: Target,
    options: Options,
    tables: BTreeMap<TableId, Lines>,
    /// The number of the next staged file.
    next_staged: u64,
    /// Lines of the batch at hand; kept for its memory.
    encoded: Vec<u8>,
}

/// What an epoch has of one table.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    rows: u64,
    /// Path, rows and bytes of each full file.
    staged: Vec<(String, u64, u64)>,
}

impl FileWriter {
    pub(crate) fn new(options: Options) -> Result<Self> {
        let target = Target::new(&options)?;
        Ok(Self { target, options, tables: BTreeMap::new(), next_staged: 0, encoded: Vec::new() })
    }

    /// Makes room for the lines of a batch, before any of them counts as taken.
    fn make_room(&mut self, table: &TableId, bytes: usize) -> Result<()> {
        let of_table = self.tables.get(table).map_or(0, |lines| lines.buffer.len());
        if of_table > 0 && (of_table + bytes) as u64 > self.options.part_size.0 {
            self.stage(table)?;
        }
        while self.buffered_bytes() > 0 && self.buffered_bytes() + bytes > BUFFERED_BYTES_MAX {
            let largest = self.tables.iter().max_by_key(|(_, lines)| lines.buffer.len());
            let largest = largest.map(|(table, _)| table.clone()).expect("bytes are buffered, so there is a table");
            self.stage(&largest)?;
        }
        Ok(())
    }

    fn buffered_bytes(&self) -> usize {
        self.tables.values().map(|lines| lines.buffer.len()).sum()
    }

    /// Writes a table's lines to a file of their own.
    fn stage(&mut self, table: &TableId) -> Result<()> {
        let Some(lines) = self.tables.get_mut(table).filter(|lines| !lines.buffer.is_empty()) else { return Ok(()) };
        let path = self.target.stage(&mut self.next_staged, &lines.buffer)?;
        lines.staged.push((path, std::mem::take(&mut lines.rows), lines.buffer.len() as u64));
        lines.buffer.clear();
        Ok(())
    }

    fn committable(&self, table: &TableId, lines: &Lines, at: &Cut) -> Result<Committable> {
        let part = |(number, (staged, rows, bytes)): (usize, &(String, u64, u64))| Part {
            staged: staged.clone(),
            path: self.target.visible_path(table, at.epoch, number),
            rows: *rows,
            bytes: *bytes,
        };
        let parts: Vec<Part> = lines.staged.iter().enumerate().map(part).collect();
        let payload = serde_json::to_vec(&parts)
            .map_err(|error| PluginError::bug("committable-unwritable", format!("list of files: {error}")))?;
        Ok(Committable {
            epoch: at.epoch,
            generation: at.generation,
            key: table.to_string(),
            format: 1,
            payload,
            rows: parts.iter().map(|part| part.rows).sum(),
            bytes: parts.iter().map(|part| part.bytes).sum(),
        })
    }
}

impl Writer for FileWriter {
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan> {
        Ok(ReadPlan::all(schema).with_meta(Metadata::row_meta(&self.options.metadata)))
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        json_lines::encode(&batch, &self.options.metadata, &mut encoded)?;
        let table = &batch.schema().table;
        self.make_room(table, encoded.len())?;
        let lines = self.tables.entry(table.clone()).or_default();
        lines.buffer.extend_from_slice(&encoded);
        lines.rows += batch.rows() as u64;
        runtime::counter_add("rows_total", batch.rows() as u64);
        runtime::counter_add("bytes_total", encoded.len() as u64);
        self.encoded = encoded;
        Ok(())
    }

    fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>> {
        let tables: Vec<TableId> = self.tables.keys().cloned().collect();
        tables.iter().try_for_each(|table| self.stage(table))?;
        let with_files = self.tables.iter().filter(|(_, lines)| !lines.staged.is_empty());
        let items = with_files.map(|(table, lines)| self.committable(table, lines, at)).collect::<Result<_>>()?;
        self.tables.clear();
        Ok(items)
    }

    fn close(&mut self, discard: bool) {
        let staged = self.tables.values().flat_map(|lines| &lines.staged).map(|(path, ..)| path.as_str());
        let staged: Vec<&str> = staged.collect();
        if discard && let Err(error) = self.target.unstage(&staged) {
            let message = "staged files stay until the next start";
            runtime::log(runtime::Level::Warn, message, &[("error", &error.message)]);
        }
    }
}
