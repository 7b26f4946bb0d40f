//! The demo, as a test: four tables of a live server in a lake, through a kill, equal for two readers.
#![cfg(test)]

use cdchost_tests::demo::{self, DemoOptions};

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_with_equal_tables() {
    let options = DemoOptions { once: true, folder: None };
    let verdict = demo::run(&options, |line| println!("demo: {line}")).await.unwrap();
    assert_eq!(verdict.shown, [""; 0]);
    assert_eq!((verdict.equal, verdict.differences), (4, 0));
    assert!(verdict.rows > 200_000, "{} rows", verdict.rows);
}
