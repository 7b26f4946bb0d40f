//! One command in a room of its own, and the text that is kept of it.

use std::any::Any;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cdchost_tests::{project, watchdog};
use libtest_mimic::Failed;

/// The secret that nothing may show.
const CANARY: &str = "s3cret-canary";

/// A file that is right, for a server that nobody is: port 1 of this machine.
const PIPELINE: &str = r#"[pipeline]
name = "demo"

[source]
type = "mysql"
hosts = ["127.0.0.1:1"]
username = "cdc"
password = "${CDC_PASSWORD}"
tables = ["shop.*"]
startup.mode = "initial"

[[sink]]
id = "target"
plugin = "blackhole"

[checkpoint]
interval = "1s"
store = "file://DIR/state"
"#;

type Prepare = Box<dyn Fn(&mut Room) -> anyhow::Result<()> + Send>;

/// A command, and the room that it is run in.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    arguments: Vec<&'static str>,
    file: String,
    prepare: Prepare,
}

/// The folder that a command is run in.
pub(crate) struct Room {
    folder: watchdog::Folder,
    plugins: PathBuf,
    kept: Vec<Box<dyn Any>>,
}

impl Case {
    pub(crate) fn new(name: &'static str, arguments: &[&'static str]) -> Self {
        Self { name, arguments: arguments.to_vec(), file: PIPELINE.to_owned(), prepare: Box::new(|_| Ok(())) }
    }

    /// Changes the pipeline file.
    pub(crate) fn edit(mut self, from: &str, to: &str) -> Self {
        assert!(self.file.contains(from), "{} is not in the file", from);
        self.file = self.file.replacen(from, to, 1);
        self
    }

    /// What is there before the command.
    pub(crate) fn prepare(mut self, prepare: impl Fn(&mut Room) -> anyhow::Result<()> + Send + 'static) -> Self {
        self.prepare = Box::new(prepare);
        self
    }

    /// Runs it and compares what it said with what is kept.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        let mut room = Room {
            folder: watchdog::Folder::new("cli").map_err(fail)?,
            plugins: project::plugins().map_err(fail)?,
            kept: Vec::new(),
        };
        let dir = room.folder.path().display().to_string();
        fs::write(room.path("pipeline.toml"), self.file.replace("DIR", &dir))?;
        (self.prepare)(&mut room).map_err(fail)?;
        let before = listing(room.folder.path());
        let said = self.run(&room)?;
        if said.contains(CANARY) {
            return Err("a secret is shown".into());
        }
        if listing(room.folder.path()) != before {
            return Err(format!("something was written: {:?}", listing(room.folder.path())).into());
        }
        let kept = kept(self.name);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&kept, &said)?;
        }
        let expected = fs::read_to_string(&kept).map_err(|_| format!("{} is missing", kept.display()))?;
        if said == expected { Ok(()) } else { Err(format!("expected:\n{expected}\nsaid:\n{said}").into()) }
    }

    fn run(&self, room: &Room) -> Result<String, Failed> {
        let plugins = room.plugins.display().to_string();
        let arguments = self.arguments.iter().map(|argument| argument.replace("PLUGINS", &plugins));
        let output = Command::new(project::program().map_err(fail)?)
            .args(arguments)
            .current_dir(room.folder.path())
            .env_clear()
            .env("CDC_PASSWORD", CANARY)
            .env("XDG_CACHE_HOME", cache())
            .stdin(Stdio::null())
            .output()?;
        let code = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let shown = |bytes: &[u8]| self.stable(room, &String::from_utf8_lossy(bytes));
        let mut said = format!("$ cdchost {}\nexit code {code}\n", self.arguments.join(" "));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                said.push_str(&format!("--- {name}\n{}", shown(bytes)));
            }
        }
        Ok(said)
    }

    /// What differs from run to run and from machine to machine, by name.
    fn stable(&self, room: &Room, text: &str) -> String {
        let text = text.replace(&room.plugins.display().to_string(), "PLUGINS");
        let text = text.replace(&room.folder.path().display().to_string(), "DIR");
        let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").expect("the pattern is right");
        let text = time.replace_all(&text, "TIME");
        let digest = regex::Regex::new(r"[0-9a-f]{64}|\([0-9a-f]{12}\)").expect("the pattern is right");
        // One of zeros stands in a case's own file.
        let named = |found: &regex::Captures<'_>| {
            if found[0].contains("000000000000") { found[0].to_owned() } else { "DIGEST".to_owned() }
        };
        let text = digest.replace_all(&text, named);
        let offset = regex::Regex::new("offset 0x[0-9a-f]+").expect("the pattern is right");
        let text = offset.replace_all(&text, "offset OFFSET");
        let size = regex::Regex::new(r#"(size +|"bytes": )[0-9]+"#).expect("the pattern is right");
        size.replace_all(&text, "${1}BYTES").into_owned()
    }
}

impl Room {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn plugins(&self) -> &Path {
        &self.plugins
    }

    /// Holds something until the command has ended.
    pub(crate) fn keep(&mut self, thing: impl Any) {
        self.kept.push(Box::new(thing));
    }
}

/// Compiled plugins of the cases, kept from run to run.
fn cache() -> PathBuf {
    project::root().join("target/cli-cache")
}

fn kept(name: &str) -> PathBuf {
    project::root().join("tests/cli/cases").join(name).with_extension("txt")
}

/// Every path below a folder.
fn listing(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(listing(&entry.path()));
        }
        found.insert(entry.path());
    }
    found
}

/// Fails on texts that no case keeps.
pub(crate) fn no_strays(names: &[&str]) -> Result<(), Failed> {
    let files = fs::read_dir(project::root().join("tests/cli/cases"))?.flatten();
    let stems = files.filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned()));
    let strays: Vec<_> = stems.filter(|stem| !names.contains(&stem.as_str())).collect();
    if strays.is_empty() { Ok(()) } else { Err(format!("no case is called {strays:?}").into()) }
}

fn fail(error: anyhow::Error) -> Failed {
    format!("{error:#}").into()
}
