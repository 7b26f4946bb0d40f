//! What must not stand in the code.

use cdchost_tests::project::root;
use regex::Regex;

use crate::sources::{self, Source};

/// This file holds what it looks for.
const SELF: &str = "tests/architecture/habits.rs";

/// Every line of `part` of every file that matches, as `path:line: text`.
fn lines(pattern: &str, part: impl Fn(&Source) -> &str, files: Vec<Source>) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path != SELF) {
        for (number, line) in part(file).lines().enumerate() {
            if pattern.is_match(line) {
                found.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    found
}

#[track_caller]
fn refused(found: &[String], why: &str) {
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn queues_are_bounded() {
    let pattern = r"unbounded|UnboundedSender|std::sync::mpsc|mpsc::channel\(\)";
    refused(&lines(pattern, |f| &f.text, sources::rust()), "a queue without a bound");
}

#[test]
fn tests_wait_for_facts() {
    // Where the clock is moved by hand, sleeping takes no time: it is how that clock is moved.
    let folder = |path: &str| match path.split('/').collect::<Vec<_>>()[..] {
        ["tests", of, "src", ..] => Some(format!("tests/{of}/")),
        _ => path.rsplit_once("/tests/").map(|(crate_folder, _)| format!("{crate_folder}/tests/")),
    };
    let paused = sources::rust().into_iter().filter(|f| f.test().contains("start_paused"));
    let paused: Vec<String> = paused.map(|f| folder(&f.path).unwrap_or(f.path)).collect();
    let real = |f: &Source| !paused.iter().any(|place| f.path.starts_with(place)) && f.path != "tests/src/wait.rs";
    let files = sources::rust().into_iter().filter(real).collect();
    refused(&lines(r"(^|[^=\w])sleep\(", Source::test, files), "a test that sleeps instead of waiting for a fact");
}

#[test]
fn nothing_is_left_undone() {
    let pattern = r"todo!|unimplemented!|#\[ignore|\b(FIXME|TODO|XXX|HACK)\b";
    refused(&lines(pattern, |f| &f.text, sources::rust()), "left undone");
}

/// The library's parser of log events can abort the process on bad bytes; ours cannot.
#[test]
fn log_events_are_decoded_by_our_own_decoder() {
    let house = || sources::rust().into_iter().filter(|f| f.path.starts_with("host/")).collect::<Vec<_>>();
    let pattern = r"\bmysql_(common|async)::(\{.*\b)?(binlog|BinlogStream)\b";
    refused(&lines(pattern, |f| &f.text, house()), "the library's log parser");
}

/// The project speaks of itself alone, and works on any machine.
#[test]
fn no_word_of_one_machine() {
    let places = r"/(root|work|home)/|\.\./shared|\bworkplace\b";
    let process = r"|(?i)\b(issue|phase|session|helper|worktree) (#?[0-9]+|[A-G]\b)";
    let hosts =
        r"|\b(repo1?\.maven|pypi\.org|files\.pythonhosted|index\.crates|deb\.debian|registry\.npmjs|proxy\.golang)";
    let files = sources::all().into_iter().filter(|f| f.path != "Cargo.lock" && f.path != "host/LICENSE").collect();
    refused(&lines(&format!("{places}{process}{hosts}"), |f| &f.text, files), "a word of one machine or its work");
}

/// The toolchain's standard has its exceptions written with a reason, one by one.
#[test]
fn lints_are_not_switched_off_for_whole_crates() {
    let crates = sources::rust().into_iter().filter(|f| f.path.ends_with("src/lib.rs")).collect();
    refused(&lines(r"#!\[allow\(", |f| &f.text, crates), "a lint switched off for a whole crate");
}

#[test]
fn every_member_takes_the_workspace_lints() {
    for file in sources::all().iter().filter(|f| f.path.ends_with("/Cargo.toml") && !f.path.contains("template")) {
        assert!(file.text.contains("[lints]\nworkspace = true"), "{} has lints of its own", file.path);
    }
    assert!(root().join(".clippy.toml").exists());
}
