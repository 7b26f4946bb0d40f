//! The captured tables as the log sees them: their names, their table maps, and the rows gathered for each.

use std::collections::HashMap;
use std::sync::Arc;

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::{ChangeBatch, TableId};
use cdchost_mysql_row::{ColumnError, ImagePlan, Mismatch, PassPlan, TableLayout, pass_image, pass_partial_image};
use cdchost_mysql_wire::ProtocolError;
use cdchost_mysql_wire::binlog::{RowsEvent, RowsOp, TableMapEvent};

use super::gather::{CutBatch, Gather, TransactionFacts, value_error};
use crate::remedy::leave_out;
use crate::snapshot::Windows;

/// Table maps kept for the case that they come again; above this, all are forgotten.
const MAPS_MAX: usize = 10_000;

/// A captured table.
#[derive(Debug)]
pub(crate) struct LogTable {
    gather: Gather,
    /// Its changes are handed on; a table whose rows are still to be read is mute.
    pub(crate) emits: bool,
    /// Row changes handed on.
    pub(crate) changes: u64,
    /// It was looked at when this run began: what changed it before is known.
    is_new: bool,
    /// It has rows in `gather` that nobody was told of.
    is_dirty: bool,
    /// The open transaction changed it.
    is_touched: bool,
}

/// All captured tables.
#[derive(Debug, Default)]
pub(crate) struct LogTables {
    tables: Vec<LogTable>,
    names: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
    maps: HashMap<u64, Mapped>,
    touched: Vec<usize>,
    dirty: Vec<usize>,
    /// Batches that hold rows of the open transaction.
    open: Vec<(usize, CutBatch)>,
    open_bytes: usize,
    /// Batches to be handed on.
    ready: Vec<ChangeBatch>,
}

/// A table map of this connection.
#[derive(Debug)]
struct Mapped {
    database: Vec<u8>,
    table: Vec<u8>,
    definition: Vec<u8>,
    target: Option<Arc<Target>>,
}

/// How a captured table's images are read under one table map.
#[derive(Debug)]
struct Target {
    table: usize,
    plan: Result<ImagePlan, Mismatch>,
    pass: Option<PassPlan>,
}

impl LogTables {
    /// Adds a table; places count from 0. `is_new`: it was looked at when this run began.
    pub(crate) fn add(&mut self, layout: Arc<TableLayout>, emits: bool, is_new: bool) {
        let id = &layout.schema.table;
        let database = self.names.entry(id.database.clone().into_bytes()).or_default();
        database.insert(id.table.clone().into_bytes(), self.tables.len());
        self.tables.push(LogTable {
            gather: Gather::new(layout),
            emits,
            changes: 0,
            is_new,
            is_dirty: false,
            is_touched: false,
        });
    }

    pub(crate) fn get(&self, place: usize) -> &LogTable {
        &self.tables[place]
    }

    /// Whether it was looked at when this run began.
    pub(crate) fn is_new(&self, place: usize) -> bool {
        self.tables[place].is_new
    }

    pub(crate) fn layout(&self, place: usize) -> &Arc<TableLayout> {
        self.tables[place].gather.layout()
    }

    /// From here on the table's changes are handed on.
    pub(crate) fn set_emits(&mut self, place: usize) {
        self.tables[place].emits = true;
    }

    /// Place of the table with this exact name.
    pub(crate) fn find(&self, database: &[u8], table: &[u8]) -> Option<usize> {
        self.names.get(database)?.get(table).copied()
    }

    /// Place of the first table whose name is such.
    pub(crate) fn find_such(&self, is_such: impl Fn(&TableId) -> bool) -> Option<usize> {
        self.tables.iter().position(|table| is_such(&table.gather.layout().schema.table))
    }

    /// A captured table of a database.
    pub(crate) fn any_in(&self, database: &str) -> Option<&Arc<TableLayout>> {
        let &place = self.names.get(database.as_bytes())?.values().min()?;
        Some(self.layout(place))
    }

    /// Table maps of another connection mean nothing.
    pub(crate) fn forget_maps(&mut self) {
        self.maps.clear();
    }

    /// Takes a table map. One that came before with the same content costs a comparison.
    pub(crate) fn map(&mut self, event: &TableMapEvent<'_>) -> Result<(), ProtocolError> {
        if let Some(mapped) = self.maps.get(&event.table_id)
            && mapped.definition == event.definition
            && mapped.table == event.table
            && mapped.database == event.database
        {
            return Ok(());
        }
        let target = match self.find(event.database, event.table) {
            None => None,
            Some(table) => {
                let map = event.columns()?;
                let layout = self.layout(table);
                let plan = ImagePlan::compile(&map, layout);
                Some(Arc::new(Target { table, plan, pass: PassPlan::compile(&map, layout) }))
            }
        };
        if self.maps.len() >= MAPS_MAX {
            self.maps.clear();
        }
        let mapped = Mapped {
            database: event.database.to_vec(),
            table: event.table.to_vec(),
            definition: event.definition.to_vec(),
            target,
        };
        self.maps.insert(event.table_id, mapped);
        Ok(())
    }

    /// Takes rows. `seq` goes up by two for each row change of a captured table, mute or not.
    pub(crate) fn rows(
        &mut self,
        event: &RowsEvent<'_>,
        facts: &TransactionFacts,
        seq: &mut i64,
        windows: &mut Windows,
    ) -> Result<(), ConnectorError> {
        let mapped = self.maps.get(&event.table_id).ok_or_else(|| unmapped(facts))?;
        let Some(target) = mapped.target.as_ref().map(Arc::clone) else { return Ok(()) };
        if !self.tables[target.table].emits {
            return self.pass(&target, event, facts, seq);
        }
        let plan = target.plan.as_ref().map_err(|error| self.mismatch(&target, error, facts))?;
        if event.column_count != plan.logged_columns() || !event.holds_first(plan.column_count()) {
            return Err(self.not_full(target.table, facts));
        }
        let table = &mut self.tables[target.table];
        if !table.is_touched {
            table.is_touched = true;
            self.touched.push(target.table);
        }
        if !table.is_dirty {
            table.is_dirty = true;
            self.dirty.push(target.table);
        }
        let watched = windows.open() > 0 && windows.watches(target.table);
        let mut rest = event.rows;
        while !rest.is_empty() {
            if table.gather.is_full() && table.gather.rows() > 0 {
                let cut = table.gather.cut(facts)?;
                self.open_bytes += cut.batch.bytes();
                self.open.push((target.table, cut));
            }
            let first = table.gather.rows();
            let changed = table.gather.change(plan, event.op, &mut rest, *seq + 1);
            changed.map_err(|error| value_error(table.gather.layout(), error, &place(facts)))?;
            *seq += 2;
            if watched {
                for row in first..table.gather.rows() {
                    windows.collect(target.table, |out| table.gather.encode_key(row, out));
                }
            }
        }
        Ok(())
    }

    /// Counts row changes of a mute table. Their values are of no interest, so neither is a map that does not fit.
    fn pass(
        &self,
        target: &Target,
        event: &RowsEvent<'_>,
        facts: &TransactionFacts,
        seq: &mut i64,
    ) -> Result<(), ConnectorError> {
        let layout = self.layout(target.table);
        let Some(plan) = target.pass.as_ref().filter(|plan| plan.column_count() == event.column_count) else {
            return Err(self.not_full(target.table, facts));
        };
        // Hidden columns, behind the others, are in no image.
        let counts = [event.column_count, layout.kinds.len()];
        let Some(count) = counts.into_iter().find(|&count| event.holds_first(count)) else {
            return Err(self.not_full(target.table, facts));
        };
        let mut rest = event.rows;
        while !rest.is_empty() {
            let passed = match event.op {
                RowsOp::Insert | RowsOp::Delete => pass_image(plan, count, &mut rest),
                RowsOp::Update => pass_image(plan, count, &mut rest).and_then(|()| pass_image(plan, count, &mut rest)),
                RowsOp::PartialUpdate => {
                    pass_image(plan, count, &mut rest).and_then(|()| pass_partial_image(plan, count, &mut rest))
                }
            };
            passed.map_err(|error| value_error(layout, ColumnError { column: 0, error }, &place(facts)))?;
            *seq += 2;
        }
        Ok(())
    }

    /// The open transaction has ended.
    pub(crate) fn end_transaction(&mut self, facts: &TransactionFacts) -> Result<(), ConnectorError> {
        for place in self.touched.drain(..) {
            let table = &mut self.tables[place];
            table.is_touched = false;
            table.changes += u64::from(table.gather.end_transaction(facts));
        }
        self.release();
        Ok(())
    }

    /// Bytes of batches that wait for the transaction's end.
    pub(crate) fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// Hands on what the open transaction has cut so far.
    pub(crate) fn release(&mut self) {
        self.ready.extend(self.open.drain(..).map(|(_, cut)| cut.batch));
        self.open_bytes = 0;
    }

    /// Takes back the open transaction's rows behind a change-seq, where no row behind it was handed on. Behind each cut
    /// a row follows in the open batch, so what was handed on hides no ordinal.
    pub(crate) fn roll_back(&mut self, seq: i64) {
        let mut ordinals = HashMap::new();
        for (place, cut) in std::mem::take(&mut self.open) {
            let (kept, ordinal) = cut.roll_back(seq);
            self.open.extend(kept.map(|cut| (place, cut)));
            let next: &mut u32 = ordinals.entry(place).or_default();
            *next = ordinal.max(*next);
        }
        self.open_bytes = self.open.iter().map(|(_, cut)| cut.batch.bytes()).sum();
        for &place in &self.touched {
            self.tables[place].gather.roll_back(seq, ordinals.get(&place).copied().unwrap_or(0));
        }
    }

    /// Hands on all that is gathered. Between transactions only.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectorError> {
        for place in self.dirty.drain(..) {
            let table = &mut self.tables[place];
            table.is_dirty = false;
            if table.gather.rows() > 0 {
                self.ready.push(table.gather.finish()?);
            }
        }
        Ok(())
    }

    /// What is to be handed on, in order.
    pub(crate) fn ready(&mut self) -> &mut Vec<ChangeBatch> {
        &mut self.ready
    }

    #[cold]
    fn mismatch(&self, target: &Target, error: &Mismatch, facts: &TransactionFacts) -> ConnectorError {
        let table = &self.layout(target.table).schema.table;
        let message = format!("table {table} differs from its rows in the log{}: {error}", place(facts));
        ConnectorError::stop(StopClass::Schema, "mysql-table-differs", message)
            .with_table(table.clone())
            .with_instruction(leave_out(table))
    }

    #[cold]
    fn not_full(&self, table: usize, facts: &TransactionFacts) -> ConnectorError {
        let table = &self.layout(table).schema.table;
        let message = format!("the log holds rows of table {table} without all of their columns{}", place(facts));
        let instruction = format!(
            "SET GLOBAL binlog_row_image = 'FULL', see that no session sets another one, and {}",
            leave_out(table)
        );
        ConnectorError::stop(StopClass::Source, "mysql-row-image", message)
            .with_table(table.clone())
            .with_instruction(instruction)
    }
}

#[cold]
fn unmapped(facts: &TransactionFacts) -> ConnectorError {
    let message = format!("the log has rows of a table that it has not named{}", place(facts));
    ConnectorError::restart(StopClass::Source, "mysql-unmapped-rows", message)
        .with_instruction("compare the server's log with mysqlbinlog --verify-binlog-checksum")
}

/// Where in the log, for messages.
pub(super) fn place(facts: &TransactionFacts) -> String {
    let position = &facts.position;
    format!(" (transaction {} that ends at {}:{})", facts.id, position.file, position.offset)
}
