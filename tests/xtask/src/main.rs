//! Developer commands: starts the right processes in the right order and says how they ended.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

mod cargo;
mod gates;
mod plugins;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of cdchost")]
struct Cli {
    #[command(subcommand)]
    command: Xtask,
}

#[derive(Subcommand)]
enum Xtask {
    /// Replicates a real MySQL into a lake, under changes and a kill, and compares
    Demo(Passed),
    /// Runs every check and every suite
    Test(gates::TestArgs),
    /// Checks format, lints and architecture
    Lint,
    /// Builds every component to plugins/NAME/NAME.wasm
    Plugins,
    /// Starts or stops a server for work by hand; its data goes away when it stops
    Server(Passed),
    /// Kills the program at random moments under load and compares
    Crash(Passed),
    /// Runs cases: SQL before and after the start, compared with the server
    Cases(Passed),
    /// Feeds mutated rows of real servers to what reads them: `fuzz TARGET --seconds N`
    Fuzz(Passed),
    /// Runs the pipeline in a simulated world, one seed after the other: `sim (--runs N | --minutes M) [--seed S]`
    Sim(Passed),
    /// Measures speed and memory
    Bench(Passed),
}

/// Arguments handed on as they are to the program that does the work.
#[derive(Args)]
#[command(disable_help_flag = true)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything held.
fn run(command: Xtask) -> Result<bool> {
    match command {
        Xtask::Test(args) => gates::test(&args),
        Xtask::Lint => gates::lint(),
        Xtask::Plugins => plugins::build().map(|()| true),
        Xtask::Sim(p) => program("sim", &p.args),
        Xtask::Fuzz(p) => program("fuzz", &p.args),
        Xtask::Server(p) => need_tools().and_then(|()| program("server", &p.args)),
        Xtask::Bench(p) => {
            need_tools()?;
            plugins::build()?;
            cargo::bench(&p.args)
        }
        Xtask::Demo(p) => pipelines("demo", &p.args),
        Xtask::Crash(p) => pipelines("crash", &p.args),
        Xtask::Cases(p) => pipelines("cases", &p.args),
    }
}

/// Runs a program of the tests.
fn program(name: &str, args: &[String]) -> Result<bool> {
    cargo::build(&[name])?;
    cargo::start(name, args)
}

/// Sees to it that the machine has all tools, before anything is built for minutes.
pub(crate) fn need_tools() -> Result<()> {
    cdchost_tools::need(&cdchost_tools::ALL)
}

/// Runs a program of the tests package that runs whole pipelines.
fn pipelines(name: &str, args: &[String]) -> Result<bool> {
    need_tools()?;
    plugins::build()?;
    println!("building the program");
    cargo::build(&["cdchost", name])?;
    cargo::start(name, args)
}
