//! `cargo xtask sim`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;
use std::time::Duration;

use cdchost_sim::seeds::{Extent, run_all};

const USAGE: &str = "usage: cargo xtask sim (--runs N | --minutes M) [--seed S] [--trace]";

struct Options {
    extent: Extent,
    seed: u64,
    /// Prints all that happens in the first run.
    trace: bool,
}

fn options() -> Option<Options> {
    let (mut extent, mut seed, mut trace) = (None, None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" if extent.is_none() => extent = Some(Extent::Runs(arguments.next()?.parse().ok()?)),
            "--minutes" if extent.is_none() => {
                let minutes: f64 = arguments.next()?.parse().ok()?;
                extent = Some(Extent::Time(Duration::try_from_secs_f64(minutes * 60.0).ok()?));
            }
            "--seed" => seed = Some(arguments.next()?.parse().ok()?),
            "--trace" => trace = true,
            _ => return None,
        }
    }
    // Small enough to be typed again.
    let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 32);
    Some(Options { extent: extent?, seed, trace })
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic is a violation and is told as one.
    std::panic::set_hook(Box::new(|_| {}));
    if options.trace {
        let outcome = cdchost_sim::run(options.seed, true);
        outcome.lines.iter().for_each(|line| println!("{line}"));
    }
    println!("sim: seeds from {}", options.seed);
    let tally = run_all(options.seed, options.extent, |outcome| {
        outcome.violations.iter().for_each(|violation| println!("sim: seed {}: {violation}", outcome.seed));
        println!("sim: alone: cargo xtask sim --runs 1 --seed {} --trace", outcome.seed);
    });
    println!("sim: {:?}", tally.facts);
    println!("sim: {} runs, {} violations", tally.runs, tally.failed.len());
    if tally.failed.is_empty() && tally.runs > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
