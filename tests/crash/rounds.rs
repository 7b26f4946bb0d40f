//! Kills at random moments under load.

use cdchost_tests::crash::{self, CrashOptions};

async fn check(rounds: u32, sink: &str) {
    let options = CrashOptions { rounds, sink: sink.to_owned(), ..CrashOptions::default() };
    let tally = crash::run(&options, |line| println!("crash: {line}")).await.unwrap();
    assert_eq!(tally.differences, 0, "{tally}");
    assert_eq!(tally.weaknesses(), [""; 0], "{tally}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_leave_no_difference() {
    check(20, "paimon").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_leave_exactly_the_changes_in_files() {
    check(10, "file").await;
}
