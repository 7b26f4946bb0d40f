//! The captured tables of a run: how far each one's snapshot is, and what a checkpoint keeps of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, SnapshotState, StopClass, TableProgress};
use cdchost_model::{TableId, TableSchema};
use cdchost_mysql_look::digest;
use cdchost_mysql_look::discover::Discovery;
use cdchost_mysql_row::{KeyValue, TableLayout, ValueRules};

use super::offset::{State, TableState};
use crate::binlog::{LogTables, Transactions};
use crate::remedy::ANEW;
use crate::snapshot::{ReaderJob, Walk, WholeJob};

/// A table's walk, and what it has come to.
#[derive(Debug)]
pub(super) struct TableWalk {
    pub(super) layout: Arc<TableLayout>,
    pub(super) walk: Walk,
    pub(super) rows_read: u64,
    pub(super) chunks: u64,
    rows_estimate: Option<u64>,
    /// It was looked at when this run began.
    is_new: bool,
    /// Row changes handed on by earlier runs.
    changes_before: u64,
}

impl TableWalk {
    /// A window is opened: from here on all changes are handed on.
    pub(super) fn begin(&mut self) {
        if self.walk == Walk::Mute {
            self.walk = Walk::Emitting { next: None };
        }
    }

    /// Whether the walk has come to a chunk that begins behind this key.
    pub(super) fn is_next(&self, after: &Option<Vec<KeyValue>>) -> bool {
        matches!(&self.walk, Walk::Emitting { next } if next == after)
    }

    /// A chunk was handed on.
    pub(super) fn merged(&mut self, next: Option<Vec<KeyValue>>, is_last: bool) {
        self.chunks += 1;
        if is_last {
            self.walk = Walk::Done;
        } else if next.is_some() {
            self.walk = Walk::Emitting { next };
        }
    }
}

/// All captured tables, by place.
#[derive(Debug)]
pub(super) struct Tables {
    walks: Vec<TableWalk>,
    /// Tables that were captured once and are not any more.
    left: Vec<TableId>,
}

impl Tables {
    /// Tables of a first start.
    pub(super) fn found(discovery: Discovery, reads_rows: bool) -> Self {
        let walk = if reads_rows { Walk::Mute } else { Walk::Done };
        let walks = discovery.tables.into_values().map(|found| TableWalk {
            layout: found.layout,
            walk: walk.clone(),
            rows_read: 0,
            chunks: 0,
            rows_estimate: found.rows_estimate,
            is_new: true,
            changes_before: 0,
        });
        Self { walks: walks.collect(), left: Vec::new() }
    }

    /// Tables as a checkpoint has them, and those that have come since: their rows are still to be read. Those that the
    /// patterns do not match any more are left; one that was left may not come back, since nobody knows which of its
    /// rows are gone by now.
    pub(super) fn restored(
        state: &State,
        discovery: Discovery,
        rules: &ValueRules,
        patterns: &TablePatterns,
    ) -> Result<Self, ConnectorError> {
        let matched = |id: &TableId| patterns.matches(&id.database, &id.table);
        if let Some(back) = state.left.iter().find(|id| matched(id)) {
            let message = format!("table {back} was left out for a while, and its target may hold rows that are gone");
            return Err(ConnectorError::stop(StopClass::Config, "mysql-table-was-left-out", message)
                .with_table(back.clone())
                .with_instruction(format!(
                    "leave it out (add {} to `tables` in [source]), or {ANEW}",
                    TablePatterns::leaving_out(&back.database, &back.table)
                )));
        }
        let is_lost = |id: &&TableId| !matched(id) && !patterns.leaves_out(&id.database, &id.table);
        let lost: Vec<_> = state.tables.iter().map(|table| &table.schema.table).filter(is_lost).collect();
        if !lost.is_empty() {
            return Err(not_matched(&lost));
        }
        let mut left = state.left.clone();
        let mut walks = Vec::with_capacity(state.tables.len() + discovery.tables.len());
        for table in &state.tables {
            if !matched(&table.schema.table) {
                tracing::warn!(table = %table.schema.table, "the table is left out from here on, for good");
                left.push(table.schema.table.clone());
                continue;
            }
            let layout =
                TableLayout::new(Arc::new(table.schema.clone()), table.key_index.clone(), rules).map_err(|column| {
                    let message = format!(
                        "column `{column}` of table {} has a type or character set that is not known",
                        table.schema.table
                    );
                    ConnectorError::stop(StopClass::Storage, "mysql-state", message)
                        .with_instruction("use the version of cdchost that wrote the record")
                })?;
            walks.push(TableWalk {
                layout: Arc::new(layout),
                walk: table.walk.clone(),
                rows_read: table.rows_read,
                chunks: table.chunks,
                rows_estimate: None,
                is_new: false,
                changes_before: table.changes,
            });
        }
        let come = Self::found(discovery, true);
        walks.extend(come.walks);
        Ok(Self { walks, left })
    }

    pub(super) fn schemas(&self) -> Vec<Arc<TableSchema>> {
        self.walks.iter().map(|table| Arc::clone(&table.layout.schema)).collect()
    }

    pub(super) fn get(&self, place: usize) -> &TableWalk {
        &self.walks[place]
    }

    pub(super) fn get_mut(&mut self, place: usize) -> &mut TableWalk {
        &mut self.walks[place]
    }

    /// Whether all rows that are to be read were handed on.
    pub(super) fn all_done(&self) -> bool {
        self.walks.iter().all(|table| table.walk == Walk::Done)
    }

    /// The tables as the log takes them.
    pub(super) fn for_log(&self) -> LogTables {
        let mut tables = LogTables::default();
        for table in &self.walks {
            tables.add(Arc::clone(&table.layout), table.walk != Walk::Mute, table.is_new);
        }
        tables
    }

    /// What is left to be read whole.
    pub(super) fn whole_jobs(&self) -> Vec<WholeJob> {
        let all = self.walks.iter().enumerate();
        let left = all.filter(|(_, table)| table.walk != Walk::Done && table.layout.is_keyless());
        left.map(|(table, walk)| WholeJob { table, layout: Arc::clone(&walk.layout) }).collect()
    }

    /// What is left to be read along a key; a table that was begun comes first.
    pub(super) fn jobs(&self) -> Vec<ReaderJob> {
        let job = |(table, walk): (usize, &TableWalk)| ReaderJob {
            table,
            layout: Arc::clone(&walk.layout),
            next: match &walk.walk {
                Walk::Emitting { next } => next.clone(),
                Walk::Mute | Walk::Done => None,
            },
        };
        let begun = |table: &TableWalk| matches!(table.walk, Walk::Emitting { .. });
        let all = || self.walks.iter().enumerate().filter(|(_, table)| !table.layout.is_keyless());
        let first = all().filter(|(_, table)| begun(table));
        let then = all().filter(|(_, table)| table.walk == Walk::Mute);
        first.chain(then).map(job).collect()
    }

    /// What a checkpoint keeps. A table whose earlier changes may still be to come is not kept: the next run will look
    /// at it again.
    pub(super) fn state(&self, log: &Transactions, has_passed_known: bool) -> State {
        let table = |(place, table): (usize, &TableWalk)| TableState {
            schema: table.layout.schema.as_ref().clone(),
            key_index: table.layout.key_index.clone(),
            walk: table.walk.clone(),
            rows_read: table.rows_read,
            chunks: table.chunks,
            changes: table.changes_before + log.tables.get(place).changes,
        };
        let kept = self.walks.iter().enumerate().filter(|(_, table)| has_passed_known || !table.is_new);
        State {
            tables: kept.map(table).collect(),
            left: self.left.clone(),
            prepared: log.prepared().cloned().collect(),
        }
    }

    /// What people see.
    pub(super) fn progress(&self, log: &LogTables) -> BTreeMap<TableId, TableProgress> {
        let progress = |(place, table): (usize, &TableWalk)| {
            let shown = TableProgress {
                snapshot: match table.walk {
                    Walk::Mute => SnapshotState::Waiting,
                    Walk::Emitting { .. } => SnapshotState::Reading,
                    Walk::Done => SnapshotState::Done,
                },
                rows_read: table.rows_read,
                rows_estimate: table.rows_estimate,
                chunks_done: table.chunks,
                changes: table.changes_before + log.get(place).changes,
            };
            (table.layout.schema.table.clone(), shown)
        };
        self.walks.iter().enumerate().map(progress).collect()
    }
}

/// Whoever takes a table out of the pipeline says so by name: it may not come back into the same target.
fn not_matched(lost: &[&TableId]) -> ConnectorError {
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    let out: Vec<String> = lost.iter().map(|id| TablePatterns::leaving_out(&id.database, &id.table)).collect();
    let message = format!("`tables` in [source] does not match what this pipeline captures: {}", names.join(", "));
    ConnectorError::stop(StopClass::Config, "mysql-table-not-matched", message)
        .with_table(lost[0].clone())
        .with_instruction(format!(
            "put the patterns right, or leave the tables out for good (add {} to `tables`)",
            out.join(", ")
        ))
}

/// Digest of the set of captured tables: 32 bytes out of their sorted names. It tells sets apart, it guards nothing.
pub(super) fn tables_digest(schemas: &[Arc<TableSchema>]) -> [u8; 32] {
    let mut names: Vec<Vec<u8>> = schemas
        .iter()
        .map(|schema| {
            let id = &schema.table;
            [id.database.as_bytes(), b"\0", id.table.as_bytes(), b"\0"].concat()
        })
        .collect();
    names.sort();
    digest(&names.concat())
}

#[cfg(test)]
mod tests {
    use cdchost_model::SchemaVersion;

    use super::*;

    #[test]
    fn the_digest_knows_names_and_not_their_order() {
        let schema = |database: &str, table: &str| {
            Arc::new(TableSchema {
                table: TableId::new(database, table),
                version: SchemaVersion(1),
                fields: vec![],
                primary_key: vec![],
                partition_key: vec![],
                options: vec![],
            })
        };
        let one = tables_digest(&[schema("a", "b"), schema("c", "d")]);
        assert_eq!(one, tables_digest(&[schema("c", "d"), schema("a", "b")]));
        assert_ne!(one, tables_digest(&[schema("a", "b")]));
        assert_ne!(one, tables_digest(&[schema("ab", ""), schema("c", "d")]));
    }
}
