//! Whole commands: what is said and which code comes back, kept as `cases/NAME.txt`.
//!
//! `UPDATE=1` writes the texts anew. No case needs a server.

mod case;

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::case::{Case, Room};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    let mut trials: Vec<Trial> = cases().into_iter().map(|case| Trial::test(case.name, move || case.check())).collect();
    trials.push(Trial::test("no text stands alone", move || case::no_strays(&names)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A run of `pipeline.toml` with the plugins of this repository.
const RUN: &[&str] = &["run", "--plugins", "PLUGINS", "pipeline.toml"];

fn cases() -> Vec<Case> {
    let mut cases = command_line();
    cases.extend(pipeline_file());
    cases.extend(plugins());
    cases.extend(state_folder());
    cases.extend(steps());
    cases.extend(checks());
    cases.extend(inspections());
    cases
}

fn command_line() -> Vec<Case> {
    vec![
        Case::new("help", &["--help"]),
        Case::new("help-of-run", &["run", "--help"]),
        Case::new("help-of-check", &["check", "--help"]),
        Case::new("version", &["--version"]),
        Case::new("no-command", &[]),
        Case::new("unknown-command", &["rnu"]),
        Case::new("no-plugins", &["run", "pipeline.toml"]),
        Case::new("unknown-until", &["run", "--plugins", "PLUGINS", "--until", "tomorrow", "pipeline.toml"]),
    ]
}

fn pipeline_file() -> Vec<Case> {
    vec![
        Case::new("file-missing", &["run", "--plugins", "PLUGINS", "none.toml"]),
        Case::new("file-wrong", RUN).edit("interval = \"1s\"", "intervall = \"1s\"").edit("[\"shop.*\"]", "[]"),
        Case::new("file-wrong-as-json", &["run", "--plugins", "PLUGINS", "--log-format", "json", "pipeline.toml"])
            .edit("interval = \"1s\"", "intervall = \"1s\""),
        Case::new("variable-unset", RUN).edit("${CDC_PASSWORD}", "${CDC_PASSWROD}"),
        Case::new("until-beyond-the-mode", &["run", "--plugins", "PLUGINS", "--until", "caught-up", "pipeline.toml"])
            .edit("\"initial\"", "\"snapshot\""),
        Case::new("server-unreachable", RUN),
    ]
}

fn plugins() -> Vec<Case> {
    let file = |name: &'static str, content: &'static [u8]| {
        move |room: &mut Room| -> anyhow::Result<()> {
            fs::create_dir_all(room.path("own"))?;
            Ok(fs::write(room.path("own").join(name), content)?)
        }
    };
    const OWN: &[&str] = &["run", "--plugins", "own", "pipeline.toml"];
    vec![
        Case::new("plugin-unknown", RUN).edit("\"blackhole\"", "\"blackhole2\""),
        Case::new("plugin-folder-missing", &["run", "--plugins", "none", "pipeline.toml"]),
        Case::new("plugin-is-text", OWN).prepare(file("blackhole.wasm", b"not a component")),
        Case::new("plugin-is-a-core-module", OWN).prepare(file("blackhole.wasm", b"\0asm\x01\0\0\0")),
        Case::new("plugin-is-empty", OWN).prepare(file("blackhole.wasm", b"")),
        Case::new("plugin-is-truncated", OWN).prepare(|room| {
            let whole = fs::read(room.plugins().join("blackhole/blackhole.wasm"))?;
            fs::create_dir_all(room.path("own"))?;
            Ok(fs::write(room.path("own/blackhole.wasm"), &whole[..whole.len() / 2])?)
        }),
        Case::new("plugin-has-another-digest", RUN)
            .edit("plugin =", &format!("sha256 = \"{}\"\nplugin =", "0".repeat(64))),
        Case::new("option-unknown", RUN).edit("plugin =", "colour = \"red\"\nplugin ="),
        Case::new("stdout-not-granted", RUN).edit("\"blackhole\"", "\"print\""),
        Case::new("store-not-granted", RUN).edit("\"blackhole\"", "\"paimon\"\nwarehouse = \"lake/wh\""),
        Case::new("sinks-in-one-place", RUN).edit(
            "plugin = \"blackhole\"",
            "plugin = \"file\"\nallow.store = [\"lake\"]\npath = \"lake/attic/out\"\n\n\
             [[sink]]\nid = \"b\"\nplugin = \"file\"\nallow.store = [\"attic\"]\npath = \"attic/out/\"\n\n\
             [storage.lake]\nurl = \"file:///srv/lake\"\n\n[storage.attic]\nurl = \"file:///srv/lake/attic\"\n",
        ),
        Case::new("guarantee-not-held", RUN).edit("\"blackhole\"", "\"print\"\nallow.stdout = true"),
        Case::new("sink-key-misspelt", RUN).edit("plugin =", "paralelism = 2\nplugin ="),
        Case::new("everything-at-once", RUN)
            .edit("\"blackhole\"", "\"blackhole2\"")
            .prepare(|room| Ok(fs::write(room.path("state"), "")?)),
    ]
}

fn state_folder() -> Vec<Case> {
    vec![
        Case::new("state-is-a-file", RUN).prepare(|room| Ok(fs::write(room.path("state"), "")?)),
        Case::new("state-is-held", RUN).prepare(|room| {
            fs::create_dir(room.path("state"))?;
            fs::write(room.path("state/lock"), "4242\n")?;
            let lock = File::open(room.path("state/lock"))?;
            lock.lock()?;
            room.keep(lock);
            Ok(())
        }),
        Case::new("socket-is-answered", RUN).prepare(|room| {
            fs::create_dir(room.path("state"))?;
            let listener = UnixListener::bind(room.path("state/control.sock"))?;
            room.keep(listener);
            Ok(())
        }),
    ]
}

/// Transforms and routes before the sink.
fn steps() -> Vec<Case> {
    let with = |name: &'static str, steps: &str| Case::new(name, RUN).edit("[[sink]]", &format!("{steps}\n[[sink]]"));
    vec![
        with("transform-unknown", "[[transform]]\ntable = \"shop.orders\"\nplugin = \"maks\"\n"),
        with("transform-is-a-sink", "[[transform]]\ntable = \"shop.orders\"\nplugin = \"blackhole\"\n"),
        with(
            "transform-option-unknown",
            "[[transform]]\ntable = \"shop.orders\"\nplugin = \"mask\"\nhsah = [\"id\"]\n",
        ),
        with("route-without-to", "[[route]]\ntable = \"shop.orders\"\n"),
        Case::new("sink-is-a-route", RUN).edit("\"blackhole\"", "\"regex\""),
    ]
}

fn checks() -> Vec<Case> {
    const CHECK: &[&str] = &["check", "--plugins", "PLUGINS", "pipeline.toml"];
    const JSON: &[&str] = &["check", "--json", "--plugins", "PLUGINS", "pipeline.toml"];
    const SHOW: &[&str] = &["check", "--show-config", "--plugins", "PLUGINS", "pipeline.toml"];
    vec![
        Case::new("check-finds-everything-at-once", CHECK)
            .edit("\"blackhole\"", "\"print\"")
            .prepare(|room| Ok(fs::write(room.path("state"), "")?)),
        Case::new("check-as-json", JSON),
        Case::new("check-of-a-wrong-file", CHECK).edit("interval = \"1s\"", "intervall = \"1s\""),
        Case::new("check-shows-the-config", SHOW),
    ]
}

fn inspections() -> Vec<Case> {
    const FILE: &[&str] = &["plugin", "inspect", "own.wasm"];
    vec![
        Case::new("inspect", &["plugin", "inspect", "PLUGINS/file/file.wasm"]),
        Case::new("inspect-as-json", &["plugin", "inspect", "--json", "PLUGINS/print/print.wasm"]),
        Case::new("inspect-of-a-folder", &["plugin", "inspect", "PLUGINS/file"]),
        Case::new("inspect-of-a-folder-without", &["plugin", "inspect", "own"])
            .prepare(|room| Ok(fs::create_dir(room.path("own"))?)),
        Case::new("inspect-of-a-text", FILE).prepare(|room| Ok(fs::write(room.path("own.wasm"), "hello")?)),
        Case::new("inspect-of-nothing", FILE),
    ]
}
