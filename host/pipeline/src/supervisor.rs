//! Runs one generation after the other: restarts within the budget, then the final state.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cdchost_config::RestartConfig;
use cdchost_connector::{ConnectorError, StopClass, Verdict};
use cdchost_model::Epoch;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::checkpointer::Drained;
use crate::failure::{Failure, bug};
use crate::generation::{self, Surroundings, panicked};
use crate::status::{PipelineExit, PipelineState, Reason, SinkStatus};

/// How long a pipeline that is told to stop may drain. What waits for a target that is away must not wait for ever.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// So often the same fault of a plugin may come at the same place.
const SAME_FAULTS_MAX: u32 = 3;
/// Faults of plugins that may be the world's: a target that does not answer, a machine that has no room.
const PASSING_FAULTS: [&str; 3] = ["plugin-timeout", "plugin-limit", "plugin-start"];

/// Until the pipeline has ended for good.
pub(crate) async fn run(around: Arc<Surroundings>) -> PipelineExit {
    show_sinks(&around);
    let mut budget = Budget::new(around.setup.restart.clone());
    let mut stop = around.stop.clone();
    loop {
        let outcome = one_run(&around).await;
        let error = match outcome {
            Ok(drained) => return finish(&around, drained),
            Err(Failure::Error(error)) => error,
            Err(Failure::Closed) => match bug("run-ended", "a run ended without a reason") {
                Failure::Error(error) => error,
                Failure::Closed => continue,
            },
        };
        let reason = Reason::from(&*error);
        if *stop.borrow() && !matches!(error.verdict, Verdict::Stop) {
            // Told to stop and unable to drain: what is durable is settled at the next start.
            return fail(&around, reason);
        }
        if error.verdict == Verdict::Reopen {
            tracing::info!(event = "pipeline-reopening", code = error.code, why = error.message);
            continue;
        }
        let committed = around.status.borrow().committed;
        if budget.is_stuck(&error, committed) {
            return fail(&around, stuck_fault(reason));
        }
        let Some(pause) = budget.next(&error, around.setup.clock.elapsed()) else {
            return fail(&around, reason);
        };
        restarting(&around, &reason, pause);
        tokio::select! {
            biased;
            () = around.setup.clock.sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return fail(&around, reason),
        }
    }
}

/// A run as a task of its own, so that its panic ends only it. Dropped, it ends. Told to stop, it has a limit to drain.
async fn one_run(around: &Arc<Surroundings>) -> Result<Drained, Failure> {
    let mut run = JoinSet::new();
    run.spawn(generation::run(Arc::clone(around)));
    let outcome = tokio::select! {
        biased;
        outcome = run.join_next() => outcome,
        () = drain_limit(around) => return Err(stuck(around)),
    };
    match outcome {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(panicked(error)),
        None => Err(Failure::Closed),
    }
}

/// Passes once the time to drain is over.
async fn drain_limit(around: &Surroundings) {
    let mut stop = around.stop.clone();
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
    around.setup.clock.sleep(DRAIN_MAX).await;
}

/// Says what is known of why. Comes before the run ends, which takes what it shows with it.
fn stuck(around: &Surroundings) -> Failure {
    let status = around.status.borrow();
    let mut message = format!("told to stop, the pipeline could not drain within {} s", DRAIN_MAX.as_secs());
    let (mut class, mut mend) = (StopClass::Sink, "see why the sink takes so long");
    if let Some(held) = status.told_held_up(around.setup.clock.now_micros()) {
        message = format!("{message}; {held}");
    }
    if let Some((_, held)) = status.held_up_longest() {
        (class, mend) = (held.reason.class, &held.reason.instruction);
    }
    let instruction = format!("nothing is lost: a start goes on from the last checkpoint; {mend}");
    ConnectorError::restart(class, "stop-timeout", message).with_instruction(instruction).into()
}

fn show_sinks(around: &Surroundings) {
    let sinks = around.setup.sinks.iter().map(|configured| SinkStatus {
        id: configured.sink.id().into(),
        version: configured.sink.version(),
        digest: configured.sink.digest(),
        parallelism: configured.parallelism.max(1),
        capabilities: None,
        committed: None,
    });
    let sinks = sinks.collect();
    around.status.send_modify(|status| status.sinks = sinks);
}

fn finish(around: &Surroundings, drained: Drained) -> PipelineExit {
    around.status.send_modify(|status| {
        status.state = PipelineState::Stopped;
        status.reason = None;
    });
    tracing::info!(event = "pipeline-stopped", how = ?drained);
    match drained {
        Drained::Finished => PipelineExit::Finished,
        Drained::Stopped => PipelineExit::Stopped,
    }
}

fn fail(around: &Surroundings, reason: Reason) -> PipelineExit {
    tracing::error!(
        event = "pipeline-failed",
        class = reason.class.name(),
        code = reason.code,
        reason = reason.message,
        instruction = reason.instruction
    );
    around.status.send_modify(|status| {
        status.state = PipelineState::Failed;
        status.reason = Some(reason.clone());
    });
    PipelineExit::Failed(reason)
}

fn restarting(around: &Surroundings, reason: &Reason, pause: Duration) {
    tracing::warn!(
        event = "pipeline-restarting",
        class = reason.class.name(),
        code = reason.code,
        reason = reason.message,
        pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
    );
    around.setup.metrics.restarts.inc();
    around.status.send_modify(|status| {
        status.state = PipelineState::Restarting;
        status.reason = Some(reason.clone());
        status.restarts += 1;
    });
}

fn stuck_fault(mut reason: Reason) -> Reason {
    let said = &mut reason.message;
    said.push_str(&format!("; it came {SAME_FAULTS_MAX} times at the same place, so that no further start would help"));
    reason
}

/// The restarts that are left.
#[derive(Debug)]
struct Budget {
    config: RestartConfig,
    /// A plugin's fault: code, message, the epoch committed before it; and how often it came in a row.
    fault: Option<(String, String, Option<Epoch>)>,
    faults: u32,
    /// When the restarts within the window were.
    taken: VecDeque<Duration>,
}

impl Budget {
    fn new(config: RestartConfig) -> Self {
        Self { config, fault: None, faults: 0, taken: VecDeque::new() }
    }

    /// Whether a plugin's fault came again and again with nothing committed in between: the same rows bring it about.
    fn is_stuck(&mut self, error: &ConnectorError, committed: Option<Epoch>) -> bool {
        let is_fault = error.class == StopClass::Plugin && !PASSING_FAULTS.contains(&error.code.as_str());
        let fault = is_fault.then(|| (error.code.clone(), error.message.clone(), committed));
        self.faults = if fault == self.fault { self.faults + 1 } else { 1 };
        self.fault = fault;
        self.fault.is_some() && self.faults >= SAME_FAULTS_MAX
    }

    /// The pause before the next restart; none if there shall be no next one.
    fn next(&mut self, error: &ConnectorError, now: Duration) -> Option<Duration> {
        let hint = match error.verdict {
            Verdict::Stop => return None,
            Verdict::Retry { after } => after.unwrap_or_default(),
            Verdict::Restart | Verdict::Reopen => Duration::ZERO,
        };
        let window = self.config.window;
        self.taken.retain(|&taken| now.saturating_sub(taken) < window);
        let before = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        if before >= self.config.budget {
            return None;
        }
        self.taken.push_back(now);
        let doubled = self.config.backoff.saturating_mul(2u32.saturating_pow(before));
        Some(doubled.min(self.config.backoff_max).max(hint))
    }
}

/// Shows that the pipeline drains as soon as it is told to stop.
pub(crate) async fn show_stopping(around: Arc<Surroundings>) -> std::convert::Infallible {
    let mut stop: watch::Receiver<bool> = around.stop.clone();
    if stop.wait_for(|stop| *stop).await.is_ok() {
        around.status.send_if_modified(|status| {
            let running = !matches!(status.state, PipelineState::Stopped | PipelineState::Failed);
            if running {
                status.state = PipelineState::Stopping;
            }
            running
        });
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(budget: u32) -> Budget {
        Budget::new(RestartConfig {
            budget,
            window: Duration::from_secs(600),
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(30),
        })
    }

    fn restart() -> ConnectorError {
        ConnectorError::restart(StopClass::Sink, "x", "x")
    }

    #[test]
    fn pauses_double_up_to_the_limit_and_the_budget_ends_them() {
        let mut budget = budget(10);
        let pauses: Vec<_> = (0..11).map(|_| budget.next(&restart(), Duration::ZERO).map(|p| p.as_millis())).collect();
        let expected: Vec<_> = [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000].map(Some).to_vec();
        assert_eq!(pauses[..10], expected);
        assert_eq!(pauses[10], None);
    }

    #[test]
    fn restarts_out_of_the_window_do_not_count() {
        let mut budget = budget(1);
        assert!(budget.next(&restart(), Duration::ZERO).is_some());
        assert!(budget.next(&restart(), Duration::from_secs(599)).is_none());
        assert_eq!(budget.next(&restart(), Duration::from_secs(600)), Some(Duration::from_millis(200)));
    }

    #[test]
    fn a_fault_of_a_plugin_that_comes_again_at_the_same_place_ends_the_restarts() {
        let fault = |class, code: &str, message: &str| ConnectorError::restart(class, code, message);
        let trap = |message: &str| fault(StopClass::Plugin, "plugin-trap", message);
        let mut stuck = budget(10);
        let said = |stuck: &mut Budget, error: &ConnectorError, epoch| stuck.is_stuck(error, Some(Epoch(epoch)));
        assert_eq!([7, 7, 7].map(|epoch| said(&mut stuck, &trap("a"), epoch)), [false, false, true]);
        let mut moving = budget(10);
        assert_eq!([1, 2, 2, 3, 3].map(|epoch| said(&mut moving, &trap("a"), epoch)), [false; 5]);
        let mut differing = budget(10);
        assert_eq!(["a", "b", "a", "b"].map(|message| said(&mut differing, &trap(message), 1)), [false; 4]);
        for passing in [fault(StopClass::Sink, "x", "x"), fault(StopClass::Plugin, "plugin-timeout", "x")] {
            let mut other = budget(10);
            assert_eq!([1, 1, 1, 1].map(|epoch| said(&mut other, &passing, epoch)), [false; 4]);
        }
    }

    #[test]
    fn a_stop_is_final_and_a_hint_is_kept() {
        let mut budget = budget(10);
        assert_eq!(budget.next(&ConnectorError::stop(StopClass::Config, "x", "x"), Duration::ZERO), None);
        let hint = Some(Duration::from_secs(60));
        let retry = ConnectorError::new(Verdict::Retry { after: hint }, StopClass::Sink, "x", "x");
        assert_eq!(budget.next(&retry, Duration::ZERO), hint);
    }
}
