//! The reference page and the JSON Schema of pipeline.toml, made from the table of keys.

pub(crate) mod keys;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use self::keys::{Absent, FILE, Key, Kind, Others, Section};
use crate::ByteSize;
use crate::units::show_duration;

/// The reference page, in Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# pipeline.toml\n\nGenerated from the table of keys in `host/config`; do not edit.\n\n\
         Every text may hold `${VARIABLE}` (an environment variable) and `${file:/path}` (a file's content, its final \
         line break dropped); `$${` stands for `${`. Relative paths begin at the folder of the file. Keys that are not \
         listed are refused, except the plugin's own in `[[transform]]`, `[[route]]` and `[[sink]]`.\n",
    );
    write_section(&mut page, &FILE);
    page
}

fn write_section(page: &mut String, section: &'static Section) {
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## `{}`\n\n{}\n\n| key | value | default | |\n|---|---|---|---|\n",
        section.name, section.about
    );
    for key in section.keys {
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", key.name, value_words(key), absent_words(key), key.about);
    }
    for key in section.keys {
        if let Some(inner) = inner(key.kind) {
            write_section(page, inner);
        }
    }
}

fn inner(kind: Kind) -> Option<&'static Section> {
    match kind {
        Kind::Table(section) | Kind::Tables(section) | Kind::Named(section) => Some(section),
        _ => None,
    }
}

fn value_words(key: &Key) -> String {
    match key.kind {
        Kind::Text | Kind::Name => "text".to_owned(),
        Kind::Secret => "text, never shown".to_owned(),
        Kind::Digest => "64 hexadecimal digits".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Count { min, max } => format!("{min} to {max}"),
        Kind::Duration { min, max } => format!("duration, {} to {}", show_duration(min), show_duration(max)),
        Kind::Size { min, max } => format!("size, {} to {}", ByteSize(min), ByteSize(max)),
        Kind::Choice { words, .. } => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Texts => "list of texts".to_owned(),
        Kind::Table(section) | Kind::Tables(section) | Kind::Named(section) => format!("`{}`", section.name),
    }
}

fn absent_words(key: &Key) -> String {
    match key.absent {
        Absent::Required => "**required**".to_owned(),
        Absent::Default(value) => format!("`{value}`"),
        Absent::Means(words) => words.to_owned(),
    }
}

/// The JSON Schema of the file, for editors.
pub fn schema() -> Value {
    let mut schema = section_schema(&FILE);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("pipeline.toml");
    schema
}

fn section_schema(section: &'static Section) -> Value {
    let mut properties = Map::new();
    for key in section.keys {
        let mut schema = kind_schema(key.kind);
        schema["description"] = json!(key.about);
        if let Absent::Default(value) = key.absent {
            schema["default"] = match key.kind {
                Kind::Flag | Kind::Count { .. } => serde_json::from_str(value).unwrap_or(Value::Null),
                _ => json!(value),
            };
        }
        properties.insert(key.name.to_owned(), schema);
    }
    let required: Vec<_> =
        section.keys.iter().filter(|key| key.absent == Absent::Required).map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": section.others == Others::Plugin,
    })
}

fn kind_schema(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Path => json!({"type": "string", "minLength": 1}),
        Kind::Secret => json!({"type": "string"}),
        Kind::Name => json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$|\\$\\{"}),
        Kind::Digest => json!({"type": "string", "pattern": "^[0-9A-Fa-f]{64}$|\\$\\{"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Duration { .. } => json!({"type": "string", "pattern": "^[0-9]+ *(ms|s|m|h|d)$|\\$\\{"}),
        Kind::Size { .. } => json!({"type": "string", "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|kB|MB|GB)?$|\\$\\{"}),
        Kind::Choice { words, .. } => json!({"enum": words}),
        Kind::Texts => json!({"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}),
        Kind::Table(section) => section_schema(section),
        Kind::Tables(section) => json!({"type": "array", "minItems": 1, "items": section_schema(section)}),
        Kind::Named(section) => json!({"type": "object", "additionalProperties": section_schema(section)}),
    }
}

/// The host's own keys of `[[sink]]`.
pub fn sink_keys() -> impl Iterator<Item = &'static str> {
    let sink = FILE.keys.iter().find(|key| key.name == "sink").and_then(|key| inner(key.kind));
    sink.into_iter().flat_map(|section| section.keys.iter().map(|key| key.name))
}

#[cfg(test)]
mod tests;
