use std::collections::BTreeMap;

use cdchost_config::{ByteSize, Limits};

use super::*;

/// A clock that a test moves.
#[derive(Debug, Default)]
struct HandClock(Mutex<Duration>);

#[async_trait::async_trait]
impl Clock for HandClock {
    fn now_micros(&self) -> i64 {
        0
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, _: Duration) {}
}

fn log(clock: &Arc<HandClock>) -> GuestLog {
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
        pipeline: "p".into(),
        operator: "o".into(),
        config: String::new(),
        secrets: BTreeMap::from([("a".into(), secret("hunter22")), ("b".into(), secret("x"))]),
        stores: BTreeMap::new(),
        stdout: false,
        limits,
    };
    let clock: Arc<dyn Clock> = Arc::<HandClock>::clone(clock);
    GuestLog::new(&grant, Place { subtask: 0, parallelism: 1, generation: 1 }, clock)
}

#[test]
fn a_second_has_its_share_of_lines() {
    let clock = Arc::new(HandClock::default());
    let log = log(&clock);
    let admitted = |log: &GuestLog| (0..5).filter(|_| log.admit()).count();
    assert_eq!(admitted(&log), 2);
    assert_eq!(log.window.lock().unwrap().dropped, 3);
    *clock.0.lock().unwrap() = Duration::from_millis(1500);
    assert_eq!(admitted(&log), 2);
}

#[test]
fn text_is_bounded_on_one_line_and_without_secrets() {
    let log = log(&Arc::default());
    assert_eq!(log.clean("a\nb\x1b[31m\u{9b}"), "a\\nb\\u{1b}[31m\\u{9b}");
    assert_eq!(log.clean("pass hunter22, x"), "pass ***, x");
    let long = log.clean(&"ü".repeat(5000));
    assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    assert!(long.ends_with('…'));
}
