//! The engine under hundreds of seeded schedules: crashes between any two steps, sinks and stores that fail, restarts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use cdchost_pipeline::PipelineExit;

use cdchost_sim::harness::{check_complete, live_once};
use cdchost_sim::world::{Rates, World};

/// Crashes up to four times, then runs to the end.
fn run(seed: u64, rates: Rates) -> Result<Arc<World>, String> {
    let world = World::new(seed, 30, 1 + (seed % 2) as usize, rates);
    for _ in 0..world.below(5) {
        let crash_after = world.below(400);
        if live_once(&world, 1 + world.below(3) as u32, Some(crash_after)).is_some() {
            break;
        }
    }
    match live_once(&world, 1 + world.below(3) as u32, None) {
        Some(PipelineExit::Finished) => check_complete(&world).map(|()| world),
        other => Err(format!("ended as {other:?}, {:?}", world.violations())),
    }
}

fn run_all(seeds: std::ops::Range<u64>, rates: Rates) {
    let failed: Vec<String> =
        seeds.clone().filter_map(|seed| run(seed, rates).err().map(|fault| format!("seed {seed}: {fault}"))).collect();
    assert!(
        failed.is_empty(),
        "{} of {} schedules failed: {:#?}",
        failed.len(),
        seeds.count(),
        &failed[..failed.len().min(5)]
    );
}

#[test]
fn crashes_alone_lose_and_double_nothing() {
    run_all(0..600, Rates::default());
}

#[test]
fn crashes_and_failing_sinks_and_stores_lose_and_double_nothing() {
    run_all(10_000..10_600, Rates { retry: 30, restart: 8, store: 60, source: 2 });
}

#[test]
fn the_schedules_do_what_they_are_for() {
    let restores: u64 = (0..50).map(|seed| run(seed, Rates::default()).unwrap().facts().restores).sum();
    assert!(restores > 20, "only {restores} runs went on from a record");
}
