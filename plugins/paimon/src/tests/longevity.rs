//! Many epochs: metadata stays small, and what others still need stays.

use cdchost_sdk::Op;
use serde_json::json;

use super::kit::{Warehouse, cut, orders};

fn files(warehouse: &Warehouse, folder: &str) -> usize {
    let prefix = format!("wh/shop.db/orders/{folder}/");
    warehouse.paths().iter().filter(|path| path.starts_with(&prefix)).count()
}

fn long_run(warehouse: &Warehouse, epochs: std::ops::Range<u64>) {
    let generation = epochs.start;
    let restored = epochs.start.checked_sub(1).filter(|&epoch| epoch > 0).map(|epoch| cut(epoch, generation));
    let (mut run, _) = warehouse.start(generation, restored.as_ref(), &[]).unwrap();
    run.create(&orders()).unwrap();
    for epoch in epochs {
        run.epoch(epoch, &orders(), &[(epoch as i32 % 50, Op::UpdateAfter, epoch as i64 * 2, Some("x"))]);
        warehouse.world.advance(1_000_000);
    }
}

#[test]
fn snapshots_and_manifests_do_not_pile_up() {
    let mut warehouse = Warehouse::new();
    warehouse.options["snapshot"] = json!({"num-retained": 5, "time-retained": "10s"});
    long_run(&warehouse, 1..200);
    let snapshots = warehouse.snapshots("orders");
    assert_eq!(snapshots.last().unwrap().id, 199);
    assert!(snapshots.len() <= 10 + 16, "{} snapshots", snapshots.len());
    assert!(files(&warehouse, "manifest") <= 150, "{} manifests", files(&warehouse, "manifest"));
    let newest = warehouse.live_files("orders", snapshots.last().unwrap());
    assert_eq!(newest.len(), 199);
    // Every snapshot that is there can be read whole.
    for snapshot in &snapshots {
        assert_eq!(warehouse.rows_at("orders", snapshot).len(), 50);
    }
    warehouse.keep("long");
}

#[test]
fn the_files_of_a_tag_and_the_snapshots_of_a_consumer_stay() {
    let mut warehouse = Warehouse::new();
    warehouse.options["snapshot"] = json!({"num-retained": 1, "time-retained": "0s"});
    long_run(&warehouse, 1..40);
    let tagged = warehouse.snapshots("orders").pop().unwrap();
    let rows = warehouse.rows("orders");
    warehouse.world.put("lake", "wh/shop.db/orders/tag/tag-kept", &tagged.to_json());
    long_run(&warehouse, 40..120);
    assert!(warehouse.snapshots("orders")[0].id > tagged.id);
    assert_eq!(warehouse.rows_at("orders", &tagged), rows);
    let oldest = warehouse.snapshots("orders")[0].id;
    let consumer = format!("{{\"nextSnapshot\": {}}}", oldest + 3);
    warehouse.world.put("lake", "wh/shop.db/orders/consumer/consumer-c", consumer.as_bytes());
    long_run(&warehouse, 120..200);
    assert_eq!(warehouse.snapshots("orders")[0].id, oldest + 3);
}

#[test]
fn the_newest_own_snapshot_stays_under_any_number_of_foreign_ones() {
    let mut warehouse = Warehouse::new();
    warehouse.options["snapshot"] = json!({"num-retained": 1, "time-retained": "0s"});
    long_run(&warehouse, 1..3);
    let own = warehouse.snapshots("orders").pop().unwrap();
    for id in own.id + 1..own.id + 30 {
        let mut foreign = own.clone();
        (foreign.id, foreign.commit_user) = (id, "somebody".into());
        foreign.delta_manifest_list = own.base_manifest_list.clone();
        warehouse.world.put("lake", &format!("wh/shop.db/orders/snapshot/snapshot-{id}"), &foreign.to_json());
    }
    let settings = serde_json::from_value::<crate::Options>(warehouse.options.clone()).unwrap().settings().unwrap();
    let (mut run, _) = warehouse.start(3, Some(&cut(2, 1)), &[]).unwrap();
    run.committer(|committer| committer.expire_for_tests(&orders().table, &settings)).unwrap();
    assert_eq!(warehouse.snapshots("orders")[0].id, own.id);
    let (_, recovered) = warehouse.start(4, Some(&cut(2, 1)), &[]).unwrap();
    assert_eq!(recovered.progress.unwrap().cut.epoch, 2);
}
