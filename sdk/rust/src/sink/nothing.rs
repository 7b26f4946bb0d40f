//! The committer of sinks whose writers leave nothing to be committed.

use crate::{Committable, Committer, Cut, Outcome, Recovered, Result, SchemaChangeRequest};

/// For sinks that keep nothing, and for those whose rows are out as soon as they are written: every commit has happened
/// already, there is nothing to undo, and a change of a table needs nothing.
#[derive(Debug, Default)]
pub struct NothingToCommit;

impl Committer for NothingToCommit {
    fn recover(&mut self, _restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered> {
        Ok(Recovered { outcomes: vec![Outcome::AlreadyCommitted; pending.len()], progress: None })
    }

    fn commit(&mut self, _at: &Cut, items: &[Committable]) -> Result<Vec<Outcome>> {
        Ok(vec![Outcome::Committed; items.len()])
    }

    fn abort(&mut self, _items: &[Committable]) -> Result<()> {
        Ok(())
    }

    fn apply_schema_change(&mut self, _request: &SchemaChangeRequest) -> Result<()> {
        Ok(())
    }
}
