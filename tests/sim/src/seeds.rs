//! Many runs, one seed each, and what they came to.

use std::time::{Duration, Instant};

use crate::life::{Outcome, run};
use crate::world::Facts;

/// How many runs there are.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// So many.
    Runs(u64),
    /// As many as begin within this time.
    Time(Duration),
}

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Those in which something happened that must never happen.
    pub failed: Vec<Outcome>,
    /// What came to pass in all of them.
    pub facts: Facts,
}

/// Runs the seeds from `first` on, and tells of each that fails.
pub fn run_all(first: u64, extent: Extent, mut told: impl FnMut(&Outcome)) -> Tally {
    let began = Instant::now();
    let mut tally = Tally::default();
    loop {
        let goes_on = match extent {
            Extent::Runs(runs) => tally.runs < runs,
            Extent::Time(time) => began.elapsed() < time,
        };
        if !goes_on {
            return tally;
        }
        let outcome = run(first.wrapping_add(tally.runs), false);
        tally.runs += 1;
        tally.facts.add(&outcome.facts);
        if !outcome.violations.is_empty() {
            told(&outcome);
            tally.failed.push(outcome);
        }
    }
}

impl Facts {
    /// Adds those of another run.
    fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.restores += other.restores;
        self.restarts += other.restarts;
        self.take_overs += other.take_overs;
        self.fenced += other.fenced;
        self.torn += other.torn;
        self.damaged += other.damaged;
        self.losses += other.losses;
        self.refused_writes += other.refused_writes;
        self.lost_answers += other.lost_answers;
        self.jumps += other.jumps;
        self.finals += other.finals;
    }
}
