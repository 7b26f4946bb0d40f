//! Calls to plugins that are repeated after a pause.

use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::{Clock, ConnectorError, Verdict};
use prometheus_client::metrics::counter::Counter;

use crate::failure::Failure;

/// First pause; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long one call is repeated before the run ends; the restart budget takes over then.
const WINDOW: Duration = Duration::from_secs(300);

/// The pauses of one call.
#[derive(Debug)]
pub(crate) struct Backoff {
    clock: Arc<dyn Clock>,
    retries: Counter,
    pause: Duration,
    began: Option<Duration>,
}

impl Backoff {
    pub(crate) fn new(clock: &Arc<dyn Clock>, retries: &Counter) -> Self {
        Self { clock: Arc::clone(clock), retries: retries.clone(), pause: PAUSE_MIN, began: None }
    }

    /// Waits before the next call, or gives the error back if there shall be none.
    pub(crate) async fn wait(&mut self, mut error: ConnectorError, what: &'static str) -> Result<(), Failure> {
        let Verdict::Retry { after } = error.verdict else { return Err(error.into()) };
        tracing::warn!(event = "retry", what, code = error.code, reason = %error, "a call to a plugin is repeated");
        if !self.pause(after.unwrap_or_default()).await {
            error.verdict = Verdict::Restart;
            return Err(error.into());
        }
        Ok(())
    }

    /// Waits at least so long; false once the window has passed.
    pub(crate) async fn pause(&mut self, at_least: Duration) -> bool {
        let now = self.clock.elapsed();
        let began = *self.began.get_or_insert(now);
        if now.saturating_sub(began) >= WINDOW {
            return false;
        }
        self.retries.inc();
        self.clock.sleep(self.pause.max(at_least).min(WINDOW)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
