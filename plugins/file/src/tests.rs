//! The sink as its host and its readers see it.

use cdchost_sdk::harness::{Action, Check, Fault, Harness, Table, World, check_sink};
use cdchost_sdk::{LogicalType, row};
use serde_json::json;

use super::*;

fn visible(world: &World) -> Vec<String> {
    let parts = world.paths("out").into_iter().filter(|path| path.contains("/part-"));
    let lines = parts.flat_map(|path| {
        let text = String::from_utf8(world.object("out", &path).unwrap()).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines.collect()
}

fn left_over(world: &World) -> Vec<String> {
    let paths = world.paths("out");
    let (markers, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.contains("_progress/"));
    others.into_iter().filter(|path| path.contains("_staging/")).chain(markers.into_iter().skip(1)).collect()
}

fn orders() -> Table {
    Table::new("shop.orders").key("id", LogicalType::Int64).column("note", LogicalType::Text { max: None })
}

fn sink(world: &World) -> Harness<File> {
    Harness::new(world.clone(), json!({ "path": "out/log" }))
}

#[test]
fn the_contract_is_kept_wherever_the_process_dies() {
    let config = json!({ "path": "out/log", "metadata": ["change-seq", "transaction"], "before-images": true });
    check_sink::<File>(&Check { config, roots: &["out"], visible: &visible, left_over: &left_over });
}

#[test]
fn the_contract_is_kept_with_many_small_files() {
    let config = json!({ "path": "out", "part-size": "64" });
    check_sink::<File>(&Check { config, roots: &["out"], visible: &visible, left_over: &left_over });
}

#[test]
fn files_lie_by_database_and_table_and_their_names_tell_epoch_and_subtask() {
    let mut sink = sink(&World::new(&["out"])).with_parallelism(2);
    sink.start().unwrap();
    sink.write(1, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
    sink.checkpoint().unwrap();
    assert_eq!(
        sink.world().paths("out"),
        [
            "log/_progress/00000000000000000001-00000000000000000001.json",
            "log/shop/orders/part-00000000000000000001-00001-00000.jsonl",
        ]
    );
    assert_eq!(visible(sink.world()), [r#"{"op":"insert","table":"shop.orders","row":{"id":1,"note":"a"}}"#]);
}

#[test]
fn a_full_file_is_staged_and_the_next_begun() {
    let world = World::new(&["out"]);
    let mut sink: Harness<File> = Harness::new(world, json!({ "path": "out", "part-size": "1KiB" }));
    sink.start().unwrap();
    for id in 0..40_i64 {
        sink.write(0, orders().rows(id).insert(row![id, "a note of some length"])).unwrap();
    }
    let prepared = sink.prepare().unwrap();
    assert_eq!((prepared.items.len(), prepared.items[0].rows), (1, 40));
    sink.store(&prepared);
    sink.commit(&prepared).unwrap();
    let paths = sink.world().paths("out");
    let parts: Vec<_> = paths.iter().filter(|path| path.starts_with("shop/orders/part-")).collect();
    assert!(parts.len() > 2, "{parts:?}");
    assert!(parts.iter().all(|path| sink.world().object("out", path).unwrap().len() <= 1024));
    let ids: Vec<_> =
        visible(sink.world()).iter().map(|line| line.split([':', ',']).nth(6).unwrap().to_owned()).collect();
    assert_eq!(ids, (0..40).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_batch_that_meets_a_failing_store_is_not_taken() {
    let world = World::new(&["out"]);
    let mut sink: Harness<File> = Harness::new(world, json!({ "path": "out", "part-size": "1KiB" }));
    sink.start().unwrap();
    let rows = |id: i64| orders().rows(id).insert(row![id, "x".repeat(900).as_str()]);
    sink.write(0, rows(1)).unwrap();
    sink.world().fail(Action::PutIfAbsent, "_staging/", Fault::After, 1);
    let error = sink.write(0, rows(2)).unwrap_err();
    assert_eq!(error.code, "store-unavailable");
    sink.write(0, rows(2)).unwrap();
    sink.checkpoint().unwrap();
    assert_eq!(visible(sink.world()).len(), 2);
}

#[test]
fn what_was_prepared_and_is_gone_is_lost_loudly() {
    let mut sink = sink(&World::new(&["out"]));
    sink.start().unwrap();
    sink.write(0, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
    let prepared = sink.prepare().unwrap();
    sink.store(&prepared);
    for path in sink.world().paths("out") {
        sink.world().remove("out", &path);
    }
    assert_eq!(sink.commit(&prepared).unwrap_err().code, "lost");
    assert_eq!(sink.start().unwrap_err().code, "lost");
    assert_eq!(sink.world().paths("out"), Vec::<String>::new(), "a lost epoch is not marked");
}

#[test]
fn a_part_of_that_name_with_other_content_is_no_commit() {
    let mut sink = sink(&World::new(&["out"]));
    sink.start().unwrap();
    sink.write(0, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
    let prepared = sink.prepare().unwrap();
    sink.store(&prepared);
    let part = "log/shop/orders/part-00000000000000000001-00000-00000.jsonl";
    sink.world().put("out", part, b"{}\n");
    assert_eq!(sink.commit(&prepared).unwrap_err().code, "part-taken");
    assert_eq!(sink.world().object("out", part).unwrap(), b"{}\n");
    assert!(sink.world().paths("out").iter().any(|path| path.contains("_staging/")), "what was prepared is kept");
}

#[test]
fn another_pipelines_folder_is_left_alone() {
    let mut first = sink(&World::new(&["out"]));
    first.start().unwrap();
    first.write(0, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
    first.checkpoint().unwrap();
    let before = first.world().paths("out");
    let mut second = sink(first.world()).with_pipeline("other");
    let error = second.start().unwrap_err();
    assert_eq!(error.code, "other-pipeline");
    assert!(error.message.contains("test") && error.message.contains("other"), "{error}");
    assert_eq!(first.world().paths("out"), before);
}

#[test]
fn an_older_run_refuses_to_commit_when_it_sees_a_later_one() {
    let mut sink = sink(&World::new(&["out"]));
    sink.start().unwrap();
    sink.write(0, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
    let first = sink.checkpoint().unwrap();
    sink.start().unwrap();
    sink.write(0, orders().rows(2).insert(row![2_i64, "b"])).unwrap();
    sink.checkpoint().unwrap();
    assert_eq!(sink.commit_elsewhere(1, &first).unwrap_err().code, "later-run");
}

/// Epochs without changes use up numbers, so that two runs on copies of one checkpoint store may commit the same one, an
/// earlier or a later one.
#[test]
fn of_two_processes_on_copies_of_one_state_the_second_to_commit_is_stopped() {
    for second_epoch in [1, 4, 9] {
        let world = World::new(&["out"]);
        let (mut first, mut second) = (sink(&world), sink(&world));
        first.start().unwrap();
        second.start().unwrap();
        first.write(0, orders().rows(1).insert(row![1_i64, "a"])).unwrap();
        second.write(0, orders().rows(1).insert(row![1_i64, "a"]).insert(row![2_i64, "b"])).unwrap();
        let mut prepared = [first.prepare().unwrap(), second.prepare().unwrap()];
        prepared[1].cut.offset = vec![9];
        for (checkpoint, epoch) in prepared.iter_mut().zip([4, second_epoch]) {
            checkpoint.cut.epoch = epoch;
            checkpoint.items.iter_mut().for_each(|item| item.epoch = epoch);
        }
        first.commit(&prepared[0]).unwrap();
        assert_eq!(second.commit(&prepared[1]).unwrap_err().code, "fenced", "epoch {second_epoch}");
        assert_eq!(visible(&world).len(), 1, "epoch {second_epoch}: {:?}", visible(&world));
    }
}

#[test]
fn paths_that_leave_the_store_and_unknown_options_are_refused() {
    for config in [
        json!({ "path": "" }),
        json!({ "path": "out/../x" }),
        json!({ "path": "out", "colour": 1 }),
        json!({}),
        json!({ "path": "out", "part-size": "1GiB" }),
    ] {
        let error = Harness::<File>::new(World::new(&["out"]), config.clone()).start().unwrap_err();
        assert_eq!(error.blame, cdchost_sdk::Blame::Config, "{config}: {error}");
    }
    let error = Harness::<File>::new(World::new(&[]), json!({ "path": "out" })).start().unwrap_err();
    assert_eq!(error.code, "store-denied");
}

#[test]
fn the_readme_has_the_options_as_they_are() {
    cdchost_sdk::harness::check_readme::<File>(env!("CARGO_MANIFEST_DIR"));
}
