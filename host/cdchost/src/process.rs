//! The process: its threads, and the signals that end it, heard from its first moment on.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use cdchost_config::Finding;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::refuse;
use crate::findings::{Blame, Findings};
use crate::telemetry::Screen;

/// Time that blocking work of an ended run may take before the process ends around it.
const LAST_WORK: Duration = Duration::from_secs(2);

/// Threads and signals of the process.
#[derive(Debug)]
pub(crate) struct Process {
    started: io::Result<(Runtime, Signals)>,
}

impl Process {
    /// Comes before everything else that the program does.
    pub(crate) fn start() -> Self {
        let start = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("cdchost").build()?;
            let signals = {
                let _entered = runtime.enter();
                Signals::listen()?
            };
            Ok((runtime, signals))
        };
        Self { started: start() }
    }

    /// Runs a command that a signal ends where it stands, and tells what became of it as an exit code.
    pub(crate) fn run(self, screen: &Screen, command: impl Future<Output = u8>) -> ExitCode {
        self.run_to_its_end(screen, async |mut signals: Signals| {
            tokio::spawn(async move { std::process::exit(signals.next().await) });
            command.await
        })
    }

    /// Runs a command that hears the signals itself.
    pub(crate) fn run_to_its_end(self, screen: &Screen, command: impl AsyncFnOnce(Signals) -> u8) -> ExitCode {
        let code = match self.started {
            Ok((runtime, signals)) => {
                let code = runtime.block_on(command(signals));
                runtime.shutdown_timeout(LAST_WORK);
                code
            }
            Err(error) => {
                let message = format!("threads and signals cannot be had: {error}");
                let finding = Finding::error(message, "raise the process' limits");
                refuse(screen, &Findings::of(Blame::Environment, [finding]))
            }
        };
        code.into()
    }
}

/// SIGINT and SIGTERM.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for one; gives the exit code of a process that it ends.
    pub(crate) async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
        }
    }
}
