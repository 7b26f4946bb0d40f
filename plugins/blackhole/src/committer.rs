//! Answers for commits of nothing.

use cdchost_sdk::{Committable, Committer, Cut, Outcome, Recovered, Result, SchemaChangeRequest};

/// There is no target, so every commit has happened already.
#[derive(Debug, Default)]
pub struct BlackholeCommitter;

impl Committer for BlackholeCommitter {
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
