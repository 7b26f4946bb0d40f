//! Calls of cargo.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// The repository's top folder, found when asked for: clones share compiled files, so a path that the compiler wrote
/// down may be another clone's.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let of_cargo = package.as_ref().and_then(|package| package.ancestors().nth(2)).map(PathBuf::from);
        // Run by hand, it is in the top folder.
        of_cargo.unwrap_or_else(|| PathBuf::from("."))
    })
}

/// Cargo with these arguments, in the top folder, without standard input.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = cdchost_tools::cargo();
    command.args(args).current_dir(root());
    command
}

/// Runs cargo and fails if it fails.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let status = cargo(args).status().context("start cargo")?;
    ensure!(status.success(), "`cargo {}` failed", args.join(" "));
    Ok(())
}

/// Builds programs of the workspace; a program is put at `target/debug/NAME`.
///
/// The whole workspace is selected each time: cargo chooses features of shared crates by what is selected, and would
/// compile the large ones anew for each choice. For the same reason failpoints are always compiled in; without the
/// variable `FAILPOINTS` they do nothing.
pub(crate) fn build(programs: &[&str]) -> Result<()> {
    let mut args = vec!["build", "--quiet", "--workspace", "--features", FAILPOINTS];
    args.extend(programs.iter().flat_map(|name| ["--bin", *name]));
    run(&args)
}

/// Runs a program that was built, with these arguments; says whether it succeeded.
pub(crate) fn start(program: &str, args: &[String]) -> Result<bool> {
    let mut command = Command::new(root().join("target/debug").join(program));
    // Arguments name files from where the user stands.
    command.args(args).env(PROGRAM, root().join(BUILT));
    Ok(command.status().with_context(|| format!("start {program}"))?.success())
}

/// Builds the benchmarks and the program as they are released, and runs the benchmarks.
pub(crate) fn bench(args: &[String]) -> Result<bool> {
    run(&["build", "--quiet", "--release", "--workspace", "--bin", "cdchost", "--bin", "cdchost-bench"])?;
    let program = root().join("target/release");
    let mut command = Command::new(program.join("cdchost-bench"));
    command.args(args).env(PROGRAM, program.join("cdchost"));
    Ok(command.status().context("start the benchmarks")?.success())
}

/// The feature with which the program can be made to stop, wait or fail at its steps.
pub(crate) const FAILPOINTS: &str = "cdchost/failpoints,cdchost-sim/failpoints";

/// The variable that names the program under test.
pub(crate) const PROGRAM: &str = "CDCHOST_BIN";

/// Where cargo puts the program under test.
pub(crate) const BUILT: &str = "target/debug/cdchost";
