//! Losses of the log's connection in a row, between which nothing more was read.

use std::time::Duration;

use super::{PAUSE_MAX, PAUSE_MIN};

/// Losses since a connection last brought the stream on.
#[derive(Debug, Default)]
pub(super) struct Losses {
    since: Option<Duration>,
    count: u32,
}

impl Losses {
    /// How many there were.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// A connection brought the stream on.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Counts a loss at `now`. Gives the pause before the next try; none once they have gone on for `limit`.
    pub(super) fn add(&mut self, now: Duration, limit: Duration) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let pause = PAUSE_MIN.saturating_mul(1 << self.count.min(10)).min(PAUSE_MAX);
        self.count = self.count.saturating_add(1);
        (now.saturating_sub(since) < limit).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_come_to_an_end_and_one_alone_does_not() {
        let limit = Duration::from_secs(60);
        let mut losses = Losses::default();
        let mut now = Duration::from_secs(1000);
        let mut pauses = Vec::new();
        while let Some(pause) = losses.add(now, limit) {
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(pauses[..3], [PAUSE_MIN, PAUSE_MIN * 2, PAUSE_MIN * 4]);
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        assert_eq!(losses.count() as usize, pauses.len() + 1);
        losses.forget();
        assert_eq!(losses.add(now, limit), Some(PAUSE_MIN));
        assert_eq!(losses.count(), 1);
    }
}
