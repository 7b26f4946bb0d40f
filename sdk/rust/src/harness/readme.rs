//! The table of options in a plugin's README, generated from its manifest.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::{Manifest, Sink};

const BEGIN: &str = "<!-- options, generated -->\n";
const END: &str = "<!-- end of options -->";

/// The options as a Markdown table: name, type, default, meaning.
pub fn option_table(manifest: &Manifest) -> String {
    let schema: Value = serde_json::from_str(&manifest.config_schema).expect("a manifest holds a JSON Schema");
    let mut table = String::from("| option | type | default | meaning |\n|---|---|---|---|\n");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, option) in schema["properties"].as_object().into_iter().flatten() {
        let default = match &option["default"] {
            Value::Null if required.contains(&Value::from(name.as_str())) => "required".into(),
            Value::Null => "none".into(),
            value => format!("`{value}`"),
        };
        let secret = if manifest.secrets.contains(name) { "Secret. " } else { "" };
        let meaning = option["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let ty = type_words(&schema, option);
        writeln!(table, "| `{name}` | {ty} | {default} | {secret}{meaning} |")
            .expect("writing to a string cannot fail");
    }
    table
}

/// Fails unless the README of a plugin holds the table of its options between the two marker lines. With
/// `CDCHOST_GENERATE` set in the environment the README is written anew instead.
pub fn check_readme<S: Sink>(plugin_folder: &str) {
    check_readme_of(&S::manifest(), plugin_folder);
}

/// As [`check_readme`], for a plugin of any kind.
pub fn check_readme_of(manifest: &Manifest, plugin_folder: &str) {
    let path = Path::new(plugin_folder).join("README.md");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let places = text.find(BEGIN).zip(text.find(END)).filter(|(begin, end)| begin < end);
    let (begin, end) = places.unwrap_or_else(|| panic!("{} lacks the lines {BEGIN:?} and {END:?}", path.display()));
    let generated = format!("{}{BEGIN}{}{}", &text[..begin], option_table(manifest), &text[end..]);
    if std::env::var_os("CDCHOST_GENERATE").is_some() {
        std::fs::write(&path, generated).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    assert!(text == generated, "{} has other options than the plugin: generate it anew", path.display());
}

fn type_words(schema: &Value, option: &Value) -> String {
    if let Some(name) = option["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return type_words(schema, &schema["$defs"][name]);
    }
    if let Some(one_of) = option["oneOf"].as_array().or(option["anyOf"].as_array()) {
        let words = one_of.iter().map(|option| type_words(schema, option)).filter(|words| words != "null");
        return words.collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = option.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = option["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    match &option["type"] {
        Value::String(name) if name == "array" => format!("list of {}", type_words(schema, &option["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}
