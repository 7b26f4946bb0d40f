//! What a run was doing when it was killed, by what it had written in its log.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::journal::Event;

/// Where the kill fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the run looked at its state.
    Start,
    /// While it found out, and settled, what the run before left.
    Recovery,
    /// While writers made an epoch durable.
    Prepare,
    /// While the epoch's record was written.
    Record,
    /// After the record, before the commit was done.
    Commit,
    /// Between epochs, while tables were read.
    Snapshot,
    /// Between epochs, while only the log was followed.
    Stream,
}

impl Phase {
    /// Its name in the harness' lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Recovery => "recovery",
            Self::Prepare => "prepare",
            Self::Record => "record",
            Self::Commit => "between record and commit",
            Self::Snapshot => "snapshot",
            Self::Stream => "stream",
        }
    }
}

/// One run of the program, event by event.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    phase: Option<Phase>,
    /// All tables were read, in this run or an earlier one.
    snapshot_done: bool,
    /// Epochs committed by this run.
    pub(crate) committed: u64,
    /// When the newest committed epoch began to be prepared: what changed later is not in it.
    pub(crate) covered: Option<Instant>,
    prepare_started: BTreeMap<u64, Instant>,
    /// Chunks handed on since that moment.
    pub(crate) chunks_open: u64,
}

impl Trace {
    /// The run that follows this one.
    pub(crate) fn next(&self) -> Self {
        Self {
            snapshot_done: self.snapshot_done,
            covered: self.covered,
            prepare_started: self.prepare_started.clone(),
            ..Self::default()
        }
    }

    /// Where a kill at this moment falls.
    pub(crate) fn phase(&self) -> Phase {
        let between = if self.snapshot_done { Phase::Stream } else { Phase::Snapshot };
        self.phase.map_or(Phase::Start, |phase| if phase == Phase::Stream { between } else { phase })
    }

    /// Takes the next event, seen at `now`.
    pub(crate) fn take(&mut self, event: &Event, now: Instant) {
        let epoch = event.number("epoch").unwrap_or(0);
        self.phase = Some(match event.name.as_str() {
            "recovery-started" => Phase::Recovery,
            "prepare-started" => {
                self.prepare_started.insert(epoch, now);
                Phase::Prepare
            }
            "prepared" => Phase::Record,
            "record-stored" | "commit-started" => Phase::Commit,
            "committed" => {
                self.committed += 1;
                self.covered = self.prepare_started.get(&epoch).copied().or(self.covered);
                self.chunks_open = 0;
                // A recovery commits what the run before could not.
                let in_recovery = self.phase == Some(Phase::Recovery);
                if in_recovery { Phase::Recovery } else { Phase::Stream }
            }
            "recovery-done" => Phase::Stream,
            "chunk-merged" => {
                self.chunks_open += 1;
                // An earlier run's end of the snapshot may have come after its last record.
                self.snapshot_done = false;
                return;
            }
            "snapshot-done" => {
                self.snapshot_done = true;
                return;
            }
            _ => return,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: Phase) {
        let mut trace = Trace::default();
        for name in names {
            trace.take(&Event { name: (*name).to_owned(), line: json!({"epoch": 1}) }, Instant::now());
        }
        assert_eq!(trace.phase(), expected);
    }

    #[test]
    fn the_last_events_say_where_a_run_is() {
        check(&[], Phase::Start);
        check(&["recovery-started"], Phase::Recovery);
        check(&["recovery-started", "recovery-done", "chunk-merged"], Phase::Snapshot);
        check(&["recovery-started", "committed"], Phase::Recovery);
        check(&["recovery-done", "snapshot-done"], Phase::Stream);
        check(&["recovery-done", "prepare-started", "chunk-merged"], Phase::Prepare);
        check(&["recovery-done", "prepare-started", "prepared"], Phase::Record);
        check(&["recovery-done", "prepare-started", "prepared", "record-stored"], Phase::Commit);
        check(&["recovery-done", "record-stored", "commit-started", "committed"], Phase::Snapshot);
        check(&["recovery-done", "snapshot-done", "chunk-merged"], Phase::Snapshot);
    }
}
