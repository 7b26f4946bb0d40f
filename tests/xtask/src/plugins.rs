//! Builds the first-party components.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, root};

const TARGET: &str = "wasm32-wasip2";

/// The profile of the workspace that components are built with.
const PROFILE: &str = "plugin";

/// Builds every folder of `plugins/` and puts each component, with its manifest in it, at `plugins/NAME/NAME.wasm`.
pub(crate) fn build() -> Result<()> {
    add_target()?;
    let names = names()?;
    let packages: Vec<String> = names.iter().map(|name| format!("cdchost-plugin-{name}")).collect();
    println!("building the components (the first build of all compiles for ten minutes or more, and takes 3 GB)");
    let mut args = vec!["build", "--quiet", "--profile", PROFILE, "--target", TARGET, "--lib"];
    for package in &packages {
        args.extend(["--package", package.as_str()]);
    }
    cargo::run(&args)?;
    let files = names.iter().flat_map(|name| [built(name), component(name)]);
    let files: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    cargo::build(&["seal"])?;
    ensure!(cargo::start("seal", &files)?, "the components could not be sealed");
    Ok(())
}

/// Where cargo puts a component.
fn built(name: &str) -> PathBuf {
    let file = format!("cdchost_plugin_{}.wasm", name.replace('-', "_"));
    root().join("target").join(TARGET).join(PROFILE).join(file)
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
