//! Data of one subtask: rows are buffered, sorted and folded per bucket, and written to files that nobody sees yet.

mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_sdk::runtime::{context, counter_add, histogram_record, now_micros};
use cdchost_sdk::{Batch, Committable, Cut, PluginError, ReadPlan, Result, RowMeta, Schema, TableId, Writer};

use crate::client::{Lake, Names};
use crate::committer::Ledger;
use crate::config::{Options, Settings};
use crate::handover::{FORMAT, Handover};
use table::TableBuffer;

/// Writes the rows of one subtask.
#[derive(Debug)]
pub struct PaimonWriter {
    settings: Settings,
    lake: Lake,
    names: Names,
    generation: u64,
    /// The epoch whose barrier has passed last; at the start, the newest one that the lake shows.
    last_epoch: u64,
    /// Every table that was announced, whether it has rows or not.
    tables: BTreeMap<TableId, TableBuffer>,
}

impl PaimonWriter {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let (settings, context) = (options.settings()?, context());
        let names = Names::new(&context, &format!("w{}", context.subtask))?;
        let lake = Lake::new(&settings);
        let progress = Ledger::new(lake.clone(), &context).newest()?;
        let last_epoch = progress.map_or(0, |progress| progress.cut.epoch);
        Ok(Self { settings, lake, names, generation: context.generation, last_epoch, tables: BTreeMap::new() })
    }

    /// Writes out what the fullest tables hold until `more` bytes have room.
    fn make_room(&mut self, more: usize) -> Result<()> {
        loop {
            let held: usize = self.tables.values().map(TableBuffer::buffered_bytes).sum();
            if held == 0 || held + more <= self.settings.write_buffer {
                return Ok(());
            }
            let Some(fullest) = self.tables.values_mut().max_by_key(|table| table.buffered_bytes()) else {
                return Ok(());
            };
            fullest.write_out(&mut self.names, self.last_epoch, self.settings.target_file_size)?;
        }
    }

    fn table(&mut self, id: &TableId) -> Result<&mut TableBuffer> {
        let unknown =
            || PluginError::bug("unknown-table", format!("rows of table {id}, whose schema was not announced"));
        self.tables.get_mut(id).ok_or_else(unknown)
    }
}

impl Writer for PaimonWriter {
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan> {
        let folder = self.lake.table(&schema.table)?;
        match self.tables.get_mut(&schema.table) {
            Some(table) => {
                table.write_out(&mut self.names, self.last_epoch, self.settings.target_file_size)?;
                table.change_schema(schema, &self.settings)?;
            }
            None => {
                let table = TableBuffer::open(folder, schema, &self.settings)?;
                self.tables.insert(schema.table.clone(), table);
            }
        }
        Ok(ReadPlan::all(schema).with_meta(RowMeta { change_seq: true, ..RowMeta::default() }))
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        // First room, then the rows: a store that does not answer leaves the batch untaken.
        self.make_room(batch.bytes())?;
        counter_add("paimon_rows_total", batch.rows() as u64);
        let id = batch.schema().table.clone();
        self.table(&id)?.take(batch)
    }

    fn flush(&mut self, id: &TableId) -> Result<()> {
        match self.tables.get_mut(id) {
            Some(table) => table.write_out(&mut self.names, self.last_epoch, self.settings.target_file_size),
            None => Ok(()),
        }
    }

    fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>> {
        let started = now_micros();
        let mut committables = Vec::new();
        for table in self.tables.values_mut() {
            table.write_out(&mut self.names, self.last_epoch, self.settings.target_file_size)?;
            let entries = table.hand_over();
            if entries.is_empty() {
                continue;
            }
            let (rows, bytes) = entries.iter().fold((0, 0), |(rows, bytes), entry| {
                (rows + entry.file.row_count.unsigned_abs(), bytes + entry.file.size.unsigned_abs())
            });
            // The cut goes with the first one: whoever commits the epoch can put its marker, too.
            let cut = committables.is_empty().then(|| at.clone());
            let handover = Handover {
                table: table.id().clone(),
                schema_id: table.schema_id(),
                bucket_count: table.buckets().total(),
                cut,
                entries,
            };
            committables.push(Committable {
                epoch: at.epoch,
                generation: self.generation,
                key: table.id().to_string(),
                format: FORMAT,
                payload: handover.to_bytes(),
                rows,
                bytes,
            });
        }
        self.last_epoch = at.epoch;
        histogram_record("paimon_prepare_seconds", (now_micros() - started) as f64 / 1e6);
        Ok(committables)
    }

    fn close(&mut self, discard: bool) {
        // What was staged and not handed over is removed where that is easy; else the next run does it.
        if discard {
            self.tables.values_mut().for_each(TableBuffer::discard);
        }
    }
}
