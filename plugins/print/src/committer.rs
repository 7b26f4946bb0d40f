//! Answers for commits of what is printed already.

use cdchost_sdk::{Committable, Committer, Cut, Outcome, Recovered, Result, SchemaChangeRequest};

/// What is printed cannot be taken back, so there is nothing to commit and nothing to undo.
#[derive(Debug, Default)]
pub struct PrintCommitter;

impl Committer for PrintCommitter {
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
