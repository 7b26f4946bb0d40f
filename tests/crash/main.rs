//! Kills at random moments under load: nothing is lost, doubled or changed, and nothing durable is read again.
#![cfg(test)]

use cdchost_tests::crash::{self, CrashOptions};

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_leave_no_difference() {
    let options = CrashOptions { rounds: 20, ..CrashOptions::default() };
    let tally = crash::run(&options, |line| println!("crash: {line}")).await.unwrap();
    assert_eq!(tally.differences, 0, "{tally}");
    assert_eq!(tally.weaknesses(), [""; 0], "{tally}");
}
