//! Builds the first-party components.

use std::path::{Path, PathBuf};
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
    let home = cargo_home()?;
    let flags = remapped(&home);
    let mut args = vec!["build", "--quiet", "--profile", PROFILE, "--target", TARGET, "--lib", "--config", &flags];
    for package in &packages {
        args.extend(["--package", package.as_str()]);
    }
    cargo::run(&args)?;
    let files = names.iter().flat_map(|name| [built(name), component(name)]);
    let files: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    cargo::build(&["seal"])?;
    ensure!(cargo::start("seal", &files)?, "the components could not be sealed");
    names.iter().try_for_each(|name| names_no_place(&component(name), &[&home, root()]))
}

/// Where cargo keeps the sources of dependencies.
fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let found = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    found.filter(|path| path.is_absolute()).context("neither CARGO_HOME nor HOME names a folder")
}

/// Compiled code names the files that it was made of, wherever they lay: with one name for cargo's folder, the same source
/// gives the same component on every machine. The workspace's own files are named as they lie in it.
fn remapped(cargo_home: &Path) -> String {
    let flag = format!("--remap-path-prefix={}=/cargo", cargo_home.display());
    format!("target.{TARGET}.rustflags=[{flag:?}]")
}

/// Fails if a component holds the name of a folder of this machine: it would be another one elsewhere.
fn names_no_place(component: &Path, places: &[&Path]) -> Result<()> {
    let bytes = std::fs::read(component).with_context(|| format!("read {}", component.display()))?;
    for place in places {
        let name = place.as_os_str().as_encoded_bytes();
        let found = name.len() > 1 && bytes.windows(name.len()).any(|window| window == name);
        ensure!(
            !found,
            "{} holds the path {}, so that its digest is of this machine",
            component.display(),
            place.display()
        );
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_that_names_a_folder_of_this_machine_is_found() {
        let file = std::env::temp_dir().join(format!("cdchost-xtask-{}.wasm", std::process::id()));
        std::fs::write(&file, b"\0asm /folk/one/.cargo/registry/x.rs /cargo/registry/y.rs").unwrap();
        let said = |places: &[&Path]| names_no_place(&file, places).map_err(|error| error.to_string());
        let found = said(&[Path::new("/elsewhere"), Path::new("/folk/one/.cargo")]).unwrap_err();
        let fine = said(&[Path::new("/elsewhere"), Path::new("/")]);
        std::fs::remove_file(&file).unwrap();
        assert!(found.contains("holds the path /folk/one/.cargo"), "{found}");
        fine.unwrap();
    }

    #[test]
    fn the_flag_is_one_that_cargo_reads() {
        let expected = "target.wasm32-wasip2.rustflags=[\"--remap-path-prefix=/h/.cargo=/cargo\"]";
        assert_eq!(remapped(Path::new("/h/.cargo")), expected);
    }
}
