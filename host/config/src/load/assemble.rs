//! Puts the structs together from tables that were read.

use std::path::PathBuf;

use super::node::{Node, Text};
use super::options;
use super::reader::Reader;
use crate::{
    CheckpointConfig, ChunkConfig, Grants, Guarantee, Limits, MysqlConfig, PipelineConfig, RestartConfig, Secret,
    SinkConfig, StartupMode, StepConfig, StorageConfig, TlsConfig, TlsMode, Watermark, ZeroDate,
};

/// Puts all together. Where a value is wrong, something stands in its place: a finding keeps it from being used.
pub(super) fn pipeline(reader: &mut Reader<'_>, file: &Node<'_>) -> PipelineConfig {
    let head = file.table("pipeline");
    PipelineConfig {
        name: head.map(|head| head.string("name")).unwrap_or_default(),
        parallelism: head.map(|head| head.count("parallelism")).unwrap_or_default(),
        guarantee: head.map(guarantee).unwrap_or_default(),
        restart: restart(head.and_then(|head| head.table("restart"))),
        source: source(reader, file.table("source")),
        transforms: steps(reader, file.tables("transform")),
        routes: steps(reader, file.tables("route")),
        sinks: file.tables("sink").iter().map(|node| sink(reader, node)).collect(),
        storage: file.named("storage").map(|(name, node)| (name.clone(), storage(node))).collect(),
        checkpoint: checkpoint(reader, file.table("checkpoint")),
    }
}

fn guarantee(head: &Node<'_>) -> Guarantee {
    match head.string("guarantee").as_str() {
        "at-least-once" => Guarantee::AtLeastOnce,
        _ => Guarantee::ExactlyOnce,
    }
}

fn restart(node: Option<&Node<'_>>) -> RestartConfig {
    RestartConfig {
        budget: node.map(|node| node.count("budget")).unwrap_or_default(),
        window: node.map(|node| node.duration("window")).unwrap_or_default(),
        backoff: node.map(|node| node.duration("backoff")).unwrap_or_default(),
        backoff_max: node.map(|node| node.duration("backoff-max")).unwrap_or_default(),
    }
}

fn source(reader: &mut Reader<'_>, node: Option<&Node<'_>>) -> MysqlConfig {
    let chunk = node.and_then(|node| node.table("chunk"));
    let transaction = node.and_then(|node| node.table("transaction"));
    let startup = node.and_then(|node| node.table("startup"));
    MysqlConfig {
        hosts: node.map(|node| hosts(reader, node)).unwrap_or_default(),
        username: node.map(|node| node.string("username")).unwrap_or_default(),
        password: node.map(|node| node.secret("password")).unwrap_or_else(|| Secret::new("")),
        tables: node.map(|node| strings(node.texts("tables"))).unwrap_or_default(),
        startup: startup.map(startup_mode).unwrap_or_default(),
        server_id: node.and_then(|node| node.number("server-id")).and_then(|id| u32::try_from(id).ok()),
        tls: node.and_then(|node| node.table("tls")).map(|node| tls(reader, node)).unwrap_or_default(),
        readers: node.map(|node| node.count("readers")).unwrap_or_default(),
        chunk: ChunkConfig {
            rows: chunk.map(|chunk| chunk.count("rows")).unwrap_or_default(),
            bytes: chunk.map(|chunk| chunk.size("bytes")).unwrap_or_default(),
        },
        watermark: node.map(watermark).unwrap_or_default(),
        zero_date: node.map(zero_date).unwrap_or_default(),
        heartbeat: node.map(|node| node.duration("heartbeat")).unwrap_or_default(),
        connect_timeout: node.map(|node| node.duration("connect-timeout")).unwrap_or_default(),
        reconnect_timeout: node.map(|node| node.duration("reconnect-timeout")).unwrap_or_default(),
        transaction_max_buffer: transaction.map(|node| node.size("max-buffer")).unwrap_or_default(),
    }
}

fn watermark(node: &Node<'_>) -> Watermark {
    match node.string("watermark").as_str() {
        "lock" => Watermark::Lock,
        "lag" => Watermark::Lag(node.duration("watermark-lag")),
        _ => Watermark::Gtid,
    }
}

fn zero_date(node: &Node<'_>) -> ZeroDate {
    match node.string("zero-date").as_str() {
        "null" => ZeroDate::Null,
        "text" => ZeroDate::Text,
        _ => ZeroDate::Error,
    }
}

fn startup_mode(node: &Node<'_>) -> StartupMode {
    match node.string("mode").as_str() {
        "snapshot" => StartupMode::Snapshot,
        "latest" => StartupMode::Latest,
        _ => StartupMode::Initial,
    }
}

/// The port of a MySQL server where none is given.
const MYSQL_PORT: u16 = 3306;

fn hosts(reader: &mut Reader<'_>, node: &Node<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for text in node.texts("hosts") {
        match host_and_port(&text.text) {
            Some(host) => hosts.push(host),
            None => {
                // Not shown: an address may hold an account's password.
                let message = "`hosts` in [source] holds a text that is no `host:port`".to_owned();
                reader.error(&text.span, message, "write a name or an address, and a port from 1 to 65535");
            }
        }
    }
    hosts
}

/// `host:port`, the port added where it is missing; an IPv6 address stands in brackets.
fn host_and_port(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()?),
        Some(_) if !text.ends_with(']') => return None,
        _ => (text, MYSQL_PORT),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let usable = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)),
    };
    (usable && port != 0).then(|| format!("{host}:{port}"))
}

fn tls(reader: &Reader<'_>, node: &Node<'_>) -> TlsConfig {
    let path = |key| node.text(key).map(|text: &Text| -> PathBuf { reader.base.join(&text.text) });
    let mode = node.text("mode").map(|mode| match mode.text.as_str() {
        "disabled" => TlsMode::Disabled,
        "preferred" => TlsMode::Preferred,
        "required" => TlsMode::Required,
        "verify-ca" => TlsMode::VerifyCa,
        _ => TlsMode::VerifyIdentity,
    });
    TlsConfig {
        mode,
        ca: path("ca"),
        cert: path("cert"),
        key: path("key"),
        allow_public_key_retrieval: node.flag("allow-public-key-retrieval"),
    }
}

fn sink(reader: &mut Reader<'_>, node: &Node<'_>) -> SinkConfig {
    let own = options::collect(reader, node);
    let plugin = node.string("plugin");
    SinkConfig {
        id: node.text("id").map_or_else(|| plugin.clone(), |id| id.text.clone()),
        plugin,
        sha256: node.text("sha256").map(|text| text.text.to_ascii_lowercase()),
        parallelism: node.number("parallelism").and_then(|number| u32::try_from(number).ok()),
        allow: node.table("allow").map(grants).unwrap_or_default(),
        limits: limits(node.table("limits")),
        options: own.options,
        secrets: own.secrets,
    }
}

fn steps(reader: &mut Reader<'_>, nodes: &[Node<'_>]) -> Vec<StepConfig> {
    let mut steps: Vec<StepConfig> = Vec::new();
    for node in nodes {
        let mut step = step(reader, node);
        let taken = |id: &str| steps.iter().any(|other| other.id == id);
        // Ids that are written and not unique have a finding of their own.
        if node.text("id").is_none() && taken(&step.id) {
            let free = (2..).map(|number| format!("{}-{number}", step.plugin)).find(|id| !taken(id));
            step.id = free.expect("there are more numbers than sections");
        }
        steps.push(step);
    }
    steps
}

fn step(reader: &mut Reader<'_>, node: &Node<'_>) -> StepConfig {
    let own = options::collect(reader, node);
    let plugin = node.string("plugin");
    let one = node.text("table").map(|table| table.text.clone());
    StepConfig {
        id: node.text("id").map_or_else(|| plugin.clone(), |id| id.text.clone()),
        plugin,
        sha256: node.text("sha256").map(|text| text.text.to_ascii_lowercase()),
        tables: one.into_iter().chain(strings(node.texts("tables"))).collect(),
        parallelism: node.number("parallelism").and_then(|number| u32::try_from(number).ok()),
        limits: limits(node.table("limits")),
        options: own.options,
        secrets: own.secrets,
    }
}

fn grants(node: &Node<'_>) -> Grants {
    Grants {
        store: node.texts("store").iter().map(|text| text.text.clone()).collect(),
        stdout: node.flag("stdout").unwrap_or_default(),
        ..Grants::default()
    }
}

fn limits(node: Option<&Node<'_>>) -> Limits {
    Limits {
        memory: node.map(|node| node.size("memory")).unwrap_or_default(),
        table_elements: node.map(|node| node.count("table-elements")).unwrap_or_default(),
        call_timeout: node.map(|node| node.duration("call-timeout")).unwrap_or_default(),
        output: node.map(|node| node.size("output")).unwrap_or_default(),
        handles: node.map(|node| node.count("handles")).unwrap_or_default(),
        log_lines_per_second: node.map(|node| node.count("log-lines-per-second")).unwrap_or_default(),
    }
}

fn storage(node: &Node<'_>) -> StorageConfig {
    let given = |key: &str| node.text(key).map(|text| (key.to_owned(), text.text.clone()));
    let http = node.flag("allow-http").map(|allowed| ("allow-http".to_owned(), allowed.to_string()));
    let secret = given("secret-access-key").map(|(key, text)| (key, Secret::new(text)));
    StorageConfig {
        url: node.string("url"),
        options: ["endpoint", "region", "access-key-id"].iter().filter_map(|key| given(key)).chain(http).collect(),
        secrets: secret.into_iter().collect(),
    }
}

fn checkpoint(reader: &Reader<'_>, node: Option<&Node<'_>>) -> CheckpointConfig {
    CheckpointConfig {
        interval: node.map(|node| node.duration("interval")).unwrap_or_default(),
        timeout: node.map(|node| node.duration("timeout")).unwrap_or_default(),
        min_pause: node.map(|node| node.duration("min-pause")).unwrap_or_default(),
        retained: node.map(|node| node.count("retained")).unwrap_or_default(),
        tolerable_failures: node.map(|node| node.count("tolerable-failures")).unwrap_or_default(),
        store: node.map(|node| node.string("store")).unwrap_or_default(),
        folder: node.and_then(|node| node.text("folder")).map(|folder| reader.base.join(&folder.text)),
    }
}

fn strings(texts: &[Text]) -> Vec<String> {
    texts.iter().map(|text| text.text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_the_usual_port() {
        let good = [
            ("db", "db:3306"),
            ("db.example.com:3307", "db.example.com:3307"),
            ("127.0.0.1:13306", "127.0.0.1:13306"),
            ("[::1]", "[::1]:3306"),
            ("[::1]:3307", "[::1]:3307"),
        ];
        for (text, expect) in good {
            assert_eq!(host_and_port(text).as_deref(), Some(expect));
        }
        for text in ["", ":3306", "db:", "db:0", "db:65536", "db:x", "::1", "a b", "mysql://db", "[db]:1", "u@db"] {
            assert_eq!(host_and_port(text), None, "{text}");
        }
    }
}
