//! Where things of this repository lie, and the program under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};

/// The repository's top folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in a folder of the repository")
}

/// The folder that `--plugins` is given: each component at `NAME/NAME.wasm`.
///
/// Refuses with the command that builds them if one is missing.
pub fn plugins() -> Result<PathBuf> {
    let dir = root().join("plugins");
    for entry in std::fs::read_dir(&dir)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a plugin's folder has a name in UTF-8")?;
        if entry.path().join("Cargo.toml").exists() {
            let file = entry.path().join(format!("{name}.wasm"));
            ensure!(file.exists(), "{} is not built: run `cargo xtask plugins`", file.display());
        }
    }
    Ok(dir)
}

/// The `cdchost` program: the one that the environment variable `CDCHOST_BIN` names, else one built on the first call.
pub fn program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(|| find_program().map_err(|e| format!("{e:#}"))) {
        Ok(path) => Ok(path),
        Err(error) => bail!("{error}"),
    }
}

fn find_program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("CDCHOST_BIN") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "cdchost", "--features=failpoints"])
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .context("start cargo")?;
    ensure!(status.success(), "the program does not build");
    Ok(root().join("target/debug/cdchost"))
}
