//! The program: reads the command line and hands over.

mod cli;
mod commands;
mod findings;
mod memory;
mod process;
mod progress;
mod server;
mod state;
mod telemetry;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::process::Process;

fn main() -> ExitCode {
    let process = Process::start();
    #[cfg(feature = "failpoints")]
    cdchost_pipeline::arm_failpoints();
    match Cli::parse().command {
        Command::Run(arguments) => commands::run::run(arguments, process),
        Command::Check(arguments) => commands::check::run(&arguments, process),
        Command::Plugin(command) => commands::plugin::run(&command, process),
    }
}
