//! Builds the first-party components.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, root};

const TARGET: &str = "wasm32-wasip2";

/// Builds every folder of `plugins/` for release and puts each component at `plugins/NAME/NAME.wasm`.
pub(crate) fn build() -> Result<()> {
    add_target()?;
    let names = names()?;
    let packages: Vec<String> = names.iter().map(|name| format!("cdchost-plugin-{name}")).collect();
    let mut args = vec!["build", "--quiet", "--release", "--target", TARGET, "--lib"];
    for package in &packages {
        args.extend(["--package", package.as_str()]);
    }
    cargo::run(&args)?;
    for name in &names {
        let built = root()
            .join("target")
            .join(TARGET)
            .join("release")
            .join(format!("cdchost_plugin_{}.wasm", name.replace('-', "_")));
        let bytes = std::fs::read(&built).with_context(|| format!("read {}", built.display()))?;
        put(&component(name), &bytes)?;
    }
    Ok(())
}

/// Names of all folders in `plugins/` that hold a crate, sorted.
fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("plugins"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().into_string().ok().context("a plugin's folder has a name in UTF-8")?);
        }
    }
    names.sort();
    Ok(names)
}

fn component(name: &str) -> PathBuf {
    root().join("plugins").join(name).join(format!("{name}.wasm"))
}

/// Replaces a file in one step, and only if it changes, so that a running pipeline never maps half of one.
fn put(path: &PathBuf, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let new = path.with_extension("wasm.new");
    std::fs::write(&new, bytes).with_context(|| format!("write {}", new.display()))?;
    std::fs::rename(&new, path).with_context(|| format!("write {}", path.display()))
}

/// Adds the compilation target where it is missing.
fn add_target() -> Result<()> {
    let sysroot =
        Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()).output().context("start rustc")?;
    let sysroot = String::from_utf8(sysroot.stdout).context("the path of the toolchain is not UTF-8")?;
    if PathBuf::from(sysroot.trim()).join("lib/rustlib").join(TARGET).exists() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).current_dir(root()).status();
    ensure!(
        added.is_ok_and(|status| status.success()),
        "the target {TARGET} is missing and could not be added: run `rustup target add {TARGET}`"
    );
    Ok(())
}
