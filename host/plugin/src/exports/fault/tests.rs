use super::*;

fn told(retry: Retry, blame: Blame, hint: Option<u32>) -> PluginError {
    PluginError {
        retry,
        blame,
        code: "target-gone".into(),
        message: "m".into(),
        table: None,
        rows: Vec::new(),
        retry_after_ms: hint,
    }
}

#[test]
fn retry_and_blame_decide_what_now() {
    let retry = |ms| Verdict::Retry { after: Some(Duration::from_millis(ms)) };
    let backoff = Verdict::Retry { after: None };
    for (error, verdict, kind) in [
        (told(Retry::Now, Blame::Remote, None), retry(0), StopClass::Sink),
        (told(Retry::Backoff, Blame::Remote, None), backoff, StopClass::Sink),
        (told(Retry::Backoff, Blame::Remote, Some(250)), retry(250), StopClass::Sink),
        (told(Retry::Never, Blame::Remote, None), Verdict::Stop, StopClass::Sink),
        (told(Retry::Never, Blame::Auth, None), Verdict::Stop, StopClass::Sink),
        (told(Retry::Never, Blame::Config, None), Verdict::Stop, StopClass::Config),
        (told(Retry::Never, Blame::Data, None), Verdict::Stop, StopClass::Data),
        (told(Retry::Never, Blame::Bug, None), Verdict::Restart, StopClass::Plugin),
        (told(Retry::Now, Blame::Bug, None), Verdict::Restart, StopClass::Plugin),
    ] {
        assert_eq!((super::verdict(&error), class(error.blame)), (verdict, kind), "{error:?}");
    }
}

#[test]
fn codes_that_are_none_are_replaced() {
    assert_eq!(code("target-gone-2"), "target-gone-2");
    for odd in ["", "Target", "a b", "x\n", &"a".repeat(65)] {
        assert_eq!(code(odd), "plugin-error", "{odd:?}");
    }
}
