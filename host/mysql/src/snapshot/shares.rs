//! The tables that are still to be read, and how readers share them: each a table of its own while there are enough,
//! then stretches of the same one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cdchost_mysql_row::{KeyValue, TableLayout};

/// The first chunk of a table is small, since the size of its rows is not known.
const FIRST_ROWS: u32 = 1_024;

/// A table to be read.
#[derive(Clone, Debug)]
pub(crate) struct ReaderJob {
    pub(crate) table: usize,
    pub(crate) layout: Arc<TableLayout>,
    /// Where to begin.
    pub(crate) next: Option<Vec<KeyValue>>,
}

/// All tables that are to be read.
#[derive(Debug)]
pub(crate) struct Shares {
    tables: Vec<SharedTable>,
    claims: Mutex<Vec<Claim>>,
}

/// A table that several may read.
#[derive(Debug)]
pub(super) struct SharedTable {
    pub(super) table: usize,
    pub(super) layout: Arc<TableLayout>,
    /// Its key alone.
    pub(super) key: TableLayout,
    /// How far stretches were given out. Whoever holds it asks for the window of its stretch before letting go, so that
    /// a table's windows are asked for in the order of its key.
    pub(super) cutting: tokio::sync::Mutex<Cutting>,
    rows: AtomicU32,
}

/// How far stretches of a table were given out.
#[derive(Debug)]
pub(super) struct Cutting {
    /// Where the next one begins.
    pub(super) next: Option<Vec<KeyValue>>,
    /// The last one was given out.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    readers: usize,
    is_over: bool,
}

impl Shares {
    /// Tables in the order in which they are to be begun.
    pub(crate) fn new(jobs: Vec<ReaderJob>, rows_max: u32) -> Self {
        let claims = Mutex::new(vec![Claim::default(); jobs.len()]);
        let table = |job: ReaderJob| SharedTable {
            table: job.table,
            key: job.layout.key_alone(),
            layout: job.layout,
            cutting: tokio::sync::Mutex::new(Cutting { next: job.next, is_over: false }),
            rows: AtomicU32::new(FIRST_ROWS.min(rows_max)),
        };
        Self { tables: jobs.into_iter().map(table).collect(), claims }
    }

    pub(super) fn get(&self, place: usize) -> &SharedTable {
        &self.tables[place]
    }

    /// The table that has most need of a reader; none if all stretches of all tables were given out.
    pub(super) fn claim(&self) -> Option<usize> {
        let mut claims = self.claims();
        let open = claims.iter_mut().enumerate().filter(|(_, claim)| !claim.is_over);
        let (place, claim) = open.min_by_key(|(_, claim)| claim.readers)?;
        claim.readers += 1;
        Some(place)
    }

    /// A reader has found nothing more to be given out of a table.
    pub(super) fn leave(&self, place: usize) {
        let claim = &mut self.claims()[place];
        claim.readers -= 1;
        claim.is_over = true;
    }

    /// Whether more than one reader is at a table.
    pub(super) fn is_shared(&self, place: usize) -> bool {
        self.claims()[place].readers > 1
    }

    fn claims(&self) -> MutexGuard<'_, Vec<Claim>> {
        // Counts are right after each single step, so also where a holder panicked.
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedTable {
    /// Rows of the next stretch.
    pub(super) fn rows(&self) -> u32 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(super) fn set_rows(&self, rows: u32) {
        self.rows.store(rows.max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use cdchost_model::{Field, LogicalType, SchemaVersion, TableId, TableSchema};
    use cdchost_mysql_row::ValueRules;

    use super::*;

    fn job(table: usize) -> ReaderJob {
        let field = |name: &str| Field {
            name: name.into(),
            ty: LogicalType::Int32,
            nullable: false,
            native_type: "int".into(),
            default_value: None,
            comment: None,
        };
        let schema = TableSchema {
            table: TableId::new("d", "t"),
            version: SchemaVersion(1),
            fields: vec![field("a"), field("b"), field("c")],
            primary_key: vec![2, 0],
            partition_key: vec![],
            options: vec![],
        };
        ReaderJob {
            table,
            layout: Arc::new(TableLayout::new(Arc::new(schema), "k".into(), &ValueRules::default()).unwrap()),
            next: None,
        }
    }

    #[test]
    fn readers_take_free_tables_first_and_then_share() {
        let shares = Shares::new(vec![job(4), job(7)], 100);
        assert_eq!((shares.claim(), shares.claim()), (Some(0), Some(1)));
        assert!(!shares.is_shared(0));
        assert_eq!(shares.claim(), Some(0));
        assert!(shares.is_shared(0) && !shares.is_shared(1));
        shares.leave(0);
        assert_eq!(shares.claim(), Some(1), "a table that was given out is left alone");
        shares.leave(1);
        assert_eq!(shares.claim(), None);
        assert_eq!((shares.get(0).table, shares.get(1).rows()), (4, 100));
    }

    #[test]
    fn a_key_alone_keeps_its_order() {
        let shares = Shares::new(vec![job(0)], 100);
        let key = &shares.get(0).key;
        let names: Vec<&str> = key.schema.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!((names, key.key().collect::<Vec<_>>()), (vec!["c", "a"], vec![0, 1]));
    }
}
