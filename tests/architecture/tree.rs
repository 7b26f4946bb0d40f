//! What may lie where.

use std::collections::BTreeSet;

use cdchost_tests::project::root;

use crate::sources;

/// The only names at the top, apart from dot paths.
const TOP: [&str; 9] = ["Cargo.toml", "Cargo.lock", "host", "wit", "plugins", "sdk", "examples", "tests", "README.md"];

/// Names that say nothing about what lies inside.
const EMPTY_WORDS: [&str; 8] = ["util", "utils", "common", "types", "helper", "helpers", "manager", "misc"];

#[test]
fn the_top_has_the_agreed_names() {
    let files = sources::all();
    let found: BTreeSet<&str> = files.iter().filter_map(|f| f.path.split('/').next()).collect();
    let strangers: Vec<_> = found.iter().filter(|name| !name.starts_with('.') && !TOP.contains(name)).collect();
    assert!(strangers.is_empty(), "not at the top: {strangers:?}");
}

#[test]
fn modules_have_names_that_say_something() {
    for file in sources::rust() {
        let empty = file.path.trim_end_matches(".rs").split('/').find(|part| EMPTY_WORDS.contains(part));
        assert!(empty.is_none(), "{}: `{}` says nothing", file.path, empty.unwrap_or_default());
    }
}

#[test]
fn every_file_opens_with_its_duty() {
    // The tests of one file belong to that file, whose sentence is theirs.
    let own = sources::rust().into_iter().filter(|f| !f.path.ends_with("/tests.rs"));
    let silent: Vec<_> = own.filter(|f| !f.text.starts_with("//! ")).map(|f| f.path).collect();
    assert!(silent.is_empty(), "without a first sentence: {silent:#?}");
}

#[test]
fn every_suite_is_registered() {
    let manifest = std::fs::read_to_string(root().join("tests/Cargo.toml")).unwrap();
    for file in sources::rust() {
        let parts: Vec<_> = file.path.split('/').collect();
        if let ["tests", suite, "main.rs"] = parts[..] {
            let entry = format!("path = \"{suite}/main.rs\"");
            assert!(manifest.contains(&entry), "tests/{suite} is not in tests/Cargo.toml");
        }
    }
}

#[test]
fn every_component_explains_itself() {
    for entry in std::fs::read_dir(root().join("plugins")).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.join("README.md").exists(), "{} has no README.md", path.display());
    }
}
