use std::collections::BTreeMap;
use std::time::Duration;

use cdchost_config::{ByteSize, Limits};
use cdchost_connector::SystemClock;

use super::*;

fn log() -> GuestLog {
    let limits = Limits {
        memory: ByteSize(1),
        table_elements: 1,
        call_timeout: Duration::from_secs(1),
        output: ByteSize(1),
        handles: 1,
        log_lines_per_second: 2,
    };
    let secret = |text: &str| Secret::new(text);
    let grant = Grant {
        kind: crate::PluginKind::Sink,
        pipeline: "p".into(),
        operator: "o".into(),
        config: String::new(),
        secrets: BTreeMap::from([("a".into(), secret("hunter22")), ("b".into(), secret("x"))]),
        stores: BTreeMap::new(),
        stdout: false,
        limits,
    };
    GuestLog::new(&grant, Place { subtask: 0, parallelism: 1, generation: 1 }, Arc::new(SystemClock::default()))
}

#[test]
fn a_second_has_its_share_of_lines() {
    let mut window = Window::default();
    let mut admit = |second| window.admit(second, 2);
    assert_eq!([admit(0), admit(0), admit(0), admit(0)], [(true, 0), (true, 0), (false, 0), (false, 0)]);
    assert_eq!([admit(3), admit(3), admit(3)], [(true, 2), (true, 0), (false, 0)]);
    assert_eq!([admit(4), admit(5)], [(true, 1), (true, 0)]);
}

#[test]
fn text_is_bounded_on_one_line_and_without_secrets() {
    let log = log();
    assert_eq!(log.clean("a\nb\x1b[31m\u{9b}"), "a\\nb\\u{1b}[31m\\u{9b}");
    assert_eq!(log.clean("pass hunter22, x"), "pass ***, x");
    let long = log.clean(&"ü".repeat(5000));
    assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    assert!(long.ends_with('…'));
}
