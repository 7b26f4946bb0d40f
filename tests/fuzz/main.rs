//! A smoke of each fuzz target: a fixed seed, so many inputs that no run is without new paths, a few seconds in all.
//! `cargo xtask fuzz TARGET --seconds N` goes on with other seeds.

use std::process::ExitCode;

use cdchost_tests::fuzz::{Extent, TARGETS, Target, Watched, run};
use libtest_mimic::{Arguments, Failed, Trial};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Inputs of each target.
const INPUTS: u64 = 100_000;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Allocations are counted for the whole process.
    arguments.test_threads = Some(1);
    // A panic is a finding and is told as one.
    std::panic::set_hook(Box::new(|_| {}));
    let trials = TARGETS.iter().map(|target| Trial::test(target.name, || smoke(target))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn smoke(target: &Target) -> Result<(), Failed> {
    let outcome = run(target, 1, Extent::Inputs(INPUTS)).map_err(|error| format!("{error:#}"))?;
    if !outcome.findings.is_empty() {
        return Err(outcome.findings.join("\n").into());
    }
    // Mutations that are all refused at the first byte would prove nothing.
    if outcome.accepted < INPUTS / 100 {
        return Err(format!("only {} of {} inputs were read to their end", outcome.accepted, outcome.inputs).into());
    }
    Ok(())
}
