//! Two processes on copies of one state, and tables that somebody emptied: a clear stop, no row lost or doubled.

use cdchost_sdk::{Blame, Committable, Committer, Cut, Op, Outcome, PluginError, Retry};

use super::kit::{Run, Warehouse, cut, orders, table};

/// What a run has in its checkpoint store after the first epoch: both processes begin there.
fn with_one_epoch() -> Warehouse {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    run.create(&orders()).unwrap();
    run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("first"))]);
    warehouse
}

fn process(warehouse: &Warehouse) -> Run {
    let (mut run, _) = warehouse.start(2, Some(&cut(1, 1)), &[]).unwrap();
    run.create(&orders()).unwrap();
    run
}

/// The rows of an epoch that ends at another place in the source's log than the other process's.
fn prepare(run: &mut Run, epoch: u64, keys: &[i32]) -> (Cut, Vec<Committable>) {
    let rows: Vec<_> = keys.iter().map(|&key| (key, Op::Insert, 10 + i64::from(key), Some("row"))).collect();
    run.write(&orders(), &rows).unwrap();
    let at = Cut { offset: keys.iter().map(|&key| key as u8).collect(), ..cut(epoch, 2) };
    let prepare = |run: &mut Run, subtask| {
        run.writer(subtask, |writer| cdchost_sdk::Writer::prepare_commit(writer, &at)).unwrap()
    };
    let items = [prepare(run, 0), prepare(run, 1)].concat();
    (at, items)
}

fn refusal(outcomes: cdchost_sdk::Result<Vec<Outcome>>) -> PluginError {
    match outcomes {
        Err(error) => error,
        Ok(outcomes) => {
            let [Outcome::Failed(error), ..] = outcomes.as_slice() else { panic!("{outcomes:?}") };
            error.clone()
        }
    }
}

#[test]
fn of_two_processes_on_copies_of_one_state_the_second_to_commit_is_stopped() {
    // Epochs without changes use up numbers, so that the second one's may be the same, a later or an earlier one.
    for (first_epoch, second_epoch) in [(2, 2), (2, 5), (5, 2)] {
        let warehouse = with_one_epoch();
        let (mut first, mut second) = (process(&warehouse), process(&warehouse));
        let (at, items) = prepare(&mut first, first_epoch, &[2]);
        let (other_at, other_items) = prepare(&mut second, second_epoch, &[2, 3]);
        let outcomes = first.committer(|committer| committer.commit(&at, &items)).unwrap();
        assert_eq!(outcomes, [Outcome::Committed]);
        let error = refusal(second.committer(|committer| committer.commit(&other_at, &other_items)));
        assert_eq!((error.code.as_str(), error.blame, error.retry), ("fenced", Blame::Remote, Retry::Never));
        assert!(error.message.contains("shop.orders") && error.message.contains("copy of its state"), "{error}");
        assert_eq!(warehouse.rows("orders").into_keys().collect::<Vec<_>>(), [1, 2]);
        // The first goes on with what the second had read as well.
        let (at, items) = prepare(&mut first, 9, &[3]);
        first.committer(|committer| committer.commit(&at, &items)).unwrap();
        assert_eq!(warehouse.rows("orders").into_keys().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(warehouse.snapshots("orders").len(), 3);
    }
}

#[test]
fn a_process_whose_record_another_one_committed_otherwise_is_stopped_at_its_start() {
    let warehouse = with_one_epoch();
    let (mut first, mut second) = (process(&warehouse), process(&warehouse));
    let (at, items) = prepare(&mut first, 2, &[2]);
    let (other_at, other_items) = prepare(&mut second, 2, &[2, 3]);
    first.committer(|committer| committer.commit(&at, &items)).unwrap();
    let error = warehouse.start(3, Some(&other_at), &other_items).map(drop).unwrap_err();
    assert_eq!(error.code, "fenced");
    // Neither are files touched that a lake ahead of the record may hold for somebody else.
    let (_, unfinished) = prepare(&mut first, 3, &[4]);
    let files = warehouse.unnamed_data_files("orders");
    warehouse.start(4, Some(&cut(1, 1)), &[]).map(drop).unwrap();
    assert_eq!(warehouse.unnamed_data_files("orders"), files);
    assert_eq!(first.commit(3, &unfinished).unwrap(), [Outcome::Committed]);
}

#[test]
fn an_epoch_without_rows_of_another_process_stops_too() {
    let warehouse = with_one_epoch();
    let (mut first, mut second) = (process(&warehouse), process(&warehouse));
    first.commit(2, &[]).unwrap();
    let other = Cut { offset: vec![9], ..cut(2, 2) };
    let error = refusal(second.committer(|committer| committer.commit(&other, &[])));
    assert_eq!(error.code, "fenced");
}

#[test]
fn a_table_that_was_emptied_stops_the_run_and_is_named() {
    for folder in ["wh/shop.db/orders/snapshot/", "wh/shop.db/orders/", "wh/shop.db/"] {
        for restarts in [false, true] {
            let warehouse = with_one_epoch();
            let mut run = process(&warehouse);
            for path in warehouse.paths().into_iter().filter(|path| path.starts_with(folder)) {
                warehouse.world.remove("lake", &path);
            }
            let error = if restarts {
                let (mut run, _) = warehouse.start(3, Some(&cut(1, 1)), &[]).unwrap();
                run.create(&orders()).unwrap_err()
            } else {
                let (at, items) = prepare(&mut run, 2, &[2]);
                refusal(run.committer(|committer| committer.commit(&at, &items)))
            };
            assert_eq!((error.code.as_str(), error.blame), ("target-behind", Blame::Remote), "{folder} {error}");
            assert!(error.message.contains("shop.orders") && error.message.contains("epoch 1"), "{error}");
        }
    }
}

#[test]
fn a_table_that_never_had_rows_may_be_made_again() {
    let warehouse = with_one_epoch();
    let (mut run, _) = warehouse.start(2, Some(&cut(1, 1)), &[]).unwrap();
    run.create(&table("items")).unwrap();
    for path in warehouse.paths().into_iter().filter(|path| path.starts_with("wh/shop.db/items/")) {
        warehouse.world.remove("lake", &path);
    }
    let (mut run, _) = warehouse.start(3, Some(&cut(1, 1)), &[]).unwrap();
    run.create(&table("items")).unwrap();
    run.epoch(2, &table("items"), &[(1, Op::Insert, 4, Some("one"))]);
    assert_eq!(warehouse.rows("items").len(), 1);
}
