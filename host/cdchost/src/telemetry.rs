//! All that goes to standard error: the log, findings, the final state; text for people or one JSON object a line.

use std::io::{self, IsTerminal as _, Write};

use cdchost_config::{Finding, Severity};
use indicatif::{MultiProgress, ProgressDrawTarget};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::cli::LogFormat;

/// Variable that chooses what is logged, in the syntax of `tracing`: `debug`, `info,cdchost_mysql=trace`.
const LOG_VARIABLE: &str = "CDCHOST_LOG";

/// What this program says of a run, beside the log of its parts.
pub(crate) const RUN: &str = "run";

/// Standard error. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    format: LogFormat,
    /// Where progress is drawn; none where standard error is no terminal.
    bars: Option<MultiProgress>,
}

impl Screen {
    /// Takes over standard error and starts the log.
    pub(crate) fn start(format: LogFormat) -> Self {
        let terminal = io::stderr().is_terminal();
        let draws = terminal && format == LogFormat::Text && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let bars = draws.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)));
        let screen = Self { format, bars };
        // People get what they must know; programs get every step.
        let usual = match format {
            LogFormat::Text => "warn,run=info",
            LogFormat::Json => "info",
        };
        let asked = std::env::var(LOG_VARIABLE).ok().and_then(|text| EnvFilter::try_new(text).ok());
        let filter = asked.unwrap_or_else(|| EnvFilter::new(usual));
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(screen.clone());
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match format {
            LogFormat::Json => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
            LogFormat::Text => log.with_ansi(colour).with_target(false).init(),
        }
        screen
    }

    /// Where progress is drawn; none where it is told in lines.
    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.bars.as_ref()
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.format == LogFormat::Json
    }

    /// Shows a finding.
    pub(crate) fn finding(&self, finding: &Finding) {
        if !self.is_json() {
            return self.lines(&finding.to_string());
        }
        let Finding { severity, place, message, instruction } = finding;
        let place = place.as_ref();
        let (file, line, column) = (place.map(|p| &p.file), place.map(|p| p.line), place.map(|p| p.column));
        match severity {
            Severity::Error => {
                tracing::error!(target: RUN, event = "finding", file, line, column, message, instruction);
            }
            Severity::Warning => {
                tracing::warn!(target: RUN, event = "finding", file, line, column, message, instruction);
            }
        }
    }

    /// Says that nothing was started.
    pub(crate) fn refusal(&self, message: &str) {
        if self.is_json() {
            tracing::error!(target: RUN, event = "refused", message);
        } else {
            self.lines(message);
        }
    }

    /// Writes lines for people.
    pub(crate) fn lines(&self, text: &str) {
        // Nobody is left to tell if standard error is gone.
        let _ = self.clone().write_all(printable(text).as_bytes());
    }
}

/// Lines for people. What is not printable is shown as an escape, and every line but the first is indented, so that a
/// name from a server can neither move the cursor nor look like a line of ours.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 1);
    for (index, line) in text.lines().enumerate() {
        if index > 0 && !line.starts_with("    ") {
            shown.push_str("    ");
        }
        for c in line.chars() {
            if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
        }
        shown.push('\n');
    }
    shown
}

impl Write for Screen {
    /// One write a line: a line is out before the process can be killed between two.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.bars {
            Some(bars) => bars.suspend(|| io::stderr().write(bytes)),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for Screen {
    type Writer = Self;

    fn make_writer(&'a self) -> Self::Writer {
        self.clone()
    }
}
