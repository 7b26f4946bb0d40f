//! Log lines of a guest: bounded in size and rate, without its secrets.

use std::sync::{Arc, Mutex, PoisonError};

use cdchost_config::Secret;
use cdchost_connector::Clock;
use tracing::Level;

use super::{Grant, Place};
use crate::limits::{TEXT_CHARS_MAX, TEXTS_MAX};

/// Shorter secrets are not looked for in log lines: they would blot out half of every line.
const MASKED_BYTES_MIN: usize = 4;

/// Where the log lines of one instance go.
pub(crate) struct GuestLog {
    pipeline: String,
    operator: String,
    subtask: u32,
    secrets: Vec<Secret>,
    lines_per_second: u32,
    clock: Arc<dyn Clock>,
    window: Mutex<Window>,
}

/// Lines of one second.
#[derive(Default)]
struct Window {
    second: u64,
    lines: u32,
    dropped: u64,
}

impl GuestLog {
    pub(super) fn new(grant: &Grant, place: Place, clock: Arc<dyn Clock>) -> Self {
        let long = |secret: &&Secret| secret.reveal().len() >= MASKED_BYTES_MIN;
        Self {
            pipeline: grant.pipeline.clone(),
            operator: grant.operator.clone(),
            subtask: place.subtask,
            secrets: grant.secrets.values().filter(long).cloned().collect(),
            lines_per_second: grant.limits.log_lines_per_second,
            clock,
            window: Mutex::default(),
        }
    }

    /// Writes one line, unless this second has had its share.
    pub(super) fn write(&self, level: Level, message: &str, fields: &[(String, String)]) {
        if !self.admit() {
            return;
        }
        let message = self.clean(message);
        let fields: Vec<_> =
            fields.iter().take(TEXTS_MAX).map(|(k, v)| format!("{}={}", self.clean(k), self.clean(v))).collect();
        let (pipeline, plugin, subtask) = (self.pipeline.as_str(), self.operator.as_str(), self.subtask);
        let fields = fields.join(" ");
        // A level is part of a line's static description, hence a call each.
        match level {
            Level::ERROR => tracing::error!(target: "plugin", pipeline, plugin, subtask, fields, "{message}"),
            Level::WARN => tracing::warn!(target: "plugin", pipeline, plugin, subtask, fields, "{message}"),
            Level::INFO => tracing::info!(target: "plugin", pipeline, plugin, subtask, fields, "{message}"),
            Level::DEBUG => tracing::debug!(target: "plugin", pipeline, plugin, subtask, fields, "{message}"),
            Level::TRACE => tracing::trace!(target: "plugin", pipeline, plugin, subtask, fields, "{message}"),
        }
    }

    /// A guest's text as it may stand in a message: bounded, on one line, without secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut text = std::borrow::Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(secret.reveal()) {
                text = text.replace(secret.reveal(), "***").into();
            }
        }
        plain(&text)
    }

    fn admit(&self) -> bool {
        let second = self.clock.elapsed().as_secs();
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (admitted, dropped) = window.admit(second, self.lines_per_second);
        if dropped > 0 {
            let (plugin, limit) = (self.operator.as_str(), self.lines_per_second);
            tracing::warn!(plugin, dropped, limit, "plugin log lines dropped, beyond its lines a second");
        }
        admitted
    }
}

impl Window {
    /// Whether one more line fits into this second, and how many were dropped in the last one that had any.
    fn admit(&mut self, second: u64, limit: u32) -> (bool, u64) {
        let mut dropped = 0;
        if self.second != second {
            dropped = self.dropped;
            *self = Self { second, ..Self::default() };
        }
        let fits = self.lines < limit;
        self.lines += u32::from(fits);
        self.dropped += u64::from(!fits);
        (fits, dropped)
    }
}

/// Bounded and on one line: control characters are escaped, so that no guest can forge a line or steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(TEXT_CHARS_MAX));
    for (count, c) in text.chars().enumerate() {
        if count == TEXT_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests;
