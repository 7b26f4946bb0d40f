//! Counts where kills fell, and whether they were worth something.

use std::collections::BTreeMap;
use std::fmt;

use super::trace::Phase;

/// One kill.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Where it fell.
    pub phase: Phase,
    /// Epochs that the run had committed.
    pub committed: u64,
    /// Rows that the source had and no committed epoch held.
    pub in_flight: u64,
    /// Milliseconds from the start of the run to the kill.
    pub lived_ms: u128,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, committed, in_flight, lived_ms } = self;
        let phase = phase.name();
        write!(f, "killed after {lived_ms} ms in {phase}, {committed} epochs committed, {in_flight} rows in flight")
    }
}

/// All kills, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Kills.
    pub rounds: u32,
    /// Differences found by all comparisons.
    pub differences: usize,
    with_rows_in_flight: u32,
    phases: BTreeMap<Phase, u32>,
}

/// Phases that must be hit, each at least five times in a hundred rounds.
const NEEDED: [Phase; 5] = [Phase::Snapshot, Phase::Stream, Phase::Prepare, Phase::Commit, Phase::Recovery];

impl Tally {
    /// Counts one kill.
    pub fn count(&mut self, round: &Round) {
        self.rounds += 1;
        self.with_rows_in_flight += u32::from(round.in_flight > 0);
        *self.phases.entry(round.phase).or_default() += 1;
    }

    /// How often a phase was hit.
    pub fn hits(&self, phase: Phase) -> u32 {
        self.phases.get(&phase).copied().unwrap_or(0)
    }

    /// Why these rounds prove too little; empty if they prove enough. Fewer than twenty rounds need no certain phase.
    pub fn weaknesses(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.with_rows_in_flight * 5 < self.rounds * 4 {
            found.push(format!("only {} of {} kills fell with rows in flight", self.with_rows_in_flight, self.rounds));
        }
        let needed = (self.rounds / 20).min(5);
        for phase in NEEDED {
            if self.hits(phase) < needed {
                found.push(format!("{} was hit {} times, less than {needed}", phase.name(), self.hits(phase)));
            }
        }
        found
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases: Vec<_> = self.phases.iter().map(|(phase, count)| format!("{} {count}", phase.name())).collect();
        write!(f, "{} of {} kills with rows in flight; {}", self.with_rows_in_flight, self.rounds, phases.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_rounds_are_named() {
        let mut tally = Tally::default();
        for round in 0..100 {
            let phase = if round < 96 { Phase::Stream } else { Phase::Commit };
            tally.count(&Round { phase, committed: 1, in_flight: u64::from(round % 2 == 0), lived_ms: 1 });
        }
        let found = tally.weaknesses();
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[0].contains("only 50 of 100"));
        assert!(found.iter().any(|line| line.contains("between record and commit was hit 4 times")));
    }
}
