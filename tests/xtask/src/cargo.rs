//! Calls of cargo.

use std::path::Path;
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

/// Builds a program of the tests package, then runs it with these arguments; says whether it succeeded.
pub(crate) fn run_bin(name: &str, args: &[String]) -> Result<bool> {
    run(&["build", "--quiet", "--package", "cdchost-tests", "--bin", name])?;
    // Arguments name files from where the user stands.
    let status = Command::new(root().join("target/debug").join(name)).args(args).status();
    Ok(status.with_context(|| format!("start {name}"))?.success())
}
