//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod plugin;
pub(crate) mod run;

use std::io::Write as _;

use crate::findings::Findings;
use crate::telemetry::Screen;

/// Shows what stands in the way, and gives the exit code for it.
pub(crate) fn refuse(screen: &Screen, findings: &Findings) -> u8 {
    findings.show(screen);
    findings.exit_code().unwrap_or(1)
}

/// Writes what a command was asked for. Nobody is left to tell if standard output is gone.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A value as one JSON document.
fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}
