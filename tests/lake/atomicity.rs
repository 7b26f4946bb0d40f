//! A reader that looks again and again never sees a part of a source transaction.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cdchost_tests::lake::LakeReader;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::server::Server;
use cdchost_tests::shop::{self, Customers};
use cdchost_tests::watchdog::Folder;
use cdchost_tests::{project, wait};

const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_FOR: Duration = Duration::from_secs(6);

/// Cents of all customers together, as the lake has them.
fn money(reader: &mut LakeReader, table: &Path) -> i64 {
    let mut cents = 0;
    reader
        .each(table, None, |row| {
            let text = row["credit"].as_str().unwrap();
            cents += text.replace('.', "").parse::<i64>()?;
            Ok(())
        })
        .unwrap();
    cents
}

/// Customers move money between each other all the time; the sum never changes at the source.
#[tokio::test(flavor = "multi_thread")]
async fn no_look_finds_money_missing() {
    let server = Server::start().unwrap();
    let shop = shop::open(&server, "bank", 300).await.unwrap();
    let folder = Folder::new("atomicity").unwrap();
    let spec = PipelineSpec { interval: "100ms".to_owned(), ..PipelineSpec::into_lake(&server.address(), "bank") };
    let mut pipeline = Pipeline::new(folder.path(), &spec).unwrap();
    pipeline.start(project::program().unwrap(), &[], &[]).unwrap();
    pipeline.wait_until_caught_up(LIMIT).unwrap();
    pipeline.checkpoint(LIMIT).unwrap();
    let table = pipeline.table("bank", "customers");
    let mut reader = LakeReader::pypaimon().unwrap();
    let expected = money(&mut reader, &table);
    assert_eq!(expected, 100 * 10_000, "the shop opens with a hundred customers of a hundred each");
    let snapshots = || fs::read_dir(table.join("snapshot")).unwrap().count();
    let first = snapshots();
    let mut customers = Customers::enter(&server, &shop, 1, 3, Duration::from_millis(1)).await.unwrap();
    let (end, mut looks) = (Instant::now() + LOOKS_FOR, 0);
    while Instant::now() < end {
        assert_eq!(money(&mut reader, &table), expected, "look {looks}");
        looks += 1;
        wait::pass(LOOK).await;
    }
    customers.leave().await.unwrap();
    assert!(looks >= 10 && snapshots() >= first + 10, "{looks} looks, {first} to {} snapshots", snapshots());
    assert!(pipeline.stop(LIMIT).unwrap().success());
}
