//! The sentences of findings.

use toml::de::DeValue;

use crate::finding::nearest;
use crate::reference::keys::{Absent, FILE, Kind, Section};

/// What a name may be.
pub(super) const NAME: &str = "write at most 63 letters, digits, `-` and `_`, beginning with a letter or a digit";

/// A user's word as it may stand in a message: short and without control characters.
pub(super) fn shown(word: &str) -> String {
    let short: String = word.chars().take(64).collect();
    short.escape_debug().to_string()
}

/// A section as it stands in the file: one of the user's naming with its name. `path` leads to it or into it.
pub(super) fn title(section: &Section, path: &str) -> String {
    match path.split('.').nth(1).filter(|name| !name.is_empty()) {
        Some(name) => section.name.replace("NAME", &shown(name)),
        None => section.name.to_owned(),
    }
}

/// A sentence of the reference as the end of another one.
pub(super) fn plain(about: &str) -> String {
    let about = about.trim_end_matches('.');
    let mut chars = about.chars();
    match chars.next() {
        Some(first) if !about.starts_with("SHA") => first.to_lowercase().chain(chars).collect(),
        _ => about.to_owned(),
    }
}

/// What a key wants.
pub(super) fn wants(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::Secret => "a text".to_owned(),
        Kind::Name => "a name: at most 63 letters, digits, `-` and `_`, beginning with a letter or a digit".to_owned(),
        Kind::Digest => "64 hexadecimal digits".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Duration { .. } => "a duration with a unit (ms, s, m, h, d), such as \"10s\"".to_owned(),
        Kind::Size { .. } => "a size with a unit (KiB, MiB, GiB, kB, MB, GB), such as \"64MiB\"".to_owned(),
        Kind::Choice { words: [word], .. } => format!("\"{word}\""),
        Kind::Choice { words, .. } => {
            let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("one of {}", words.join(", "))
        }
        Kind::Texts => "a list of texts, such as [\"a\", \"b\"]".to_owned(),
        Kind::Table(section) | Kind::Tables(section) | Kind::Named(section) => {
            format!("a table: write {}", section.name)
        }
    }
}

/// What stands in the file instead.
pub(super) fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// What to do about a key that the section does not have.
pub(super) fn for_unknown(section: &'static Section, word: &str) -> String {
    let known = section.keys.iter().map(|key| key.name).chain(section.not_offered.iter().map(|(name, _)| *name));
    if let Some(near) = nearest(word, known) {
        return format!("did you mean `{near}`?");
    }
    let mut homes = Vec::new();
    homes_of(&FILE, word, &mut homes);
    match homes.as_slice() {
        [] => {
            let known: Vec<_> = section.keys.iter().map(|key| format!("`{}`", key.name)).collect();
            format!("take it out; the keys here are {}", known.join(", "))
        }
        homes => format!("it belongs in {}", homes.join(" or ")),
    }
}

fn homes_of(section: &'static Section, word: &str, homes: &mut Vec<&'static str>) {
    if section.keys.iter().any(|key| key.name == word) {
        homes.push(section.name);
    }
    for key in section.keys {
        if let Kind::Table(inner) | Kind::Tables(inner) | Kind::Named(inner) = key.kind {
            homes_of(inner, word, homes);
        }
    }
}

/// What to do about a section that is not there.
pub(super) fn for_missing_section(section: &'static Section) -> String {
    let required = section.keys.iter().filter(|key| key.absent == Absent::Required);
    let names: Vec<_> = required.map(|key| format!("`{}`", key.name)).collect();
    format!("add it with {}", names.join(", "))
}
