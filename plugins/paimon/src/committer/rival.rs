//! Tells commits of this pipeline's own records from those of another process, and a table that nobody has written from
//! one that was emptied.
//!
//! Within one checkpoint store the chain of slots keeps runs apart. Two processes that run on copies of one store have
//! the same generations, lineages and epochs; only the files that they made differ.

use cdchost_sdk::{Cut, PluginError, Result, Retry};

use super::progress::Ledger;
use super::publish::{Epoch, History, PROPERTY_FILE, PROPERTY_GENERATION, TableCommitter, identifier_of};
use crate::format::manifest::ManifestEntry;
use crate::format::snapshot::Snapshot;

/// Where a table stands before an epoch is committed to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The epoch comes next.
    Open,
    /// The epoch is there, with the very files that are to be committed.
    Shown,
}

/// What tells the files of one epoch in one table from all others: the least name.
pub(super) fn mark_of(entries: &[ManifestEntry]) -> &str {
    entries.iter().map(|entry| entry.file.name.as_str()).min().unwrap_or_default()
}

impl TableCommitter {
    /// Where the table stands before the epoch with this mark; an error where another process has written it.
    pub(super) fn standing(&mut self, history: &History, epoch: &Epoch<'_>, mark: &str) -> Result<Standing> {
        self.require_rows(history, epoch.ledger)?;
        let identifier = identifier_of(epoch.epoch)?;
        let Some(own) = &history.own else {
            self.shown.get_or_insert(0);
            return Ok(Standing::Open);
        };
        let newest = own.commit_identifier;
        if newest >= identifier && self.holds(own, identifier, mark)? {
            return Ok(Standing::Shown);
        }
        let generation = own.properties.get(PROPERTY_GENERATION).and_then(|text| text.parse().ok());
        if let Some(found) = generation.filter(|&found| found > epoch.run.newest_generation) {
            return Err(taken_over(epoch.run.generation, found));
        }
        // Somebody who rolls back takes epochs away; only another run adds one.
        if newest >= identifier || newest > *self.shown.get_or_insert(newest) {
            return Err(self.other_process(newest));
        }
        Ok(Standing::Open)
    }

    /// What the table shows now is what this run begins with.
    pub(super) fn look(&mut self) -> Result<History> {
        let history = self.history(None)?;
        self.shown = Some(history.own.as_ref().map_or(0, |own| own.commit_identifier));
        Ok(history)
    }

    /// A table without any snapshot has none yet, or has lost them and all rows with them.
    pub(super) fn require_rows(&self, history: &History, ledger: &Ledger) -> Result<()> {
        if history.newest.is_some() {
            return Ok(());
        }
        let id = &self.folder.id;
        let committed = match self.shown {
            Some(shown) if shown > 0 => u64::try_from(shown).ok(),
            _ => ledger.first_epoch_with_rows(id)?,
        };
        let Some(committed) = committed else { return Ok(()) };
        let message = format!(
            "table {id} of the lake has no snapshot, but epoch {committed} was committed to it: put its folder back as it \
             was, or empty the warehouse and the checkpoint store to begin afresh"
        );
        Err(final_stop("target-behind", message).with_table(id))
    }

    /// Whether one of this sink's snapshots, from `newest` on back, committed the epoch with the files of that mark.
    fn holds(&self, newest: &Snapshot, identifier: i64, mark: &str) -> Result<bool> {
        let mut at = Some(newest.clone());
        while let Some(snapshot) = at {
            if self.is_own(&snapshot) && snapshot.commit_identifier <= identifier {
                let found = snapshot.properties.get(PROPERTY_FILE);
                return Ok(snapshot.commit_identifier == identifier && found.is_some_and(|found| found == mark));
            }
            at = self.folder.snapshot(snapshot.id - 1)?;
        }
        Ok(false)
    }

    fn other_process(&self, epoch: i64) -> PluginError {
        let id = &self.folder.id;
        fenced(&format!("table {id} shows epoch {epoch} with files that are not of this run")).with_table(id)
    }
}

/// The marker of an epoch names another place in the source than this run's record of it.
pub(super) fn other_marker(cut: &Cut) -> PluginError {
    fenced(&format!("the marker of epoch {} in the lake is of another cut than this run's", cut.epoch))
}

/// A later run of the same store has written.
pub(super) fn taken_over(own: u64, found: u64) -> PluginError {
    fenced(&format!("this run has generation {own}, but the lake has been written by generation {found}"))
}

fn fenced(what: &str) -> PluginError {
    let advice = "another process runs this pipeline, perhaps on a copy of its state folder: let one of them run, and go \
                  on with the state folder of that one; nothing of this run's epoch was written";
    final_stop("fenced", format!("{what}: {advice}"))
}

/// What only a person can put right, at the target.
pub(super) fn final_stop(code: &str, message: String) -> PluginError {
    PluginError::remote(code, message).with_retry(Retry::Never)
}
