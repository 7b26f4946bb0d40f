//! Pipeline files and the exact words that are said of them: `cases/NAME.toml` beside `cases/NAME.err`.
//!
//! A new pair is picked up by being there. `UPDATE=1` writes the texts anew.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cdchost_config::{Input, Lookup, load};
use libtest_mimic::{Arguments, Failed, Trial};

/// The secret that no message may show.
const CANARY: &str = "s3cret-canary";

struct World;

impl Lookup for World {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "CDC_PASSWORD").then(|| CANARY.to_owned())
    }

    fn file(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/cases");
    let entries = std::fs::read_dir(&dir).expect("the cases lie beside this file");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut trials: Vec<Trial> =
        files.iter().filter(|file| has_extension(file, "toml")).map(|file| pair(file)).collect();
    let strays = files.into_iter().filter(|file| !has_extension(file, "toml"));
    trials.push(Trial::test("no text stands alone", || no_strays(strays)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found == extension)
}

fn pair(file: &Path) -> Trial {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = file.to_owned();
    Trial::test(name, move || check(&file))
}

fn check(file: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(file)?;
    let input = Input { file: "pipeline.toml", bytes: &bytes, base: Path::new("/etc/cdchost"), lookup: &World };
    let findings = match load(input) {
        Ok(loaded) => loaded.warnings,
        Err(refused) => refused.0,
    };
    let said: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    let kept = file.with_extension("err");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&kept, &said)?;
    }
    let expected = std::fs::read_to_string(&kept).map_err(|_| format!("{} is missing", kept.display()))?;
    if said.is_empty() {
        return Err("nothing is wrong with this file".into());
    }
    if said.contains(CANARY) {
        return Err("a secret is shown".into());
    }
    if said != expected {
        return Err(format!("expected:\n{expected}\nsaid:\n{said}").into());
    }
    Ok(())
}

fn no_strays(files: impl Iterator<Item = PathBuf>) -> Result<(), Failed> {
    let strays: Vec<_> = files.filter(|file| !file.with_extension("toml").exists()).collect();
    if strays.is_empty() { Ok(()) } else { Err(format!("without .toml: {strays:?}").into()) }
}
