//! `cdchost plugin`: tells about plugins.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cdchost_connector::SystemClock;
use cdchost_plugin::{EngineOptions, Inspection, Manifest, PluginEngine, PluginError};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::cli::{InspectArguments, LogFormat, PluginCommand};
use crate::process::Process;
use crate::server::hex;
use crate::telemetry::Screen;

/// Runs the command.
pub(crate) fn run(command: &PluginCommand, process: Process) -> ExitCode {
    let screen = Screen::start(LogFormat::Text);
    match command {
        PluginCommand::Inspect(arguments) => process.run(&screen, inspect(arguments)),
    }
}

async fn inspect(arguments: &InspectArguments) -> u8 {
    let found = found(&arguments.file).await;
    let file = arguments.file.display().to_string();
    match &found {
        Ok(found) if arguments.json => print_json(&as_json(&file, found)),
        Ok(found) => print(&as_text(&file, found)),
        Err(error) if arguments.json => print_json(&json!({ "file": file, "findings": error.findings() })),
        Err(error) => print(&refusal(error)),
    }
    match found {
        Ok(found) if found.findings.is_empty() => 0,
        Err(error) if error.is_environment() => 3,
        _ => 2,
    }
}

async fn found(file: &Path) -> Result<Inspection, PluginError> {
    let engine = PluginEngine::new(EngineOptions::new(Arc::new(SystemClock::default())))?;
    if !file.is_dir() {
        return engine.inspect(file).await;
    }
    // As a run finds it: in a folder of its name.
    let whole = file.canonicalize().map_err(|source| PluginError::Read { path: file.into(), source })?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    engine.inspect(&PluginEngine::locate(file, &name)?).await
}

fn refusal(error: &PluginError) -> String {
    let lines = error.findings().into_iter().map(|finding| format!("error: {finding}\n"));
    lines.chain([format!("    {}\n", error.instruction())]).collect()
}

fn as_json(file: &str, found: &Inspection) -> Value {
    json!({
        "file": file,
        "bytes": found.bytes,
        "sha256": hex(&found.digest),
        "kind": found.kind.map(|kind| kind.name()),
        "contract": found.contract,
        "imports": found.imports,
        "exports": found.exports,
        "manifest": found.manifest,
        "findings": found.findings,
    })
}

fn as_text(file: &str, found: &Inspection) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = match &found.manifest {
        Some(Manifest { name, version, description, .. }) => writeln!(text, "{name} {version}: {description}"),
        None => writeln!(text, "{file}: it does not say what it is"),
    };
    let kind = found.kind.map_or("none that this host knows", |kind| kind.name());
    let contract = found.contract.as_deref().unwrap_or("none");
    let wants = found.manifest.as_ref().map_or(String::new(), |manifest| manifest.wants.join(", "));
    let wants = if wants.is_empty() { "nothing" } else { &wants };
    let rows = [
        ("kind", kind),
        ("contract", contract),
        ("asks for", wants),
        ("size", &format!("{} bytes", found.bytes)),
        ("sha256", &hex(&found.digest)),
    ];
    for (what, how) in rows {
        let _ = writeln!(text, "  {what:<9} {how}");
    }
    for (what, list) in [("imports", &found.imports), ("exports", &found.exports)] {
        let _ = writeln!(text, "{what}");
        for item in list {
            let _ = writeln!(text, "  {item}");
        }
    }
    if let Some(manifest) = &found.manifest {
        options(&mut text, manifest);
    }
    for finding in &found.findings {
        let _ = writeln!(text, "error: {finding}");
    }
    text
}

fn options(text: &mut String, manifest: &Manifest) {
    let schema = &manifest.config_schema;
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let _ = writeln!(text, "options");
    for (name, option) in properties {
        let about = option["description"].as_str().unwrap_or_default().replace('\n', " ");
        let absent = match option.get("default") {
            _ if required.contains(&name.as_str()) => " (required)".to_owned(),
            Some(default) => format!(" (default {default})"),
            None => String::new(),
        };
        let secret = if manifest.secrets.contains(name) { " (secret)" } else { "" };
        let _ = writeln!(text, "  {name}{absent}{secret}: {about}");
    }
}
