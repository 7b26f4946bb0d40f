//! Takes a sink through everything that the contract says of repeats and crashes.

use serde_json::Value;

use super::driver::Harness;
use super::rows::{Rows, Table};
use super::world::{Fault, World};
use crate::{Delivery, LogicalType, Outcome, PluginError, Result, Sink, row};

/// What [`check_sink`] needs to know of a sink.
pub struct Check<'a> {
    /// Options that it runs with.
    pub config: Value,
    /// Roots that these options name.
    pub roots: &'a [&'a str],
    /// What a reader of the target sees, one entry a row, in any order; empty for a sink whose target cannot be read.
    pub visible: &'a dyn Fn(&World) -> Vec<String>,
    /// What must not be there after a start that found nothing pending, e.g. staged files.
    pub left_over: &'a dyn Fn(&World) -> Vec<String>,
}

impl std::fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Rows of the epochs that every check writes: two tables, two writers, an epoch of a snapshot, one of changes, one in
/// which nothing happens, one more.
fn script() -> Vec<Vec<(usize, Rows)>> {
    let text = LogicalType::Text { max: Some(20) };
    let orders = Table::new("shop.orders").key("id", LogicalType::Int64).column("state", text.clone());
    let items =
        Table::new("shop.items").key("order", LogicalType::Int64).key("n", LogicalType::Int32).column("name", text);
    let read = |from: i64| (from..from + 20).fold(orders.rows(0), |rows, id| rows.read(row![id, "new"]));
    vec![
        vec![(0, read(0)), (1, read(100)), (0, items.rows(0).read(row![0_i64, 1, "pen"]).read(row![0_i64, 2, "ink"]))],
        vec![
            (0, orders.rows(1).update(row![1_i64, "new"], row![1_i64, "paid"]).delete(row![2_i64, "new"])),
            (1, orders.rows(3).insert(row![200_i64, crate::harness::Cell::Null])),
        ],
        vec![],
        vec![(1, orders.rows(4).insert(row![201_i64, "new"])), (0, items.rows(5).delete(row![0_i64, 1, "pen"]))],
    ]
}

/// Checks that a sink keeps the contract; panics with what it broke.
///
/// - Prepared work is invisible until it is committed (sinks that declare `transactional`).
/// - Committing again changes nothing: by the same committer, by another process, by a later run.
/// - Recovering again with the same items changes nothing; the progress that it reports is the newest epoch committed.
/// - What was aborted never shows.
/// - An older run that wakes up does no harm to what a newer one prepared.
/// - A run on a state older than the target, or on none, does no harm to what the rightful one prepared; of sinks that
///   report progress, which is what the host refuses such a run by.
/// - Wherever the process dies between two calls to the store (with the last call done, and not done), the next run
///   ends with exactly the rows of a run without faults, and with nothing left over.
pub fn check_sink<S: Sink>(check: &Check<'_>) {
    let expected = undisturbed::<S>(check);
    repeats::<S>(check, &expected);
    aborts::<S>(check, &expected);
    woken_older_run::<S>(check);
    run_on_older_state::<S>(check);
    let mut deaths = 0;
    for fault in [Fault::Before, Fault::After] {
        let mut writes = 0;
        while dies_after::<S>(check, writes, fault, &expected) {
            writes += 1;
        }
        deaths += writes;
    }
    assert!(deaths > 0 || expected.is_empty(), "rows became visible without a call to the store");
}

fn visible(check: &Check<'_>, world: &World) -> Vec<String> {
    let mut rows = (check.visible)(world);
    rows.sort();
    rows
}

fn harness<S: Sink>(check: &Check<'_>) -> Harness<S> {
    Harness::new(World::new(check.roots), check.config.clone()).with_parallelism(2)
}

fn write<S: Sink>(sink: &mut Harness<S>, epoch: &[(usize, Rows)]) -> Result<()> {
    epoch.iter().try_for_each(|(subtask, rows)| sink.write(*subtask, rows.clone()))
}

fn held<T>(what: &str, result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {} ({})", error, error.code))
}

/// The rows of a run without faults.
fn undisturbed<S: Sink>(check: &Check<'_>) -> Vec<String> {
    let mut sink = harness::<S>(check);
    let started = held("start", sink.start());
    for epoch in script() {
        let before = visible(check, sink.world());
        held("write", write(&mut sink, &epoch));
        let prepared = held("prepare", sink.prepare());
        if started.capabilities.delivery == Delivery::Transactional {
            assert_eq!(visible(check, sink.world()), before, "rows show between prepare and commit");
        }
        if epoch.is_empty() {
            assert!(prepared.items.is_empty(), "an epoch without rows has items to commit");
        }
        sink.store(&prepared);
        held("commit", sink.commit(&prepared));
    }
    sink.close();
    let rows = visible(check, sink.world());
    held("start after the end", sink.start());
    nothing_left(check, sink.world(), "after an undisturbed run");
    assert_eq!(visible(check, sink.world()), rows, "a start without anything pending changed the rows");
    rows
}

fn nothing_left(check: &Check<'_>, world: &World, when: &str) {
    let left = (check.left_over)(world);
    assert!(left.is_empty(), "{when}: left over: {left:?}");
}

/// Every step twice, by one's own and by others.
fn repeats<S: Sink>(check: &Check<'_>, expected: &[String]) {
    let mut sink = harness::<S>(check);
    let started = held("start", sink.start());
    for epoch in script() {
        held("write", write(&mut sink, &epoch));
        let prepared = held("prepare", sink.prepare());
        sink.store(&prepared);
        held("commit", sink.commit(&prepared));
        let rows = visible(check, sink.world());
        let again = held("commit again", sink.commit(&prepared));
        assert!(again.iter().all(|o| matches!(o, Outcome::Committed | Outcome::AlreadyCommitted)));
        held("commit by another process", sink.commit_elsewhere(sink.generation(), &prepared));
        assert_eq!(visible(check, sink.world()), rows, "a repeated commit changed the rows");
        if started.capabilities.abilities.reports_progress {
            let mut later = Harness::<S>::new(sink.world().clone(), check.config.clone());
            later.resume_from(&sink);
            for _ in 0..2 {
                let progress = held("recover again", later.start()).progress;
                let at = progress.unwrap_or_else(|| panic!("no progress after epoch {}", prepared.cut.epoch));
                assert_eq!(at.cut, prepared.cut, "the progress reported is not the newest epoch");
            }
        }
        assert_eq!(visible(check, sink.world()), rows, "recovering again changed the rows");
    }
    assert_eq!(visible(check, sink.world()), expected, "repeats changed the rows");
}

/// What was aborted never shows, and the run goes on.
fn aborts<S: Sink>(check: &Check<'_>, expected: &[String]) {
    let mut sink = harness::<S>(check);
    held("start", sink.start());
    for epoch in script() {
        let before = visible(check, sink.world());
        held("write", write(&mut sink, &epoch));
        let prepared = held("prepare", sink.prepare());
        held("abort", sink.abort(&prepared));
        held("abort again", sink.abort(&prepared));
        assert_eq!(visible(check, sink.world()), before, "aborted rows show");
        held("write again", write(&mut sink, &epoch));
        held("checkpoint", sink.checkpoint());
    }
    held("start", sink.start());
    assert_eq!(visible(check, sink.world()), expected, "rows are missing after an abort");
    nothing_left(check, sink.world(), "after aborts");
}

/// A run that slept through the start of its successor recovers once more.
fn woken_older_run<S: Sink>(check: &Check<'_>) {
    let mut sink = harness::<S>(check);
    held("start", sink.start());
    let epochs = script();
    held("write", write(&mut sink, &epochs[0]));
    let first = held("checkpoint", sink.checkpoint());
    let older = sink.generation();
    held("start of the successor", sink.start());
    held("write", write(&mut sink, &epochs[1]));
    let prepared = held("prepare", sink.prepare());
    // It may be refused, since it sees its successor's traces; it must not take anything away.
    let _refusal_is_fine: Result<_> = sink.commit_elsewhere(older, &first);
    sink.store(&prepared);
    held("commit of what the successor prepared", sink.commit(&prepared));
}

/// Two processes on copies of one state count their runs alike; the older copy starts while the other has prepared.
fn run_on_older_state<S: Sink>(check: &Check<'_>) {
    for has_record in [true, false] {
        let mut sink = harness::<S>(check);
        let started = held("start", sink.start());
        if !started.capabilities.abilities.reports_progress {
            return;
        }
        let (mut stale, epochs) = (Harness::<S>::new(sink.world().clone(), check.config.clone()), script());
        held("write", write(&mut sink, &epochs[0]));
        held("checkpoint", sink.checkpoint());
        if has_record {
            stale.resume_from(&sink);
        }
        held("write", write(&mut sink, &epochs[1]));
        held("checkpoint", sink.checkpoint());
        held("write", write(&mut sink, &epochs[3]));
        let prepared = held("prepare", sink.prepare());
        let rows = visible(check, sink.world());
        // It may be refused here already; what it reports has it refused by the host.
        for _ in 0..2 {
            let _refusal_is_fine: Result<_> = stale.start();
            stale.crash();
        }
        assert_eq!(visible(check, sink.world()), rows, "a run on an older state changed the rows");
        sink.store(&prepared);
        held("commit beside a run on an older state", sink.commit(&prepared));
    }
}

/// One run whose process dies at the store call after `writes` that change something, and all that follows. Answers
/// whether it died.
fn dies_after<S: Sink>(check: &Check<'_>, writes: u64, fault: Fault, expected: &[String]) -> bool {
    let mut sink = harness::<S>(check);
    let epochs = script();
    sink.world().go_away_after(writes, fault);
    let mut died = false;
    loop {
        let ended = live(&mut sink, &epochs);
        let gone = sink.world().come_back();
        died |= gone;
        match ended {
            Ok(()) => break,
            Err(error) if gone => drop(error),
            Err(error) => panic!("after a death at write {writes} ({fault:?}): {error} ({})", error.code),
        }
    }
    held("start", sink.start());
    let when = format!("after a death at write {writes} ({fault:?})");
    assert_eq!(visible(check, sink.world()), expected, "{when}: other rows than without it");
    nothing_left(check, sink.world(), &when);
    died
}

/// From the start of a run to the end of the script; epochs already stored are not written again.
fn live<S: Sink>(sink: &mut Harness<S>, epochs: &[Vec<(usize, Rows)>]) -> Result<(), PluginError> {
    sink.start()?;
    let done = sink.stored().map_or(0, |stored| stored.cut.epoch);
    for epoch in epochs.iter().skip(usize::try_from(done).expect("a script has few epochs")) {
        write(sink, epoch)?;
        sink.checkpoint()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
