//! Others in the same warehouse: refused with names, or left alone.

use std::sync::Arc;

use cdchost_sdk::{Blame, Committer, LogicalType, Op, Outcome, Schema, SchemaChange, SchemaChangeRequest};
use serde_json::{Value, json};

use super::kit::{Warehouse, cut, orders, schema};

fn with_one_epoch() -> Warehouse {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(3, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("a"))]);
    warehouse
}

#[test]
fn another_pipeline_is_refused_and_both_are_named() {
    let warehouse = with_one_epoch();
    let other = Warehouse { pipeline: "second".into(), ..warehouse.clone() };
    let error = other.start(1, None, &[]).map(drop).unwrap_err();
    assert_eq!(error.blame, Blame::Config);
    assert!(error.message.contains("\"test\"") && error.message.contains("\"second\""), "{error}");
    assert!(error.message.contains("lake/wh"), "{error}");
}

#[test]
fn a_table_of_another_pipeline_is_refused_and_both_are_named() {
    let warehouse = with_one_epoch();
    // Its marker is gone, as if the other wrote through a sink of another id.
    for path in warehouse.paths().into_iter().filter(|path| path.contains("/_cdchost/")) {
        warehouse.world.remove("lake", &path);
    }
    let other = Warehouse { pipeline: "second".into(), ..warehouse.clone() };
    let (mut run, _) = other.start(1, None, &[]).unwrap();
    let error = run.create(&orders()).unwrap_err();
    assert!(error.message.contains("\"test\"") && error.message.contains("\"second\""), "{error}");
}

#[test]
fn a_run_that_was_taken_over_is_refused() {
    let warehouse = with_one_epoch();
    let error = warehouse.start(2, Some(&cut(1, 2)), &[]).map(drop).unwrap_err();
    assert_eq!((error.code.as_str(), error.blame), ("fenced", Blame::Remote));
    assert!(error.message.contains("generation 2") && error.message.contains("generation 3"), "{error}");
    // One that was there before its successor, and still has something prepared.
    let (mut old, _) = warehouse.start(4, Some(&cut(1, 3)), &[]).unwrap();
    old.create(&orders()).unwrap();
    old.write(&orders(), &[(2, Op::Insert, 4, Some("b"))]).unwrap();
    let items = old.prepare(2).unwrap();
    let (mut successor, _) = warehouse.start(5, Some(&cut(1, 3)), &[]).unwrap();
    successor.create(&orders()).unwrap();
    successor.epoch(3, &orders(), &[(3, Op::Insert, 6, Some("c"))]);
    for epoch in [2, 9] {
        let mut late = items.clone();
        late[0].epoch = epoch;
        let outcomes = old.commit(epoch, &late).unwrap();
        let [Outcome::Failed(error)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
        assert_eq!(error.code, "fenced");
    }
    assert_eq!(warehouse.rows("orders").into_keys().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_fresh_start_over_an_old_target_may_write_when_the_host_lets_it() {
    let warehouse = with_one_epoch();
    let (mut run, recovered) = warehouse.start(1, None, &[]).unwrap();
    assert_eq!(recovered.progress.unwrap().cut.generation, 3);
    run.create(&orders()).unwrap();
    run.epoch(2, &orders(), &[(2, Op::Insert, 4, Some("b"))]);
    assert_eq!(warehouse.rows("orders").len(), 2);
}

#[test]
fn an_epoch_that_is_partly_visible_and_in_no_record_is_a_final_stop() {
    let warehouse = with_one_epoch();
    let (mut run, _) = warehouse.start(4, Some(&cut(1, 3)), &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(2, &orders(), &[(2, Op::Insert, 4, Some("b"))]);
    warehouse.world.remove("lake", "wh/_cdchost/sink/epochs/epoch-2");
    let error = warehouse.start(5, Some(&cut(1, 3)), &[]).map(drop).unwrap_err();
    assert_eq!(error.code, "partly-visible");
    assert!(error.message.contains("shop.orders shows epoch 2"), "{error}");
}

#[test]
fn a_table_with_other_columns_is_refused_in_words() {
    let warehouse = with_one_epoch();
    let (mut run, _) = warehouse.start(4, Some(&cut(1, 3)), &[]).unwrap();
    let other = schema("orders", &[("id", LogicalType::Int64, false), ("note", LogicalType::Text { max: None }, true)]);
    let error = run.create(&other).unwrap_err();
    assert!(error.message.contains("its column id is INT NOT NULL, wanted is BIGINT NOT NULL"), "{error}");
    // The same columns under another limit are the same table.
    run.create(&schema("orders", &[("id", LogicalType::Int32, false), ("note", LogicalType::Json, true)])).unwrap();
}

#[test]
fn what_cannot_be_a_table_is_refused_in_words() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    let mut spread = (*orders()).clone();
    spread.primary_key.clear();
    spread.options = vec![("bucket".into(), "4".into())];
    let mut partitioned = (*orders()).clone();
    partitioned.partition_key = vec![1];
    let reserved = schema("orders", &[("id", LogicalType::Int32, false), ("_VALUE_KIND", LogicalType::Json, true)]);
    let mut odd_name = (*orders()).clone();
    odd_name.table.table = "a/../b".into();
    let mut dynamic = (*orders()).clone();
    dynamic.options = vec![("bucket".into(), "-1".into())];
    for (schema, expect) in [
        (spread.into(), "nothing to be spread by"),
        (partitioned.into(), "no part of its key"),
        (reserved, "keeps the names of its columns"),
        (odd_name.into(), "no table named"),
        (dynamic.into(), "wanted is a fixed number"),
    ] {
        let error = run.create(&schema).unwrap_err();
        assert!(error.message.contains(expect), "{error}");
    }
    let request = SchemaChangeRequest {
        id: "x".into(),
        at: cut(1, 1),
        before: Some(orders()),
        change: SchemaChange::TruncateTable,
        after: Some(orders()),
    };
    let error = run.committer(|committer| committer.apply_schema_change(&request)).unwrap_err();
    assert!(error.message.contains("truncate-table of table shop.orders is not offered"), "{error}");
    assert!(warehouse.paths().is_empty(), "{:?}", warehouse.paths());
}

#[test]
fn options_of_a_table_come_from_the_pipeline_file() {
    let mut warehouse = Warehouse::new();
    warehouse.options["table"] = serde_json::json!({"bucket": 2, "file": {"compression": "none"}, "write-only": false});
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    let schema = warehouse.world.object("lake", "wh/shop.db/orders/schema/schema-0").unwrap();
    let schema = crate::format::schema::LakeSchema::parse(&schema).unwrap();
    let options: Vec<_> = schema.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        options,
        [
            "bucket=2",
            "cdchost.pipeline=test",
            "cdchost.sink=sink",
            "data-file.thin-mode=true",
            "file.compression=none",
            "file.format=parquet",
            "write-only=false"
        ]
    );
}

#[test]
fn a_table_that_has_changed_before_its_first_commit_is_made_anew() {
    let before =
        schema("orders", &[("id", LogicalType::Int32, false), ("remark", LogicalType::Text { max: None }, true)]);
    let warehouse = Warehouse::new();
    let (mut killed, _) = warehouse.start(1, None, &[]).unwrap();
    killed.create(&before).unwrap();
    killed.write(&before, &[(1, Op::Read, 2, Some("lost"))]).unwrap();
    killed.prepare(1).unwrap();
    let (mut run, _) = warehouse.start(2, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Read, 2, Some("a")), (2, Op::Read, 2, Some("b"))]);
    assert_eq!(warehouse.rows("orders"), [(1, "a".to_owned()), (2, "b".to_owned())].into());
    assert_eq!(warehouse.snapshots("orders")[0].schema_id, 1);
    warehouse.keep("made-anew");
    // With rows in it, it is not.
    let (mut later, _) = warehouse.start(3, Some(&cut(1, 2)), &[]).unwrap();
    let error = later.create(&before).unwrap_err();
    assert_eq!(error.code, "table-differs");
}

/// What the pipeline file and the source say of the table in one run.
struct Wish {
    options: Value,
    schema: Arc<Schema>,
    /// What the folders of its data files begin with.
    prefix: &'static str,
    buckets: i32,
}

fn wish(key: &[u32], divided_by: &[&str], bucket: i32, prefix: &'static str) -> Wish {
    let text = LogicalType::Text { max: Some(20) };
    let mut schema = (*schema("orders", &[("id", LogicalType::Int32, false), ("note", text, false)])).clone();
    schema.primary_key = key.to_vec();
    let mut options = json!({"warehouse": "lake/wh", "table": {"bucket": bucket}});
    if !divided_by.is_empty() {
        options["partition-keys"] = json!({"shop.orders": divided_by});
    }
    let buckets = if key.is_empty() { -1 } else { bucket };
    Wish { options, schema: schema.into(), prefix, buckets }
}

/// Runs that die before their first commit, each with another pipeline file or another table: the last one writes what
/// it wants, and nothing of the dead ones is left.
#[test]
fn what_dead_runs_wanted_of_a_table_without_rows_is_forgotten() {
    let whole = || wish(&[0], &[], 4, "bucket-");
    let by_note = || wish(&[0, 1], &["note"], 4, "note=a/");
    for (what, dead, last) in [
        ("divided now", vec![wish(&[0, 1], &[], 4, "")], by_note()),
        ("divided and of another key now", vec![whole()], by_note()),
        ("whole now", vec![by_note()], wish(&[0, 1], &[], 4, "bucket-")),
        ("divided by another column now", vec![by_note()], wish(&[0, 1], &["id"], 4, "id=1/")),
        ("in fewer buckets now", vec![whole()], wish(&[0], &[], 2, "bucket-")),
        ("without a key now", vec![whole()], wish(&[], &[], 4, "bucket-0/")),
        ("without a key, then divided", vec![wish(&[], &[], 4, "")], wish(&[], &["note"], 4, "note=a/")),
        ("changed twice", vec![whole(), by_note()], wish(&[0], &[], 3, "bucket-")),
        ("changed and back", vec![by_note(), whole()], by_note()),
    ] {
        let mut warehouse = Warehouse::new();
        let mut generation = 0;
        let mut begin = |warehouse: &mut Warehouse, wish: &Wish| {
            generation += 1;
            warehouse.options = wish.options.clone();
            let (mut run, _) = warehouse.start(generation, None, &[]).unwrap();
            run.create(&wish.schema).unwrap_or_else(|error| panic!("{what}: {error}"));
            run
        };
        for wish in &dead {
            let mut run = begin(&mut warehouse, wish);
            run.write(&wish.schema, &[(1, Op::Read, 2, Some("a"))]).unwrap();
            run.prepare(1).unwrap();
        }
        let mut run = begin(&mut warehouse, &last);
        run.write(&last.schema, &[(1, Op::Read, 2, Some("a"))]).unwrap();
        let items = run.prepare(1).unwrap();
        let outcomes = run.commit(1, &items).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(outcomes, [Outcome::Committed], "{what}");
        let snapshot = warehouse.snapshots("orders").pop().unwrap();
        let [entry] = warehouse.live_files("orders", &snapshot).try_into().unwrap();
        assert_eq!(entry.total_buckets, last.buckets, "{what}");
        assert_eq!(warehouse.unnamed_data_files("orders"), Vec::<String>::new(), "{what}");
        let file = warehouse.paths().into_iter().find(|path| path.ends_with(&entry.file.name)).unwrap();
        assert!(file.starts_with(&format!("wh/shop.db/orders/{}", last.prefix)), "{what}: {file}");
    }
}

/// What a checkpoint holds of the dead run is committed as it was written; only then is the change refused.
#[test]
fn what_a_checkpoint_holds_is_committed_before_a_change_is_refused() {
    let (before, after) = (wish(&[0, 1], &[], 4, ""), wish(&[0, 1], &["note"], 4, ""));
    let mut warehouse = Warehouse { options: before.options, ..Warehouse::new() };
    let (mut killed, _) = warehouse.start(1, None, &[]).unwrap();
    killed.create(&before.schema).unwrap();
    killed.write(&before.schema, &[(1, Op::Read, 2, Some("a"))]).unwrap();
    let items = killed.prepare(1).unwrap();
    warehouse.options = after.options;
    let (mut run, recovered) = warehouse.start(2, Some(&cut(1, 1)), &items).unwrap();
    assert_eq!(recovered.outcomes, [Outcome::Committed]);
    let error = run.create(&after.schema).unwrap_err();
    assert!(error.message.contains("its partition key is (), wanted is (note)"), "{error}");
    assert_eq!(warehouse.rows("orders"), [(1, "a".to_owned())].into());
}
