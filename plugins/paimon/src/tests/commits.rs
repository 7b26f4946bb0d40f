//! Epochs become snapshots, once.

use std::collections::BTreeMap;

use cdchost_sdk::harness::{Action, Fault};
use cdchost_sdk::{Committer, Op, Outcome};

use super::kit::{Warehouse, cut, orders, table};

fn rows(expect: &[(i32, &str)]) -> BTreeMap<i32, String> {
    expect.iter().map(|&(key, note)| (key, note.to_owned())).collect()
}

#[test]
fn rows_of_several_epochs_writers_and_buckets_are_there() {
    let warehouse = Warehouse::new();
    let (mut run, recovered) = warehouse.start(1, None, &[]).unwrap();
    assert_eq!(recovered.progress, None);
    let orders = orders();
    run.create(&orders).unwrap();
    let reads: Vec<_> = (0..200).map(|key| (key, Op::Read, 10, Some("read"))).collect();
    run.epoch(1, &orders, &reads);
    run.epoch(2, &orders, &[(1, Op::UpdateAfter, 12, Some("new")), (2, Op::Delete, 14, Some("read"))]);
    run.epoch(
        3,
        &orders,
        &[(1, Op::UpdateAfter, 16, Some("newer")), (900, Op::Insert, 18, None), (2, Op::Insert, 20, Some("back"))],
    );
    run.epoch(
        4,
        &orders,
        &[(3, Op::Delete, 22, Some("read")), (3, Op::Insert, 24, Some("again")), (4, Op::Delete, 26, None)],
    );
    let mut expected: BTreeMap<i32, String> = (0..200).map(|key| (key, "read".to_owned())).collect();
    expected.extend(rows(&[(1, "newer"), (2, "back"), (3, "again"), (900, "")]));
    expected.remove(&4);
    assert_eq!(warehouse.rows("orders"), expected);
    let snapshots = warehouse.snapshots("orders");
    assert_eq!(
        snapshots.iter().map(|s| (s.id, s.commit_identifier)).collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3), (4, 4)]
    );
    assert_eq!(snapshots[3].properties["cdchost.epoch"], "4");
    assert_eq!(snapshots[3].properties["cdchost.generation"], "1");
    assert_eq!(snapshots[3].properties["cdchost.max-sequence"], "26");
    let physical: i64 = warehouse.live_files("orders", &snapshots[3]).iter().map(|entry| entry.file.row_count).sum();
    assert_eq!(snapshots[3].total_record_count, Some(physical));
    let buckets: std::collections::BTreeSet<_> =
        warehouse.live_files("orders", &snapshots[0]).iter().map(|e| e.bucket).collect();
    assert_eq!(buckets, [0, 1, 2, 3].into());
    warehouse.keep("epochs");
}

#[test]
fn nothing_is_visible_before_its_commit() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.write(&orders(), &[(1, Op::Insert, 2, Some("a"))]).unwrap();
    let items = run.prepare(1).unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].rows, items[0].key.as_str()), (1, "shop.orders"));
    assert!(warehouse.snapshots("orders").is_empty());
    assert_eq!(warehouse.unnamed_data_files("orders").len(), 1);
    run.commit(1, &items).unwrap();
    assert_eq!(warehouse.rows("orders"), rows(&[(1, "a")]));
}

#[test]
fn a_commit_can_be_repeated_also_by_another_process() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    let first = run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("a"))]);
    let second = run.epoch(2, &orders(), &[(1, Op::UpdateAfter, 4, Some("b")), (2, Op::Insert, 6, Some("c"))]);
    for (epoch, items) in [(1, &first), (2, &second), (1, &first)] {
        let outcomes = run.commit(epoch, items).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::AlreadyCommitted), "{outcomes:?}");
    }
    let (_, recovered) = warehouse.start(2, Some(&cut(2, 1)), &second).unwrap();
    assert_eq!(recovered.outcomes, [Outcome::AlreadyCommitted, Outcome::AlreadyCommitted]);
    assert_eq!(recovered.progress.unwrap().cut, cut(2, 1));
    assert_eq!(warehouse.snapshots("orders").len(), 2);
    assert_eq!(warehouse.rows("orders"), rows(&[(1, "b"), (2, "c")]));
}

#[test]
fn two_processes_that_commit_at_once_make_one_snapshot() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    for epoch in 1..=30 {
        run.write(&orders(), &[(epoch as i32, Op::Insert, epoch as i64, Some("a"))]).unwrap();
        let items = run.prepare(epoch).unwrap();
        let commit = || {
            let mut committer = warehouse.committer(1).unwrap();
            let at = cut(epoch, 1);
            warehouse.world.run(&warehouse.instance(1, 0), || committer.commit(&at, &items)).unwrap()
        };
        let outcomes = std::thread::scope(|scope| {
            [scope.spawn(commit), scope.spawn(commit)].map(|process| process.join().unwrap())
        });
        let visible = |outcome: &Outcome| matches!(outcome, Outcome::Committed | Outcome::AlreadyCommitted);
        assert!(outcomes.iter().flatten().all(visible), "{outcomes:?}");
        assert_eq!(warehouse.snapshots("orders").len(), epoch as usize);
    }
    assert_eq!(warehouse.rows("orders").len(), 30);
}

#[test]
fn an_answer_that_was_lost_does_not_commit_twice() {
    for path in ["snapshot/snapshot-1", "epochs/epoch-1"] {
        let warehouse = Warehouse::new();
        let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
        run.create(&orders()).unwrap();
        run.write(&orders(), &[(1, Op::Insert, 2, Some("a"))]).unwrap();
        let items = run.prepare(1).unwrap();
        warehouse.world.fail(Action::PutIfAbsent, path, Fault::After, 1);
        let first = run.commit(1, &items);
        let failed = first.is_err() || matches!(first.as_deref(), Ok([Outcome::Failed(_)]));
        assert!(failed, "{path}: {first:?}");
        assert_eq!(run.commit(1, &items).unwrap(), [Outcome::AlreadyCommitted], "{path}");
        assert_eq!(warehouse.snapshots("orders").len(), 1);
        assert_eq!(warehouse.rows("orders"), rows(&[(1, "a")]));
    }
}

#[test]
fn an_epoch_without_rows_moves_only_the_marker() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("a"))]);
    // Epochs have gaps: those in which nothing changed get no record.
    for epoch in (2..30).map(|step| step * 33) {
        assert_eq!(run.prepare(epoch).unwrap(), []);
        assert_eq!(run.commit(epoch, &[]).unwrap(), []);
    }
    assert_eq!(warehouse.snapshots("orders").len(), 1);
    let markers = warehouse.paths().into_iter().filter(|path| path.contains("/epochs/")).count();
    assert!(markers <= 8, "{markers} markers");
    let (_, recovered) = warehouse.start(2, Some(&cut(29 * 33, 1)), &[]).unwrap();
    assert_eq!(recovered.progress.unwrap().cut, cut(29 * 33, 1));
}

#[test]
fn progress_reports_the_highest_sequence_number_of_the_lake() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Insert, 5_000, Some("a"))]);
    let (_, recovered) = warehouse.start(2, Some(&cut(1, 1)), &[]).unwrap();
    assert_eq!(recovered.progress.unwrap().cut.change_seq, 5_000);
}

#[test]
fn a_table_that_others_commit_to_is_tried_again_on_their_snapshot() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("a"))]);
    // Somebody else's empty commit on top, unknown to this committer, which last saw snapshot 1.
    let mut foreign = warehouse.snapshots("orders").pop().unwrap();
    (foreign.id, foreign.commit_user, foreign.commit_identifier) = (2, "somebody".into(), i64::MAX);
    foreign.properties.clear();
    warehouse.world.put("lake", "wh/shop.db/orders/snapshot/snapshot-2", &foreign.to_json());
    run.epoch(2, &orders(), &[(2, Op::Insert, 4, Some("b"))]);
    assert_eq!(warehouse.snapshots("orders").len(), 3);
    assert_eq!(warehouse.rows("orders"), rows(&[(1, "a"), (2, "b")]));
}

#[test]
fn prepared_files_that_are_gone_are_reported_lost_by_name() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.write(&orders(), &[(1, Op::Insert, 2, Some("a"))]).unwrap();
    let items = run.prepare(1).unwrap();
    let file = warehouse.unnamed_data_files("orders").pop().unwrap();
    warehouse.world.remove("lake", &file);
    let outcomes = run.commit(1, &items).unwrap();
    let [Outcome::Lost(what)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert!(what.contains(file.rsplit('/').next().unwrap()), "{what}");
    let (_, recovered) = warehouse.start(2, Some(&cut(1, 1)), &items).unwrap();
    assert!(matches!(recovered.outcomes.as_slice(), [Outcome::Lost(_)]));
    assert_eq!(recovered.progress, None);
    assert!(warehouse.snapshots("orders").is_empty());
}

#[test]
fn aborted_files_are_removed() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.write(&orders(), &[(1, Op::Insert, 2, Some("a")), (2, Op::Insert, 4, Some("b"))]).unwrap();
    let items = run.prepare(1).unwrap();
    assert_eq!(warehouse.unnamed_data_files("orders").len(), 2);
    run.committer(|committer| committer.abort(&items)).unwrap();
    assert_eq!(warehouse.unnamed_data_files("orders"), Vec::<String>::new());
}

#[test]
fn a_table_after_a_rollback_takes_the_same_epochs_again() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    for epoch in 1..=3 {
        run.epoch(epoch, &orders(), &[(epoch as i32, Op::Insert, epoch as i64 * 2, Some("a"))]);
    }
    for id in [2, 3] {
        warehouse.world.remove("lake", &format!("wh/shop.db/orders/snapshot/snapshot-{id}"));
    }
    run.epoch(4, &orders(), &[(9, Op::Insert, 40, Some("b"))]);
    assert_eq!(
        warehouse.snapshots("orders").iter().map(|s| (s.id, s.commit_identifier)).collect::<Vec<_>>(),
        [(1, 1), (2, 4)]
    );
    assert_eq!(warehouse.rows("orders"), rows(&[(1, "a"), (9, "b")]));
}

#[test]
fn a_full_write_buffer_makes_files_before_the_barrier() {
    let mut warehouse = Warehouse::new();
    warehouse.options["write-buffer"] = "64KiB".into();
    warehouse.options["target-file-size"] = "64KiB".into();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    for part in 0..40 {
        let changes: Vec<_> =
            (0..500).map(|key| (part * 500 + key, Op::Read, 10, Some("some text that takes room"))).collect();
        run.write(&orders(), &changes).unwrap();
    }
    assert!(warehouse.unnamed_data_files("orders").len() > 20);
    let items = run.prepare(1).unwrap();
    run.commit(1, &items).unwrap();
    assert_eq!(warehouse.unnamed_data_files("orders"), Vec::<String>::new());
    assert_eq!(warehouse.rows("orders").len(), 20_000);
}

#[test]
fn a_store_that_fails_while_room_is_made_leaves_the_batch_untaken() {
    let mut warehouse = Warehouse::new();
    warehouse.options["write-buffer"] = "64KiB".into();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    let changes = |from: i32| (from..from + 4_000).map(|key| (key * 2, Op::Read, 10, Some("text"))).collect::<Vec<_>>();
    run.write(&orders(), &changes(0)).unwrap();
    warehouse.world.fail(Action::UploadFinish, "bucket-", Fault::Before, 1);
    let error = run.write(&orders(), &changes(4_000)).unwrap_err();
    assert_eq!(error.retry, cdchost_sdk::Retry::Backoff, "{error:?}");
    run.write(&orders(), &changes(4_000)).unwrap();
    let items = run.prepare(1).unwrap();
    run.commit(1, &items).unwrap();
    assert_eq!(warehouse.rows("orders").len(), 8_000);
    assert_eq!(warehouse.unnamed_data_files("orders"), Vec::<String>::new());
}

#[test]
fn each_table_steps_with_its_own_snapshot() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.create(&table("items")).unwrap();
    run.write(&orders(), &[(1, Op::Insert, 2, Some("order"))]).unwrap();
    run.write(&table("items"), &[(7, Op::Insert, 4, Some("item"))]).unwrap();
    let items = run.prepare(1).unwrap();
    assert_eq!(items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["shop.items", "shop.orders"]);
    run.commit(1, &items).unwrap();
    run.epoch(2, &table("items"), &[(7, Op::Delete, 6, None)]);
    assert_eq!(warehouse.rows("orders"), rows(&[(1, "order")]));
    assert_eq!((warehouse.snapshots("orders").len(), warehouse.snapshots("items").len()), (1, 2));
    assert!(warehouse.rows("items").is_empty());
}
