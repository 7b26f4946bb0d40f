//! Calls to plugins and to the store that are repeated after a pause.

use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::{Clock, ConnectorError, Verdict};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::status::{HeldUp, PipelineStatus, Reason};

/// First pause; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long one call is repeated before the run ends; the restart budget takes over then.
const WINDOW: Duration = Duration::from_secs(300);

/// Who makes calls that may be repeated, and where it shows that they are.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) retries: Counter,
    pub(crate) status: watch::Sender<PipelineStatus>,
}

impl Caller {
    /// A call that is about to be made.
    pub(crate) fn call(&self, what: &'static str) -> Backoff {
        Backoff { caller: self.clone(), what, pause: PAUSE_MIN, began: None, last: None }
    }
}

/// The pauses of one call. While it is repeated, the status says so; dropped, not any more.
#[derive(Debug)]
pub(crate) struct Backoff {
    caller: Caller,
    what: &'static str,
    pause: Duration,
    began: Option<Duration>,
    last: Option<String>,
}

impl Backoff {
    /// Waits before the next call, or gives the error back if there shall be none.
    pub(crate) async fn wait(&mut self, mut error: ConnectorError) -> Result<(), Failure> {
        let Verdict::Retry { after } = error.verdict else { return Err(error.into()) };
        let reason = Reason::from(&error);
        let (what, who) = (self.what, &self.caller.name);
        tracing::warn!(event = "retry", what, who, code = error.code, reason = %reason, "a call is repeated");
        if !self.pause(after.unwrap_or_default(), reason).await {
            error.verdict = Verdict::Restart;
            return Err(error.into());
        }
        Ok(())
    }

    /// Waits at least so long; false once the window has passed.
    pub(crate) async fn pause(&mut self, at_least: Duration, reason: Reason) -> bool {
        let clock = Arc::clone(&self.caller.clock);
        let now = clock.elapsed();
        let began = *self.began.get_or_insert(now);
        self.last = Some(reason.message.clone());
        self.show(reason);
        if now.saturating_sub(began) >= WINDOW {
            return false;
        }
        self.caller.retries.inc();
        clock.sleep(self.pause.max(at_least).min(WINDOW)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }

    /// Behind a message: why the call failed last.
    pub(crate) fn why(&self) -> String {
        self.last.as_ref().map(|last| format!(": {last}")).unwrap_or_default()
    }

    fn key(&self) -> String {
        format!("{}: {}", self.caller.name, self.what)
    }

    fn show(&self, reason: Reason) {
        let now = self.caller.clock.now_micros();
        self.caller.status.send_modify(|status| match status.held_up.entry(self.key()) {
            Entry::Vacant(entry) => drop(entry.insert(HeldUp { since_micros: now, tries: 1, reason })),
            Entry::Occupied(mut entry) => {
                let held = entry.get_mut();
                (held.tries, held.reason) = (held.tries + 1, reason);
            }
        });
    }
}

impl Drop for Backoff {
    fn drop(&mut self) {
        if self.began.is_some() {
            self.caller.status.send_if_modified(|status| status.held_up.remove(&self.key()).is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use cdchost_connector::{StopClass, SystemClock};

    use super::*;

    #[tokio::test]
    async fn a_call_shows_while_it_is_repeated_and_not_any_more_once_it_is_done() {
        let (status, seen) = watch::channel(PipelineStatus::default());
        let clock = Arc::new(SystemClock::default());
        let caller = Caller { name: "sink lake".into(), clock, retries: Counter::default(), status };
        let full = || ConnectorError::retry(StopClass::Sink, "full", "no space left").with_instruction("make room");
        let mut call = caller.call("commit");
        assert!(seen.borrow().held_up.is_empty(), "it has not failed");
        call.wait(full()).await.unwrap();
        call.wait(full()).await.unwrap();
        let held = seen.borrow().held_up.get("sink lake: commit").cloned().unwrap();
        assert_eq!((held.tries, held.reason.message.as_str()), (2, "no space left"));
        assert_eq!((call.why().as_str(), held.reason.instruction.as_str()), (": no space left", "make room"));
        drop(call);
        assert!(seen.borrow().held_up.is_empty(), "it is done");
    }
}
