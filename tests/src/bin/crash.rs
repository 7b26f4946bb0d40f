//! `cargo xtask crash`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::process::ExitCode;

use cdchost_tests::crash::{self, CrashOptions};

const USAGE: &str = "usage: cargo xtask crash [--rounds N] [--seed S] [--sink paimon|file]";

fn options() -> Option<CrashOptions> {
    let mut options = CrashOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => options.rounds = arguments.next()?.parse().ok().filter(|rounds| *rounds > 0)?,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--sink" => options.sink = arguments.next()?,
            _ => return None,
        }
    }
    Some(options)
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match crash::run(&options, |line| println!("crash: {line}")).await {
        Ok(tally) => {
            let weaknesses = tally.weaknesses();
            println!("crash: {tally}");
            weaknesses.iter().for_each(|weakness| println!("crash: proves too little: {weakness}"));
            println!("crash: {} rounds, {} differences", tally.rounds, tally.differences);
            if weaknesses.is_empty() && tally.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("crash: {error:#}");
            ExitCode::FAILURE
        }
    }
}
