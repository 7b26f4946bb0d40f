//! What a plugin wants of each table, at the version that it was last told.

use std::collections::HashMap;

use cdchost_connector::ConnectorError;
use cdchost_model::{ChangeBatch, SchemaVersion, TableId, TableSchema};

use super::fault::Faults;
use crate::convert::{HostBatch, TablePlan};

/// The plans of one instance.
#[derive(Debug)]
pub(super) struct Plans<P> {
    by_table: HashMap<TableId, (SchemaVersion, P)>,
    handles: u32,
}

impl<P> Default for Plans<P> {
    fn default() -> Self {
        Self { by_table: HashMap::new(), handles: 0 }
    }
}

impl<P> Plans<P> {
    /// The handle that the next schema is announced by.
    pub(super) fn next_handle(&mut self) -> u32 {
        self.handles += 1;
        self.handles
    }

    pub(super) fn put(&mut self, schema: &TableSchema, plan: P) {
        self.by_table.insert(schema.table.clone(), (schema.version, plan));
    }

    /// The plan for a batch's table at its version.
    pub(super) fn of(&self, schema: &TableSchema, faults: &Faults) -> Result<&P, ConnectorError> {
        match self.by_table.get(&schema.table) {
            Some((version, plan)) if *version == schema.version => Ok(plan),
            _ => Err(faults.unhandable(&schema.table, "its schema version was not announced")),
        }
    }
}

/// A batch as it is handed over.
pub(super) fn handed(batch: &ChangeBatch, plan: &TablePlan, faults: &Faults) -> Result<HostBatch, ConnectorError> {
    let reason = "a column has no type of the contract or is too large";
    HostBatch::new(batch, plan).ok_or_else(|| faults.unhandable(&batch.schema().table, reason))
}
