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

/// What the host advises must not send the reader to the options where these are not the cause.
#[test]
fn the_instruction_is_about_who_can_mend_it() {
    for (retry, blame, names_table, expected) in [
        (Retry::Never, Blame::Data, true, "do as it says, or leave their table out with `!` in `tables` of [source]"),
        (Retry::Never, Blame::Config, false, "mend the options of sink lake in the pipeline file"),
        (Retry::Never, Blame::Config, true, "do as it says, or leave the table out with `!` in `tables` of [source]"),
        (Retry::Never, Blame::Remote, true, "put the target of sink lake right as it says, then start again"),
        (Retry::Backoff, Blame::Remote, false, "check that the target of sink lake can be reached"),
    ] {
        let said = instruction("sink lake", blame, retry, names_table);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn codes_that_are_none_are_replaced() {
    assert_eq!(code("target-gone-2"), "target-gone-2");
    for odd in ["", "Target", "a b", "x\n", &"a".repeat(65)] {
        assert_eq!(code(odd), "plugin-error", "{odd:?}");
    }
}
