//! `cargo xtask cases`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use cdchost_tests::cases::{Bench, Case, Mode, Outcome};

const USAGE: &str = "usage: cargo xtask cases --dir DIR [--only NAME] [--mode all|snapshot|stream|mixed] \
                     [--sink paimon] [--kills N] [--seed S]";

struct Options {
    dir: PathBuf,
    only: String,
    modes: Vec<Mode>,
    kills: u32,
    seed: u64,
}

fn options() -> Option<Options> {
    let mut options = Options {
        dir: PathBuf::new(),
        only: String::new(),
        modes: Mode::ALL.to_vec(),
        kills: 0,
        seed: rand::random_range(0..1_000_000),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next()?;
        match (argument.as_str(), value.as_str()) {
            ("--dir", _) => options.dir = value.into(),
            ("--only", _) => options.only = value,
            ("--mode", "all") | ("--sink", "paimon") => {}
            ("--mode", name) => options.modes.retain(|mode| mode.name() == name),
            ("--kills", _) => options.kills = value.parse().ok()?,
            ("--seed", _) => options.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    (!options.dir.as_os_str().is_empty() && !options.modes.is_empty()).then_some(options)
}

async fn run(options: &Options) -> Result<bool> {
    let mut cases = Case::read_all(&options.dir)?;
    cases.retain(|case| case.name.contains(&options.only));
    let mut bench = Bench::open(options.kills, options.seed)?;
    println!("cases: seed {}", options.seed);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for case in &cases {
        for mode in &options.modes {
            let outcome = bench.run(case, *mode).await;
            println!("{} in mode {}: {outcome}", case.name, mode.name());
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::Skipped(_) => skipped += 1,
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0 && passed > 0)
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cases: {error:#}");
            ExitCode::FAILURE
        }
    }
}
