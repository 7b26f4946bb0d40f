//! The five works and their sizes.

use crate::changes::Changes;

/// One benchmark work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Its name.
    pub(crate) name: &'static str,
    /// The table.
    pub(crate) table: &'static str,
    /// Row events a transaction; none for a snapshot.
    pub(crate) per_transaction: Option<u64>,
    /// Rows or row events by default.
    pub(crate) rows: u64,
    /// Rows a second of processor time that the floor reached on a quiet machine.
    pub(crate) floor_expected: f64,
    /// How many times the floor's processor time the product may take.
    pub(crate) target: f64,
}

/// All works.
pub(crate) const WORKS: [Work; 5] = [
    Work {
        name: "snapshot-sbtest",
        table: "sbtest",
        per_transaction: None,
        rows: 3_000_000,
        floor_expected: 8.8e6,
        target: 4.0,
    },
    Work {
        name: "snapshot-wide",
        table: "wide",
        per_transaction: None,
        rows: 500_000,
        floor_expected: 2.3e6,
        target: 3.0,
    },
    Work {
        name: "binlog-sbtest-100",
        table: "sbtest",
        per_transaction: Some(100),
        rows: 2_000_000,
        floor_expected: 10.5e6,
        target: 4.0,
    },
    Work {
        name: "binlog-sbtest-1",
        table: "sbtest",
        per_transaction: Some(1),
        rows: 300_000,
        floor_expected: 4.0e6,
        target: 4.0,
    },
    Work {
        name: "binlog-wide",
        table: "wide",
        per_transaction: Some(100),
        rows: 400_000,
        floor_expected: 3.0e6,
        target: 6.0,
    },
];

impl Work {
    /// The work of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        WORKS.into_iter().find(|work| work.name == name)
    }

    /// Rows that its table has at the start.
    pub(crate) fn table_rows(&self, rows: u64) -> u64 {
        if self.per_transaction.is_some() { 100_000 } else { rows }
    }

    /// The changes it makes; none for a snapshot.
    pub(crate) fn changes(&self, rows: u64) -> Option<Changes> {
        let base = self.table_rows(rows);
        self.per_transaction.map(|n| Changes { table: self.table, events: rows, per_transaction: n, base })
    }
}
