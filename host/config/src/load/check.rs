//! What must hold between the values of a file.

use std::collections::BTreeMap;

use super::node::{Node, Text};
use super::reader::Reader;
use super::storage::{self, Root};
use super::words;
use crate::finding::nearest;
use crate::{Guarantee, PipelineConfig, StepConfig, TablePatterns, TlsMode, Watermark};

/// Checks everything, in the order of the sections.
pub(super) fn all(reader: &mut Reader<'_>, file: &Node<'_>, config: &PipelineConfig) {
    if let Some(head) = file.table("pipeline") {
        restart(reader, head);
    }
    if let Some(node) = file.table("source") {
        source(reader, node, config);
    }
    steps(reader, file.tables("transform"), &config.transforms);
    steps(reader, file.tables("route"), &config.routes);
    sinks(reader, file, config);
    let roots = storage::roots(reader, file, config);
    if let Some(node) = file.table("checkpoint") {
        checkpoint(reader, node, &roots, config);
    }
}

fn restart(reader: &mut Reader<'_>, head: &Node<'_>) {
    let Some(node) = head.table("restart") else { return };
    if node.duration("backoff") > node.duration("backoff-max") {
        let place = reader.places.find("pipeline.restart.backoff");
        let message = "`backoff` in [pipeline.restart] is longer than `backoff-max`";
        reader.findings.push(crate::Finding::error(message, "make one of the two fit").at(place));
    }
}

fn source(reader: &mut Reader<'_>, node: &Node<'_>, config: &PipelineConfig) {
    if let [_, second, ..] = node.texts("hosts") {
        let message = "`hosts` in [source] names more than one server, which is not offered yet".to_owned();
        reader.error(&second.span, message, "name one; failover between servers is not offered yet");
    }
    if matches!(config.source.watermark, Watermark::Lag(_)) && config.guarantee == Guarantee::ExactlyOnce {
        let place = reader.places.find("source.watermark");
        let message = "`watermark` = \"lag\" in [source] is a bet that guarantee = \"exactly-once\" does not allow";
        let instruction = "write watermark = \"lock\", or guarantee = \"at-least-once\" in [pipeline]";
        reader.findings.push(crate::Finding::error(message, instruction).at(place));
    }
    patterns(reader, node.texts("tables"));
    if node.text("password").is_some_and(Text::stands_in_the_file) {
        let place = reader.places.find("source.password");
        let instruction = "write `${VARIABLE}` or `${file:/path}`, so that it is not in the file";
        reader.warning(place, "the password in [source] stands in the file itself", instruction);
    }
    if let Some(node) = node.table("tls") {
        tls(reader, node, config);
    }
}

fn tls(reader: &mut Reader<'_>, node: &Node<'_>, config: &PipelineConfig) {
    let tls = &config.source.tls;
    let mut refuse = |key: &str, message: &str, instruction: &str| {
        let place = reader.places.find(&format!("{}.{key}", node.path));
        reader.findings.push(crate::Finding::error(message, instruction).at(place));
    };
    match (&tls.cert, &tls.key) {
        (Some(_), None) => refuse("cert", "`cert` in [source.tls] has no `key`", "give both or none"),
        (None, Some(_)) => refuse("key", "`key` in [source.tls] has no `cert`", "give both or none"),
        _ => {}
    }
    let verifies = matches!(tls.mode, None | Some(TlsMode::VerifyCa | TlsMode::VerifyIdentity));
    if tls.ca.is_some() && !verifies {
        let message = "`ca` in [source.tls] is not used by this `mode`";
        refuse("ca", message, "write mode = \"verify-ca\" or \"verify-identity\", or take `ca` out");
    }
    if tls.cert.is_some() && tls.mode == Some(TlsMode::Disabled) {
        let message = "`cert` in [source.tls] is not used with mode = \"disabled\"";
        refuse("cert", message, "choose another `mode`, or take `cert` and `key` out");
    }
    for (key, path) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
        let Some(Err(error)) = path.as_ref().map(|path| reader.lookup.file(path)) else { continue };
        let place = reader.places.find(&format!("{}.{key}", node.path));
        let message = format!("the file of `{key}` in [source.tls] cannot be read: {error}");
        let instruction = "name a PEM file that this user may read";
        reader.findings.push(crate::Finding::error(message, instruction).at(place));
    }
    let remote = config.source.hosts.iter().any(|host| !is_loopback(host));
    if remote && matches!(tls.mode, Some(TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required)) {
        let place = reader.places.find("source.tls.mode");
        let instruction = "choose \"verify-ca\" or \"verify-identity\" where the network is not your own";
        reader.warning(place, "this `mode` in [source.tls] does not check whom it talks to", instruction);
    }
}

fn is_loopback(host_and_port: &str) -> bool {
    let host = host_and_port.rsplit_once(':').map_or(host_and_port, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn patterns(reader: &mut Reader<'_>, texts: &[Text]) {
    let mut includes = texts.is_empty();
    for text in texts {
        match TablePatterns::parse(&[&text.text]) {
            Ok(pattern) => includes |= pattern.can_match(),
            Err(error) => {
                includes = true;
                let message = if text.referred {
                    "the table pattern of a reference cannot be read".to_owned()
                } else {
                    error.to_string()
                };
                reader.error(&text.span, message, error.instruction());
            }
        }
    }
    if let (false, Some(first)) = (includes, texts.first()) {
        let message = "every table pattern here excludes, so that no table can match".to_owned();
        reader.error(&first.span, message, "add one without `!`, such as `database.*`");
    }
}

fn steps(reader: &mut Reader<'_>, nodes: &[Node<'_>], steps: &[StepConfig]) {
    let mut seen = BTreeMap::new();
    for (node, step) in nodes.iter().zip(steps) {
        let section = node.section.name;
        let mut refuse = |key: &str, message: String, instruction: &str| {
            let place = reader.places.find(&format!("{}.{key}", node.path));
            reader.findings.push(crate::Finding::error(message, instruction).at(place));
        };
        if !step.id.is_empty() && seen.insert(&step.id, ()).is_some() {
            refuse("id", format!("two of {section} have the id `{}`", step.id), "give each its own `id`");
        }
        match (node.text("table"), node.texts("tables")) {
            (None, []) => {
                let message = format!("{section} does not say for which tables it is");
                refuse("", message, "add `table = \"database.table\"`, each part a regular expression");
            }
            (Some(_), [_, ..]) => {
                let message = format!("{section} has both `table` and `tables`");
                refuse("table", message, "keep one of the two");
            }
            (Some(table), []) => patterns(reader, std::slice::from_ref(table)),
            (None, tables) => patterns(reader, tables),
        }
    }
}

fn sinks(reader: &mut Reader<'_>, file: &Node<'_>, config: &PipelineConfig) {
    let mut seen = BTreeMap::new();
    for (node, sink) in file.tables("sink").iter().zip(&config.sinks) {
        if !sink.id.is_empty() && seen.insert(&sink.id, ()).is_some() {
            let place = reader.places.find(&format!("{}.id", node.path));
            let message = format!("two sinks have the id `{}`", sink.id);
            let instruction = "give each its own `id`; without one it is the plugin's name";
            reader.findings.push(crate::Finding::error(message, instruction).at(place));
        }
        for grant in node.table("allow").map(|allow| allow.texts("store")).unwrap_or_default() {
            grant_exists(reader, grant, config);
        }
    }
}

fn grant_exists(reader: &mut Reader<'_>, grant: &Text, config: &PipelineConfig) {
    // One that stands there and is wrong has its own finding.
    if reader.places.holds(&format!("storage.{}", grant.text)) {
        return;
    }
    let name = words::shown(&grant.text);
    let instruction = match nearest(&grant.text, config.storage.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add [storage.{name}] with its `url`"),
    };
    reader.error(&grant.span, format!("`allow.store` names the storage `{name}`, which is not there"), instruction);
}

fn checkpoint(reader: &mut Reader<'_>, node: &Node<'_>, roots: &BTreeMap<String, Root>, config: &PipelineConfig) {
    let Some(store) = node.text("store") else { return };
    let root = match storage::store(&store.text, roots) {
        Ok(root) => root,
        Err(problem) => {
            let instruction = store_instruction(store, config);
            return reader.error(&store.span, format!("`store` in [checkpoint] {problem}"), instruction);
        }
    };
    if root.local().is_none() && config.checkpoint.folder.is_none() {
        let message = "`folder` in [checkpoint] is missing, and `store` is a bucket".to_owned();
        reader.error(&store.span, message, "name a folder of this machine for the lock and the control socket");
    }
    let granted = |name: &String| config.sinks.iter().any(|sink| sink.allow.store.contains(name));
    let mut near = roots.iter().filter(|(_, other)| root.overlaps(other));
    if let Some((name, _)) = near.find(|(name, _)| granted(name)) {
        let message = format!("the checkpoint store and storage `{name}` lie in one another");
        let instruction = "keep them apart: a plugin may write to a storage, and never to checkpoints";
        reader.error(&store.span, message, instruction);
    }
}

/// What to write as the checkpoint store, with the storages that there are. A text of a reference is not shown.
fn store_instruction(store: &Text, config: &PipelineConfig) -> String {
    let asked = store.text.strip_prefix("storage:").filter(|_| !store.referred);
    let asked = asked.map(|rest| rest.split('/').next().unwrap_or_default());
    if let Some(name) = asked.filter(|name| !config.storage.contains_key(*name)) {
        return match nearest(name, config.storage.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `storage:{near}/…`?"),
            None => format!("add [storage.{}] with its `url`, or write `file:///absolute/path`", words::shown(name)),
        };
    }
    match asked.or(config.storage.keys().next().map(String::as_str)) {
        Some(name) => {
            format!("write `file:///absolute/path`, or `storage:{name}/path` for a folder in [storage.{name}]")
        }
        None => "write `file:///absolute/path`, or add a [storage.NAME] and write `storage:NAME/path`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest() {
        for host in ["localhost:1", "127.0.0.1:1", "127.1.2.3:1", "[::1]:1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["db:1", "10.0.0.1:1", "[fe80::1]:1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
