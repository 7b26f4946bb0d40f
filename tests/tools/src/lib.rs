//! Tools of the machine that the suites need: installed where that is allowed, otherwise named all at once.
#![warn(missing_docs)]

use std::fs::File;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Runs a command to its end without input; its output is shown only if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start {shown}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{shown} ended with {}:\n{}", output.status, String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Cargo as a shell starts it. What cargo tells the programs that it runs of themselves is taken out: build scripts that
/// look at such variables would find them changed, and large crates would be compiled anew.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.to_string_lossy().starts_with(of));
        if of_package {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// A tool that Debian has, with the package that brings it.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// What shows that it is there.
    pub sign: Sign,
    /// Packages that bring it; the first that the machine's Debian knows is taken.
    pub packages: &'static [&'static str],
}

/// What shows that a tool is there.
#[derive(Clone, Copy, Debug)]
pub enum Sign {
    /// A program in `PATH`.
    Program(&'static str),
    /// A shared library that the loader knows.
    Library(&'static str),
    /// Modules that Python can import.
    Python(&'static str),
}

/// Maven, which fetches the server and the readers written in Java.
pub const MAVEN: Tool = Tool { sign: Sign::Program("mvn"), packages: &["maven"] };
/// The Java compiler and its companions.
pub const JDK: Tool = Tool { sign: Sign::Program("javac"), packages: &["default-jdk-headless"] };
/// Python.
pub const PYTHON: Tool = Tool { sign: Sign::Program("python3"), packages: &["python3"] };
/// What makes environments for Python's packages.
pub const VENV: Tool = Tool { sign: Sign::Python("venv, ensurepip"), packages: &["python3-venv"] };
/// MySQL's asynchronous files.
pub const LIBAIO: Tool = Tool { sign: Sign::Library("libaio.so.1"), packages: &["libaio1", "libaio1t64"] };
/// MySQL's view of memory banks.
pub const LIBNUMA: Tool = Tool { sign: Sign::Library("libnuma.so.1"), packages: &["libnuma1"] };

/// All of them.
pub const ALL: [Tool; 6] = [MAVEN, JDK, PYTHON, VENV, LIBAIO, LIBNUMA];

/// Sees to it that all `tools` are there: installs what is missing where that is allowed, otherwise says how to.
pub fn need(tools: &[Tool]) -> Result<()> {
    let missing: Vec<Tool> = tools.iter().copied().filter(|tool| !is_there(tool.sign)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let first: Vec<_> = missing.iter().filter_map(|tool| tool.packages.first().copied()).collect();
    let advice = format!("apt-get install --no-install-recommends {}", first.join(" "));
    let can_install = is_root() && is_there(Sign::Program("apt-get"));
    ensure!(can_install, "missing tools: run `{advice}` as root");
    install(&missing).with_context(|| format!("missing tools could not be installed: run `{advice}`"))?;
    for tool in missing {
        ensure!(is_there(tool.sign), "{:?} is still missing after the installation of {:?}", tool.sign, tool.packages);
    }
    Ok(())
}

fn install(missing: &[Tool]) -> Result<()> {
    let lock = File::create(std::env::temp_dir().join("cdchost-tests-apt.lock"))?;
    lock.lock()?;
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "-qq", "--no-install-recommends"]);
    for tool in missing {
        let known = tool.packages.iter().find(|p| run(Command::new("apt-cache").args(["show", p])).is_ok());
        command.arg(known.or(tool.packages.first()).context("a tool has a package")?);
    }
    run(&mut command)
}

/// Whether what shows a tool is there.
fn is_there(sign: Sign) -> bool {
    match sign {
        Sign::Program(name) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| dir.join(name).exists())
        }
        Sign::Library(name) => {
            let listed = Command::new("sh").args(["-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p"]).output();
            let Ok(listed) = listed else { return false };
            // Newer Debians mark the library's name for its wider time type.
            let text = String::from_utf8_lossy(&listed.stdout).into_owned();
            text.contains(&format!("{name} ")) || text.contains(&format!("{name}t64 "))
        }
        Sign::Python(modules) => run(Command::new("python3").args(["-c", &format!("import {modules}")])).is_ok(),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_hears_nothing_of_the_package_that_starts_it() {
        let command = cargo();
        let taken_out = command.get_envs().any(|(name, value)| name == "CARGO_MANIFEST_DIR" && value.is_none());
        assert!(taken_out && std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "{command:?}");
    }
}
