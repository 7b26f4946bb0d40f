//! `cargo xtask demo`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::process::ExitCode;

use cdchost_tests::demo::{self, DemoOptions};

const USAGE: &str = "usage: cargo xtask demo [--once] [--folder DIR]";

fn options() -> Option<DemoOptions> {
    let mut options = DemoOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--once" => options.once = true,
            "--folder" => options.folder = Some(std::path::absolute(arguments.next()?).ok()?),
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
    match demo::run(&options, |line| println!("demo: {line}")).await {
        Ok(verdict) => {
            verdict.shown.iter().for_each(|difference| println!("demo: {difference}"));
            println!(
                "demo: {} tables equal, {} rows, {} differences",
                verdict.equal, verdict.rows, verdict.differences
            );
            if verdict.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
