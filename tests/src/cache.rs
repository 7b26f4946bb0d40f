//! Things fetched once and kept for later runs, in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The folder, made if missing: `$XDG_CACHE_HOME/cdchost-tests`, else `~/.cache/cdchost-tests`.
pub fn folder() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home);
    let folder = base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("cdchost-tests");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// The entry `name`, made by `make` if it is not there yet.
///
/// Only one process makes it; the others wait. `make` works in a folder that takes the entry's name once it is whole,
/// so an entry that exists is complete.
pub fn entry(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = folder()?;
    let path = folder.join(name);
    if path.exists() {
        return Ok(path);
    }
    let lock = File::create(folder.join(format!("{name}.lock"))).context("make a lock file")?;
    lock.lock().context("wait for the lock")?;
    if path.exists() {
        return Ok(path);
    }
    let unfinished = folder.join(format!("{name}.unfinished"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir(&unfinished)?;
    make(&unfinished).with_context(|| format!("prepare {name}"))?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

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

/// A tool that Debian has, with the package that brings it.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// What shows that it is there: a program's name, or a shared library's (`libaio.so.1`).
    pub sign: &'static str,
    /// Packages that bring it; the first that the machine's Debian knows is taken.
    pub packages: &'static [&'static str],
}

/// Maven, which fetches the server and the readers written in Java.
pub const MAVEN: Tool = Tool { sign: "mvn", packages: &["maven"] };
/// The Java compiler and its companions.
pub const JDK: Tool = Tool { sign: "javac", packages: &["default-jdk-headless"] };
/// Python.
pub const PYTHON: Tool = Tool { sign: "python3", packages: &["python3"] };
/// MySQL's asynchronous files.
pub const LIBAIO: Tool = Tool { sign: "libaio.so.1", packages: &["libaio1", "libaio1t64"] };
/// MySQL's view of memory banks.
pub const LIBNUMA: Tool = Tool { sign: "libnuma.so.1", packages: &["libnuma1"] };

/// Sees to it that all `tools` are there: installs what is missing where that is allowed, otherwise says how to.
pub fn need(tools: &[Tool]) -> Result<()> {
    let missing: Vec<Tool> = tools.iter().copied().filter(|tool| !is_there(tool.sign)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let first: Vec<_> = missing.iter().filter_map(|tool| tool.packages.first().copied()).collect();
    let advice = format!("apt-get install --no-install-recommends {}", first.join(" "));
    ensure!(is_root() && is_there("apt-get"), "missing tools: run `{advice}` as root");
    install(&missing).with_context(|| format!("missing tools could not be installed: run `{advice}`"))?;
    for tool in missing {
        ensure!(is_there(tool.sign), "{} is still missing after the installation of {:?}", tool.sign, tool.packages);
    }
    Ok(())
}

fn install(missing: &[Tool]) -> Result<()> {
    let lock = File::create(folder()?.join("apt.lock"))?;
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

/// Whether a program is in `PATH`, or a shared library among those that the loader knows.
fn is_there(sign: &str) -> bool {
    if sign.contains(".so.") {
        let listed = Command::new("sh").args(["-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p"]).output();
        let Ok(listed) = listed else { return false };
        // Newer Debians mark the library's name for its wider time type.
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        return text.contains(&format!("{sign} ")) || text.contains(&format!("{sign}t64 "));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(sign).exists())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

/// A virtual environment of Python with exactly these packages (`name==version`), kept under `name`.
pub fn python_environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let interpreter = |folder: &Path| folder.join("bin/python");
    let path = entry(name, |folder| {
        need(&[PYTHON])?;
        if run(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_err() {
            let venv = Tool { sign: "python3-venv", packages: &["python3-venv"] };
            ensure!(is_root() && is_there("apt-get"), "python3 lacks venv: run `apt-get install python3-venv` as root");
            install(&[venv])?;
        }
        run(Command::new("python3").args(["-m", "venv", "--copies"]).arg(folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(interpreter(folder)).args(pip).args(packages))
    })?;
    Ok(interpreter(&path))
}

/// Jars fetched by Maven, with all that they need, kept under `name`. Each is `group:artifact:version`.
pub fn jars(name: &str, artifacts: &[&str]) -> Result<PathBuf> {
    entry(name, |folder| {
        need(&[MAVEN, JDK])?;
        let mut dependencies = String::new();
        for artifact in artifacts {
            let parts: Vec<&str> = artifact.split(':').collect();
            let [group, id, version] = parts[..] else { bail!("{artifact} is not group:artifact:version") };
            dependencies += &format!(
                "<dependency><groupId>{group}</groupId><artifactId>{id}</artifactId><version>{version}</version></dependency>"
            );
        }
        let pom = format!(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
             <groupId>cdchost</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>\
             <dependencies>{dependencies}</dependencies></project>"
        );
        let file = folder.join("pom.xml");
        fs::write(&file, pom)?;
        let output = format!("-DoutputDirectory={}", folder.display());
        let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
        run(Command::new("mvn").args(["-q", "-B", "-f"]).arg(&file).arg(goal).arg(output))
    })
}
