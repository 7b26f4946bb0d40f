//! Which crate may use which.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use cdchost_tests::project::root;
use serde_json::Value;

/// One crate of `host/`: its name, the crates of the house that it may use, the outside crates that it owns.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    owns: &'static [&'static str],
}

const HOUSE: [Room; 16] = [
    Room { name: "model", may_use: &[], owns: ARROW },
    Room { name: "config", may_use: &["model"], owns: &["toml", "schemars"] },
    Room { name: "storage", may_use: &["model"], owns: &["object_store", "reqwest", "rustls"] },
    Room { name: "connector", may_use: &["model"], owns: &["async-trait", "futures-core"] },
    Room { name: "schema", may_use: &["model"], owns: ARROW },
    Room { name: "checkpoint", may_use: &["model", "storage"], owns: &[] },
    Room { name: "state", may_use: &["model", "connector", "storage"], owns: &["rocksdb", "async-trait"] },
    Room {
        name: "pipeline",
        may_use: &["model", "config", "connector", "schema", "checkpoint"],
        owns: &["fail", "async-trait", "arrow-array", "arrow-buffer", "arrow-schema", "arrow-select"],
    },
    Room {
        name: "mysql-wire",
        may_use: &[],
        owns: &["flate2", "num-bigint", "ring", "rustls", "tokio-rustls", "webpki-roots", "zstd"],
    },
    Room {
        name: "mysql-row",
        may_use: &["model", "mysql-wire"],
        owns: &["arrow-array", "arrow-buffer", "arrow-schema", "arrow-select", "flate2"],
    },
    Room { name: "mysql-ddl", may_use: &[], owns: &[] },
    Room { name: "mysql-position", may_use: &["model"], owns: &[] },
    Room {
        name: "mysql-look",
        may_use: &["model", "config", "connector", "mysql-wire", "mysql-row", "mysql-ddl", "mysql-position"],
        owns: &[],
    },
    Room {
        name: "mysql",
        may_use: &[
            "model",
            "config",
            "connector",
            "mysql-wire",
            "mysql-row",
            "mysql-ddl",
            "mysql-position",
            "mysql-look",
        ],
        owns: &[
            "mysql_async",
            "mysql_common",
            "sqlparser",
            "async-trait",
            "arrow-array",
            "arrow-buffer",
            "arrow-schema",
            "arrow-select",
        ],
    },
    Room {
        name: "plugin",
        may_use: &["model", "config", "connector", "storage"],
        owns: &[
            "wasmtime",
            "wasmtime-wasi",
            "wasmtime-wasi-http",
            "wit-parser",
            "jsonschema",
            "rustls",
            "tokio-rustls",
            "async-trait",
            "arrow-array",
            "arrow-buffer",
            "arrow-schema",
            "arrow-select",
        ],
    },
    Room {
        name: "cdchost",
        may_use: &[
            "model",
            "config",
            "storage",
            "connector",
            "schema",
            "checkpoint",
            "state",
            "pipeline",
            "mysql",
            "plugin",
        ],
        owns: &[
            "clap",
            "anyhow",
            "async-trait",
            "axum",
            "tracing-subscriber",
            "indicatif",
            "libmimalloc-sys",
            "miette",
            "mimalloc",
            "rustix",
        ],
    },
];

const ARROW: &[&str] = &["arrow-array", "arrow-buffer", "arrow-schema", "arrow-select"];

/// Outside crates that every room may use: small, or a word of the language that all speak.
const FREE: [&str; 12] = [
    "tokio",
    "serde",
    "serde_json",
    "thiserror",
    "tracing",
    "bytes",
    "prometheus-client",
    "futures-util",
    "regex",
    "crc32fast",
    "sha2",
    "rand",
];

/// Rooms that know no runtime and no measurements.
const PURE: [&str; 3] = ["model", "config", "schema"];

/// All packages of the workspace, by name, each with its dependencies (name, whether it is for tests only).
fn packages() -> BTreeMap<String, Vec<(String, bool)>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]).current_dir(root());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter().map(|d| (text(&d["name"]), d["kind"] == "dev")).collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (text(&package["name"]), dependencies(package))).collect()
}

/// The package's name without the house's prefix; none for an outside crate.
fn inside(name: &str) -> Option<&str> {
    if name == "cdchost" { Some(name) } else { name.strip_prefix("cdchost-") }
}

fn is_room(name: &str) -> bool {
    HOUSE.iter().any(|room| room.name == name)
}

/// All rooms that the arrows lead to, one after the other.
fn below(room: &Room) -> BTreeSet<&'static str> {
    let direct = HOUSE.iter().filter(|other| room.may_use.contains(&other.name));
    direct.flat_map(|other| below(other).into_iter().chain([other.name])).collect()
}

#[test]
fn arrows_between_rooms_are_the_allowed_ones() {
    let packages = packages();
    let mut wrong = Vec::new();
    for (name, dependencies) in &packages {
        let Some(room) = inside(name).and_then(|name| HOUSE.iter().find(|room| room.name == name)) else { continue };
        for (used, for_tests) in dependencies.iter().filter_map(|(used, tests)| Some((inside(used)?, *tests))) {
            // A test may make by itself what its room is handed by another.
            let allowed = if for_tests { below(room).contains(used) } else { room.may_use.contains(&used) };
            if !allowed {
                wrong.push(format!("{} -> {used} is not an allowed arrow", room.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn outside_crates_have_owners() {
    let mut wrong = Vec::new();
    for (name, dependencies) in packages() {
        let Some(room) = inside(&name).and_then(|name| HOUSE.iter().find(|room| room.name == name)) else { continue };
        for (used, for_tests) in dependencies {
            let runtime = used == "tokio" || used == "prometheus-client";
            let free = FREE.contains(&used.as_str()) && !(runtime && PURE.contains(&room.name));
            if inside(&used).is_none() && !for_tests && !free && !room.owns.contains(&used.as_str()) {
                wrong.push(format!("{} names {used}, which is not its own", room.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_folder_of_the_house_is_a_known_room() {
    for entry in std::fs::read_dir(root().join("host")).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Cargo.toml").exists() {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(is_room(name), "host/{name} is not in the table of rooms");
        }
    }
}

#[test]
fn components_know_only_the_sdk() {
    let packages = packages();
    for entry in std::fs::read_dir(root().join("plugins")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let package = packages.get(&format!("cdchost-plugin-{name}"));
        let package = package.unwrap_or_else(|| panic!("plugins/{name} is not a member of the workspace"));
        let strangers: Vec<_> = package.iter().filter_map(|(d, _)| inside(d)).filter(|d| *d != "sdk").collect();
        assert!(strangers.is_empty(), "plugins/{name} uses {strangers:?}");
    }
}

#[test]
fn the_sdk_knows_nothing_of_the_house() {
    let packages = packages();
    let used: Vec<_> = packages["cdchost-sdk"].iter().filter_map(|(d, _)| inside(d)).filter(|d| is_room(d)).collect();
    assert!(used.is_empty(), "sdk/rust uses {used:?}");
}
