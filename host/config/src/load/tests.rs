use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::*;
use crate::{ByteSize, Guarantee, StartupMode, TlsMode, Watermark};

struct World(BTreeMap<&'static str, &'static str>);

impl Lookup for World {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|&value| value.to_owned())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let is_there = path.extension().is_some_and(|extension| extension == "pem");
        if is_there { Ok(Vec::new()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

fn load_text(text: &str) -> Result<Loaded, Refused> {
    let lookup = World([("PW", "s3cret-canary"), ("WH", "lake/wh")].into());
    load(Input { file: "pipeline.toml", bytes: text.as_bytes(), base: Path::new("/etc/cdchost"), lookup: &lookup })
}

const SMALL: &str = r#"
[pipeline]
name = "demo"
[source]
type = "mysql"
hosts = ["127.0.0.1"]
username = "cdc"
password = "${PW}"
tables = ["shop.*"]
[[sink]]
plugin = "blackhole"
[checkpoint]
store = "file:///tmp/state"
"#;

#[test]
fn values_that_lie_too_deep_are_one_finding() {
    for (depth, end) in [(100, true), (100, false), (100_000, true), (100_000, false)] {
        let end = if end { "]".repeat(depth) } else { String::new() };
        let refused = load_text(&format!("{SMALL}\n[x]\ny = {}{end}\n", "[".repeat(depth))).unwrap_err();
        let [finding] = refused.0.as_slice() else { panic!("{} findings", refused.0.len()) };
        assert_eq!(finding.message, "not TOML that can be read: values lie in one another too deep");
        assert_eq!(finding.place.as_ref().map(|place| place.line), Some(16));
    }
}

#[test]
fn defaults_are_filled_in() {
    let loaded = load_text(SMALL).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let config = loaded.config;
    assert_eq!((config.parallelism, config.guarantee), (1, Guarantee::ExactlyOnce));
    assert_eq!((config.restart.budget, config.restart.window), (10, Duration::from_secs(600)));
    assert_eq!(
        (config.restart.backoff, config.restart.backoff_max),
        (Duration::from_millis(200), Duration::from_secs(30))
    );
    assert_eq!(config.source.hosts, ["127.0.0.1:3306"]);
    assert_eq!(config.source.password.reveal(), "s3cret-canary");
    assert_eq!((config.source.startup, config.source.server_id), (StartupMode::Initial, None));
    assert_eq!((config.source.chunk.rows, config.source.chunk.bytes), (8096, ByteSize(8 << 20)));
    assert_eq!(
        (config.source.heartbeat, config.source.connect_timeout),
        (Duration::from_secs(5), Duration::from_secs(10))
    );
    assert_eq!(config.source.reconnect_timeout, Duration::from_secs(300));
    assert_eq!(config.source.transaction_max_buffer, ByteSize(64 << 20));
    let sink = &config.sinks[0];
    assert_eq!((sink.id.as_str(), sink.parallelism), ("blackhole", None));
    assert_eq!((sink.limits.memory, sink.limits.output), (ByteSize(512 << 20), ByteSize(256 << 20)));
    assert_eq!(
        (sink.limits.table_elements, sink.limits.handles, sink.limits.log_lines_per_second),
        (100_000, 1_000, 100)
    );
    assert_eq!(sink.limits.call_timeout, Duration::from_secs(300));
    assert_eq!(
        (config.checkpoint.interval, config.checkpoint.timeout),
        (Duration::from_secs(10), Duration::from_secs(600))
    );
    assert_eq!((config.checkpoint.retained, config.checkpoint.tolerable_failures), (3, 0));
    assert_eq!(config.checkpoint.min_pause, Duration::ZERO);
}

#[test]
fn every_key_arrives() {
    let text = r#"
[pipeline]
name = "demo"
parallelism = 2
guarantee = "at-least-once"
restart = { budget = 1, window = "1m", backoff = "1s", backoff-max = "2s" }
[source]
type = "mysql"
hosts = ["db.example.com:3307"]
username = "cdc"
password = "${PW}"
tables = ["shop.*", "!shop.tmp"]
startup.mode = "latest"
server-id = 77
tls = { mode = "verify-ca", ca = "ca.pem", cert = "/c.pem", key = "k.pem", allow-public-key-retrieval = true }
readers = 5
chunk = { rows = 10, bytes = "1MiB" }
watermark = "lag"
watermark-lag = "7s"
zero-date = "text"
heartbeat = "1s"
connect-timeout = "2s"
reconnect-timeout = "3s"
transaction.max-buffer = "2MiB"
[[sink]]
id = "lake"
plugin = "paimon"
sha256 = "AA00000000000000000000000000000000000000000000000000000000000000"
parallelism = 3
allow = { store = ["lake"], stdout = true }
limits = { memory = "1GiB", table-elements = 5, call-timeout = "6s", output = "1MiB", handles = 8, log-lines-per-second = 9 }
warehouse = "${WH}"
bucket = 4
deep = { a = [1, "x", 2.5, true], at = 2020-01-01, key = "${PW}" }
[storage.lake]
url = "file:///data/lake"
[checkpoint]
interval = "1s"
timeout = "2s"
min-pause = "3ms"
retained = 4
tolerable-failures = 5
store = "file:///data/state"
"#;
    let config = load_text(text).unwrap().config;
    assert_eq!((config.parallelism, config.guarantee, config.restart.budget), (2, Guarantee::AtLeastOnce, 1));
    assert_eq!((config.restart.window.as_secs(), config.restart.backoff.as_secs()), (60, 1));
    assert_eq!((config.source.server_id, config.source.startup), (Some(77), StartupMode::Latest));
    assert_eq!(config.source.tls.mode, Some(TlsMode::VerifyCa));
    assert_eq!(config.source.tls.ca.as_deref(), Some(Path::new("/etc/cdchost/ca.pem")));
    assert_eq!(config.source.tls.cert.as_deref(), Some(Path::new("/c.pem")));
    assert_eq!(config.source.tls.allow_public_key_retrieval, Some(true));
    assert_eq!(config.source.watermark, Watermark::Lag(Duration::from_secs(7)));
    assert_eq!((config.source.readers, config.source.transaction_max_buffer), (5, ByteSize(2 << 20)));
    let sink = &config.sinks[0];
    assert_eq!((sink.id.as_str(), sink.plugin.as_str(), sink.parallelism), ("lake", "paimon", Some(3)));
    assert!(sink.sha256.as_deref().unwrap().starts_with("aa0"));
    assert!(sink.allow.store.contains("lake") && sink.allow.stdout);
    assert_eq!((sink.limits.memory, sink.limits.handles), (ByteSize(1 << 30), 8));
    let expect = serde_json::json!({"bucket": 4, "deep": {"a": [1, "x", 2.5, true], "at": "2020-01-01"}});
    assert_eq!(serde_json::Value::Object(sink.options.clone()), expect);
    assert_eq!(sink.secrets["warehouse"].reveal(), "lake/wh");
    assert_eq!(sink.secrets["deep.key"].reveal(), "s3cret-canary");
    assert_eq!(config.storage["lake"].url, "file:///data/lake");
    assert_eq!((config.checkpoint.retained, config.checkpoint.tolerable_failures), (4, 5));
}

#[test]
fn places_of_options_are_known() {
    let text = SMALL.replace("plugin = \"blackhole\"", "plugin = \"blackhole\"\ndeep = { a = [1, 2] }");
    let places = load_text(&text).unwrap().places;
    let at = |path| places.find(path).map(|place| (place.line, place.column));
    assert_eq!(at("sink.0.deep"), Some((12, 1)));
    assert_eq!(at("sink.0.deep.a.1"), Some((12, 18)));
    assert_eq!(at("sink.0.unknown"), Some((10, 1)));
    assert_eq!(at("source.tables"), Some((9, 1)));
}

#[test]
fn nothing_that_came_from_a_reference_is_shown() {
    let text = SMALL
        .replace("name = \"demo\"", "name = \"${PW} \"")
        .replace("[\"127.0.0.1\"]", "[\"${PW}:x\"]")
        .replace("[\"shop.*\"]", "[\"${PW}\"]")
        .replace("type = \"mysql\"", "type = \"${PW}\"")
        .replace("[checkpoint]", "[checkpoint]\ninterval = \"${PW}\"")
        .replace("file:///tmp/state", "${PW}");
    let refused = load_text(&text).unwrap_err();
    assert_eq!(refused.0.len(), 6, "{refused}");
    assert!(!format!("{refused} {refused:?}").contains("canary"), "{refused}");
    let loaded = load_text(SMALL).unwrap();
    assert!(!format!("{loaded:?}").contains("canary"));
}

#[test]
fn a_literal_password_is_warned_of() {
    let loaded = load_text(&SMALL.replace("${PW}", "plain")).unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(!loaded.warnings[0].to_string().contains("plain"));
}

#[test]
fn no_text_brings_the_loader_down() {
    // Every prefix of a full file, and the file with each line gone, is answered with findings or a config.
    for end in (0..SMALL.len()).filter(|at| SMALL.is_char_boundary(*at)) {
        let _ = load_text(&SMALL[..end]);
    }
    let lines: Vec<_> = SMALL.lines().collect();
    for gone in 0..lines.len() {
        let left: Vec<_> = lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, line)| *line).collect();
        let _ = load_text(&left.join("\n"));
    }
}

#[test]
fn what_is_shown_has_the_defaults_and_no_secret() {
    let text = SMALL.replace("plugin = \"blackhole\"", "plugin = \"blackhole\"\nbucket = 4\ntoken = \"${PW}\"");
    let shown = load_text(&text).unwrap().shown;
    assert_eq!(shown["source"]["password"], "***");
    assert_eq!(shown["source"]["chunk"], serde_json::json!({"rows": 8096, "bytes": "8MiB"}));
    assert_eq!(shown["checkpoint"]["interval"], "10s");
    assert_eq!((&shown["sink"][0]["bucket"], &shown["sink"][0]["token"]), (&4.into(), &"***".into()));
    assert!(!shown.to_string().contains("canary"));
}

#[test]
fn the_state_folder_may_lie_in_a_storage() {
    let folder = |text: &str| load_text(text).unwrap().state_folder().unwrap();
    assert_eq!(folder(SMALL), Path::new("/tmp/state"));
    let stored = SMALL.replace("file:///tmp/state", "storage:own/a/b") + "[storage.own]\nurl = \"file:///data\"\n";
    assert_eq!(folder(&stored), Path::new("/data/a/b"));
}
