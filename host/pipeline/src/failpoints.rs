//! Places where a test build can be made to stop, wait or fail. Compiled in with feature `failpoints` only; driven by
//! the environment variable `FAILPOINTS` (`name=action;…`), or by the `fail` crate's functions.
//!
//! Beside the actions of that crate, `return(abort)` ends the process at once.

/// Before the source is asked for a barrier.
pub(crate) const BEFORE_BARRIER: &str = "checkpoint-before-barrier";
/// The barrier has come out of the source; no writer has prepared yet, or some have.
pub(crate) const AFTER_BARRIER: &str = "checkpoint-after-barrier";
/// A writer has prepared. Also hit with `-SINK-SUBTASK` behind the name.
pub(crate) const PREPARED: &str = "checkpoint-prepared";
/// All writers have prepared; no record yet.
pub(crate) const BEFORE_PERSIST: &str = "checkpoint-before-persist";
/// The record is durable; nothing is committed.
pub(crate) const AFTER_PERSIST: &str = "checkpoint-after-persist";
/// A sink is about to commit. Also hit with `-SINK` behind the name.
pub(crate) const BEFORE_COMMIT: &str = "commit-before";
/// A sink has committed, others have not.
pub(crate) const BETWEEN_COMMITS: &str = "commit-between";
/// All sinks have committed; it is not noted.
pub(crate) const BEFORE_NOTE: &str = "commit-before-note";
/// It is noted; old records are still there.
pub(crate) const AFTER_NOTE: &str = "commit-after-note";
/// The run has no place in the chain yet.
pub(crate) const BEFORE_CLAIM: &str = "recovery-before-claim";
/// The chain is read and fenced; no sink was asked.
pub(crate) const BEFORE_RECOVER: &str = "recovery-before-recover";
/// A sink was recovered; others may not be.
pub(crate) const AFTER_RECOVER: &str = "recovery-after-recover";
/// An open epoch was settled at all sinks; it is not noted.
pub(crate) const RECOVERY_BEFORE_NOTE: &str = "recovery-before-note";
/// Everything is settled; no writer is open.
pub(crate) const RECOVERED: &str = "recovery-done";

/// Every name, for tests that go through all of them.
pub const FAILPOINTS: [&str; 14] = [
    BEFORE_BARRIER,
    AFTER_BARRIER,
    PREPARED,
    BEFORE_PERSIST,
    AFTER_PERSIST,
    BEFORE_COMMIT,
    BETWEEN_COMMITS,
    BEFORE_NOTE,
    AFTER_NOTE,
    BEFORE_CLAIM,
    BEFORE_RECOVER,
    AFTER_RECOVER,
    RECOVERY_BEFORE_NOTE,
    RECOVERED,
];

/// Takes the faults that `FAILPOINTS` asks for, for the rest of the process. To be called once, before anything runs.
#[cfg(feature = "failpoints")]
pub fn arm_failpoints() {
    // The scenario clears its faults when it is dropped; these stay.
    std::mem::forget(fail::FailScenario::setup());
}

/// Passes a failpoint.
#[cfg(feature = "failpoints")]
pub(crate) fn hit(name: &str) {
    fail::fail_point!(name, |action| {
        if action.as_deref() == Some("abort") {
            std::process::abort();
        }
    });
}

/// Passes a failpoint of a sink, and of one of its writers.
#[cfg(feature = "failpoints")]
pub(crate) fn hit_at(name: &str, sink: &str, subtask: Option<u32>) {
    hit(name);
    match subtask {
        Some(subtask) => hit(&format!("{name}-{sink}-{subtask}")),
        None => hit(&format!("{name}-{sink}")),
    }
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn hit(_: &str) {}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn hit_at(_: &str, _: &str, _: Option<u32>) {}
