//! The pipeline through some thousand seeds, and the same seeds with a fault planted in it, which must be found.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cdchost_checkpoint::{PlantedFault, plant};
use cdchost_sim::run;
use cdchost_sim::seeds::{Extent, run_all};

/// Runs of the small form; `cargo xtask sim --minutes M` goes on with other seeds.
const RUNS: u64 = 2_000;
/// Within so many runs each planted fault must show.
const FOUND_WITHIN: u64 = 1_000;

#[test]
fn no_seed_breaks_a_promise_and_all_that_is_drawn_comes_to_pass() {
    let tally = run_all(0, Extent::Runs(RUNS), |_| {});
    let failed: Vec<_> = tally.failed.iter().map(|outcome| (outcome.seed, &outcome.violations)).collect();
    assert!(failed.is_empty(), "{} of {RUNS} runs failed: {:#?}", failed.len(), &failed[..failed.len().min(3)]);
    let facts = tally.facts;
    let rare = [facts.torn, facts.damaged, facts.losses, facts.lost_answers, facts.finals];
    let common = [facts.crashes, facts.restores, facts.restarts, facts.take_overs, facts.fenced, facts.jumps];
    assert!(rare.iter().all(|&times| times >= RUNS / 200), "too little came to pass: {facts:?}");
    assert!(common.iter().all(|&times| times >= RUNS / 20), "too little came to pass: {facts:?}");
}

#[test]
fn a_seed_is_one_run() {
    for seed in 0..200 {
        let (first, second) = (run(seed, true), run(seed, true));
        let differ = first.lines.iter().zip(&second.lines).find(|(one, other)| one != other);
        assert_eq!((differ, first.digest), (None, second.digest), "seed {seed}");
    }
    assert_ne!(run(1, false).digest, run(2, false).digest);
}

#[test]
fn each_planted_fault_is_found() {
    std::panic::set_hook(Box::new(|_| {})); // a panic is a finding
    let mut missed = Vec::new();
    for fault in PlantedFault::ALL {
        plant(Some(fault));
        let found = (0..FOUND_WITHIN).find(|&seed| !run(seed, false).violations.is_empty());
        plant(None);
        match found {
            Some(seed) => println!("{fault:?}: found after {} runs", seed + 1),
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found within {FOUND_WITHIN} runs: {missed:?}");
}
