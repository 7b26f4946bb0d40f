//! Rolling back in the log: a whole transaction, or back to a place in it that was given a name.
//!
//! A server logs such a transaction for what cannot be undone: temporary tables, or tables without transactions. Rows
//! of the latter are no part of it: where the log holds rows, the server writes those of tables without transactions as
//! transactions of their own, which end with COMMIT. So all rows of captured tables in it are undone.

use std::collections::BTreeMap;

use cdchost_connector::ConnectorError;

use super::Transactions;
use crate::remedy::ANEW;

/// A place in the open transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// The change-seq taken last.
    pub(super) seq: i64,
    /// Keys collected for windows.
    pub(super) keys: usize,
}

/// The places of a transaction that have names.
#[derive(Debug, Default)]
pub(super) struct Savepoints {
    by_name: BTreeMap<String, Mark>,
    /// A name was given that may be another one to us and the same to the server.
    is_unsure: bool,
}

impl Savepoints {
    /// A place gets a name, which no other has from now on.
    fn set(&mut self, name: &str, mark: Mark) {
        self.is_unsure |= !name.is_ascii();
        self.by_name.insert(folded(name), mark);
    }

    /// The place of a name, if it is sure. Places behind it are forgotten.
    fn go_back(&mut self, name: &str) -> Option<Mark> {
        let mark = self.by_name.get(&folded(name)).copied().filter(|_| !self.is_unsure)?;
        self.by_name.retain(|_, other| other.seq <= mark.seq);
        Some(mark)
    }
}

/// The server compares names of savepoints without regard to case and to blanks at their end.
fn folded(name: &str) -> String {
    name.trim_end_matches(' ').to_ascii_lowercase()
}

impl Transactions {
    /// The open transaction stands at a place that gets a name.
    pub(super) fn set_savepoint(&mut self, name: &str) {
        let mark = Mark { seq: self.seq, keys: self.windows.pending() };
        if let Some(current) = &mut self.current {
            current.savepoints.set(name, mark);
        }
    }

    /// The open transaction is rolled back to its beginning.
    pub(super) fn take_back_all(&mut self) -> Result<(), ConnectorError> {
        let Some(current) = &self.current else { return Ok(()) };
        self.take_back(Mark { seq: current.seq_before, keys: 0 })
    }

    /// The open transaction is rolled back to a place with a name.
    pub(super) fn take_back_to(&mut self, name: &str) -> Result<(), ConnectorError> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if self.seq == current.seq_before {
            return Ok(());
        }
        let Some(mark) = current.savepoints.go_back(name) else {
            let what = "a transaction that changed captured tables was rolled back in the log to a place in it that is \
                        not known";
            return Err(self.refused("mysql-rollback", what, ANEW));
        };
        self.take_back(mark)
    }

    fn take_back(&mut self, mark: Mark) -> Result<(), ConnectorError> {
        if self.current.as_ref().is_some_and(|current| current.handed_on > mark.seq) {
            let what = "a large transaction that changed captured tables was rolled back in the log, and a part of it \
                        was handed on already";
            let instruction = "raise transaction.max-buffer in [source] above the size of that transaction and start \
                               the pipeline again: it goes on from the last checkpoint";
            return Err(self.refused("mysql-rollback", what, instruction));
        }
        self.roll_back(mark);
        Ok(())
    }

    /// Takes back what came behind a place in the open transaction.
    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.seq = mark.seq;
        self.tables.roll_back(mark.seq);
        self.windows.roll_back(mark.keys);
    }
}

#[cfg(test)]
mod tests;
