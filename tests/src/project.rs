//! Where things of this repository lie, and the program under test.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};

/// The repository's top folder, found when asked for: clones share compiled files, so a path that the compiler wrote
/// down may be another clone's.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let starts = [package, std::env::current_exe().ok(), std::env::current_dir().ok()];
        let is_top = |folder: &&Path| folder.join("wit").is_dir() && folder.join("host/ARCHITECTURE.md").is_file();
        let found = starts.iter().flatten().find_map(|start| start.ancestors().find(is_top));
        found.expect("cargo, the program's place or the current folder lead into the repository").to_owned()
    })
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
    let status = cdchost_tools::cargo()
        // As `cargo xtask` does, so that nothing is compiled twice.
        .args(["build", "--quiet", "--workspace", "--features", "cdchost/failpoints", "--bin", "cdchost"])
        .current_dir(root())
        .status()
        .context("start cargo")?;
    ensure!(status.success(), "the program does not build");
    Ok(root().join("target/debug/cdchost"))
}
