//! Time, handed in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

/// Where the engine gets its time from; tests hand in one that they move by hand.
#[async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Microseconds since the epoch, for people and records. May jump.
    fn now_micros(&self) -> i64;

    /// Time since some fixed moment. Never goes back; intervals and deadlines are measured with it.
    fn elapsed(&self) -> Duration;

    /// Returns after `duration` of [`Clock::elapsed`] time.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
