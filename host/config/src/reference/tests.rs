use std::path::Path;

use super::*;

/// Compares a generated file with the kept one; `UPDATE=1` writes it anew.
#[track_caller]
fn kept(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, content).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == content, "{name} is out of date: UPDATE=1 cargo test -p cdchost-config");
}

#[test]
fn the_page_is_up_to_date() {
    kept("reference.md", &page());
}

#[test]
fn the_schema_is_up_to_date() {
    kept("pipeline.schema.json", &(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn names_of_keys_are_kebab_case_and_told_once() {
    fn walk(section: &'static Section) {
        let mut seen = std::collections::BTreeSet::new();
        let later = section.not_offered.iter().map(|(name, _)| *name);
        for name in section.keys.iter().map(|key| key.name).chain(later) {
            assert!(seen.insert(name), "{name} stands twice in {}", section.name);
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
        }
        for key in section.keys {
            assert!(key.about.ends_with('.'), "{} of {}", key.name, section.name);
            if let Some(section) = inner(key.kind) {
                walk(section);
            }
        }
    }
    walk(&FILE);
}

#[test]
fn the_keys_of_a_sink_are_the_hosts() {
    let keys: Vec<_> = sink_keys().collect();
    assert!(keys.contains(&"parallelism") && !keys.contains(&"warehouse"));
}
