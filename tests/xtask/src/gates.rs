//! Runs the gates, cheapest first, and counts.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::cargo::{self, PROGRAM, cargo, root};
use crate::plugins;

/// What to run.
#[derive(Args)]
pub(crate) struct TestArgs {
    /// Only what needs no server
    #[arg(long)]
    quick: bool,
    /// Only this suite of the tests package
    #[arg(long, value_name = "SUITE")]
    only: Option<String>,
}

/// Suites that start servers.
const WITH_SERVERS: [&str; 8] = ["cases", "cli", "source", "values", "lake", "examples", "demo", "crash"];
/// Unit tests that do.
const UNITS_WITH_SERVERS: [&str; 2] = ["server::tests", "shop::tests"];

/// How many tests ended how.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Format, lints, architecture.
pub(crate) fn lint() -> Result<bool> {
    let mut count = Count::default();
    static_gates(&mut count)?;
    suite("architecture", &mut count)?;
    Ok(count.failed == 0)
}

/// Everything, or the part asked for. Prints the sum as its last line.
pub(crate) fn test(args: &TestArgs) -> Result<bool> {
    let mut count = Count::default();
    if !args.quick {
        crate::need_tools()?;
    }
    if let Some(name) = &args.only {
        products()?;
        suite(name, &mut count)?;
    } else {
        all(args.quick, &mut count)?;
    }
    println!("{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped);
    Ok(count.failed == 0 && count.passed > 0)
}

fn all(quick: bool, count: &mut Count) -> Result<()> {
    static_gates(count)?;
    step("unit tests", count, |count| {
        let skipped = if quick { &UNITS_WITH_SERVERS[..] } else { &[] };
        let skips = skipped.iter().flat_map(|name| ["--skip", *name]);
        tests(&["--lib", "--bins", "--no-fail-fast", "--"].into_iter().chain(skips).collect::<Vec<_>>(), count)
    })?;
    step("documentation tests", count, |count| tests(&["--doc"], count))?;
    step("components and program", count, |_| products().map(|()| true))?;
    for name in suites()? {
        if !quick || !WITH_SERVERS.contains(&name.as_str()) {
            suite(&name, count)?;
        }
    }
    Ok(())
}

/// Builds what the suites run.
fn products() -> Result<()> {
    plugins::build()?;
    println!("building the program");
    cargo::build(&["cdchost"])
}

fn static_gates(count: &mut Count) -> Result<()> {
    step("format", count, |_| succeeds(&["fmt", "--all", "--check"]))?;
    step("clippy", count, |_| succeeds(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// The names of all test binaries: those of single crates, then the suites in the order of their manifest.
fn suites() -> Result<Vec<String>> {
    let output = cargo(&["metadata", "--format-version=1", "--no-deps"]).output().context("start cargo")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let mut packages = metadata["packages"].as_array().context("cargo metadata lists packages")?.clone();
    packages.sort_by_key(|package| package["name"] == "cdchost-tests");
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let is_test = |t: &&serde_json::Value| t["kind"] == serde_json::json!(["test"]);
    Ok(targets.filter(is_test).filter_map(|t| t["name"].as_str()).map(str::to_owned).collect())
}

fn suite(name: &str, count: &mut Count) -> Result<()> {
    step(name, count, |count| tests(&["--test", name], count))
}

/// Runs one gate, says how long it took, and counts it as one more failure if it ends badly.
fn step(name: &str, count: &mut Count, gate: impl FnOnce(&mut Count) -> Result<bool>) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    let failed_before = count.failed;
    let held = gate(count)?;
    if !held && count.failed == failed_before {
        count.failed += 1;
    }
    println!("== {name}: {} in {:.1} s", if held { "held" } else { "FAILED" }, start.elapsed().as_secs_f64());
    Ok(())
}

fn succeeds(args: &[&str]) -> Result<bool> {
    Ok(cargo(args).status().context("start cargo")?.success())
}

/// Runs `cargo test`, passes its lines on, and adds up its closing lines.
fn tests(args: &[&str], count: &mut Count) -> Result<bool> {
    let program = root().join(cargo::BUILT);
    let common = ["test", "--workspace", "--features", cargo::FAILPOINTS];
    let mut child =
        cargo(&[&common, args].concat()).env(PROGRAM, program).stdout(Stdio::piped()).spawn().context("start cargo")?;
    let lines = BufReader::new(child.stdout.take().context("the output is piped")?);
    for line in lines.lines() {
        let line = line.context("read the tests' output")?;
        println!("{line}");
        if let Some(rest) = line.strip_prefix("test result: ") {
            count.passed += number_before(rest, " passed");
            count.failed += number_before(rest, " failed");
            count.skipped += number_before(rest, " ignored");
        }
    }
    Ok(child.wait().context("wait for cargo")?.success())
}

/// The number that stands just before `word`; 0 if the line has none.
fn number_before(line: &str, word: &str) -> u64 {
    let Some(end) = line.find(word) else { return 0 };
    let digits = line[..end].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn closing_lines_are_counted() {
        let line = "FAILED. 41 passed; 2 failed; 7 ignored; 0 measured; 0 filtered out; finished in 0.10s";
        assert_eq!(number_before(line, " passed"), 41);
        assert_eq!(number_before(line, " failed"), 2);
        assert_eq!(number_before(line, " ignored"), 7);
        assert_eq!(number_before(line, " skipped"), 0);
    }
}
