//! Feeds a fuzz target for some time; the last line says how many inputs it took and how many findings there are.
#![expect(clippy::print_stdout, reason = "a command-line program talks to its user")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use cdchost_tests::fuzz::{Extent, TARGETS, Watched, run};
use clap::Parser;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

#[derive(Parser)]
#[command(about = "Feeds mutated rows of real servers to what reads them")]
struct Arguments {
    /// Which target
    target: String,
    /// For how long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Repeats a run
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let target = TARGETS.iter().find(|target| target.name == arguments.target);
    let target = target.with_context(|| format!("targets are {}", names.join(", ")))?;
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("{}: seed {seed}", target.name);
    // A panic is a finding and is told as one.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = run(target, seed, Extent::Time(Duration::from_secs(arguments.seconds)))?;
    outcome.findings.iter().for_each(|finding| println!("{finding}"));
    println!("fuzz: {} inputs, {} findings", outcome.inputs, outcome.findings.len());
    Ok(if outcome.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
