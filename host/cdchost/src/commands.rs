//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod plugin;
pub(crate) mod run;

use std::io::Write as _;
use std::process::ExitCode;

use cdchost_config::Finding;

use crate::findings::{Blame, Findings};
use crate::telemetry::Screen;

/// Runs a command on threads of its own, and tells what became of it as an exit code.
fn on_threads(screen: &Screen, command: impl Future<Output = u8>) -> ExitCode {
    let code = match tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("cdchost").build() {
        Ok(runtime) => {
            let code = runtime.block_on(command);
            runtime.shutdown_timeout(run::LAST_WORK);
            code
        }
        Err(error) => {
            let finding = Finding::error(format!("threads cannot be started: {error}"), "raise the process' limits");
            refuse(screen, &Findings::of(Blame::Environment, [finding]))
        }
    };
    code.into()
}

/// Shows what stands in the way, and gives the exit code for it.
fn refuse(screen: &Screen, findings: &Findings) -> u8 {
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
