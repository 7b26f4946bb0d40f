//! Things fetched once and kept for later runs, in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use cdchost_tools::{JDK, MAVEN, PYTHON, VENV, need, run};

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

/// A virtual environment of Python with exactly these packages (`name==version`), kept under `name`.
pub fn python_environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let interpreter = |folder: &Path| folder.join("bin/python");
    let path = entry(name, |folder| {
        need(&[PYTHON, VENV])?;
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
