//! Calls of cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The repository's top folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this package lies two folders below the top")
}

/// Cargo with these arguments, in the top folder, without standard input.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs cargo and fails if it fails.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let status = cargo(args).status().context("start cargo")?;
    ensure!(status.success(), "`cargo {}` failed", args.join(" "));
    Ok(())
}

/// Builds the program under test; whoever is started afterwards with [`PROGRAM`] set to the answer uses it.
pub(crate) fn program(features: &[&str]) -> Result<PathBuf> {
    let features = format!("--features={}", features.join(","));
    run(&["build", "--quiet", "--package", "cdchost", &features])?;
    Ok(root().join(BUILT))
}

/// Where cargo puts the program under test.
pub(crate) const BUILT: &str = "target/debug/cdchost";

/// The variable that names the program under test.
pub(crate) const PROGRAM: &str = "CDCHOST_BIN";

/// Builds a program of the tests package, then runs it with these arguments; says whether it succeeded.
///
/// `program` is the program under test, where it needs one.
pub(crate) fn run_bin(name: &str, args: &[String], program: Option<&Path>) -> Result<bool> {
    run(&["build", "--quiet", "--package", "cdchost-tests", "--bin", name])?;
    // Arguments name files from where the user stands.
    let mut command = Command::new(root().join("target/debug").join(name));
    command.args(args).envs(program.map(|path| (PROGRAM, path)));
    Ok(command.status().with_context(|| format!("start {name}"))?.success())
}

/// Builds the benchmarks and the program for release, then runs the benchmarks; says whether they succeeded.
pub(crate) fn run_bench(args: &[String]) -> Result<bool> {
    let packages = ["--package", "cdchost", "--package", "cdchost-tests", "--bin", "cdchost", "--bin", "cdchost-bench"];
    run(&[&["build", "--quiet", "--release"][..], &packages].concat())?;
    let folder = root().join("target/release");
    let mut command = Command::new(folder.join("cdchost-bench"));
    command.args(args).env(PROGRAM, folder.join("cdchost"));
    Ok(command.status().context("start the benchmarks")?.success())
}
