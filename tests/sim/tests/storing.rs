//! A checkpoint store that tears, loses, delays, denies or runs full: what the pipeline makes of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::StopClass;
use cdchost_pipeline::{Pipeline, PipelineExit, Reason};
use cdchost_sim::harness::{check_complete, process, setup, start};
use cdchost_sim::world::{Rates, World};
use cdchost_storage::{Fault, Faults, Operation, Store};

fn calm(transactions: usize) -> Arc<World> {
    World::new(42, transactions, 1, Rates::default())
}

async fn names(store: &Store, folder: &str) -> Vec<String> {
    store.list(folder, None, 1000).await.unwrap().into_iter().map(|meta| meta.path).collect()
}

/// The slots that hold records.
async fn records(store: &Store) -> Vec<String> {
    let mut records = Vec::new();
    for slot in names(store, "slots").await {
        if store.get(&slot).await.unwrap().windows(9).any(|window| window == b"{\"record\"") {
            records.push(slot);
        }
    }
    records
}

/// Lives once with this fault at the nth write: the first is the fence, the second the first record.
async fn live(world: &Arc<World>, nth: usize, fault: Fault) -> PipelineExit {
    let faulty = world.store.clone().with_faults(Faults::nth(Operation::PutIfAbsent, nth, fault));
    Pipeline::start(setup(world, faulty, 1)).wait().await
}

async fn refused(world: &Arc<World>) -> Reason {
    match start(world, true).wait().await {
        PipelineExit::Failed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// The second record: behind a fence and the first one.
const SECOND: &str = "slots/00000000000000000003";

/// The second record is torn behind the first one, which is committed: all of its rows come again, and no row twice.
#[test]
fn a_record_torn_at_any_byte_is_passed_over_and_its_rows_come_again() {
    let whole = calm(16);
    let bytes = process().block_on(async {
        assert_eq!(start(&whole, true).wait().await, PipelineExit::Finished);
        whole.store.get(SECOND).await.unwrap().len()
    });
    for at in 0..bytes {
        let world = calm(16);
        let tear = Faults::new(move |call| match call.path {
            SECOND if call.operation == Operation::PutIfAbsent => Fault::Tear(at),
            _ => Fault::None,
        });
        process().block_on(async {
            let torn = setup(&world, world.store.clone().with_faults(tear), 2);
            let PipelineExit::Failed(reason) = Pipeline::start(torn).wait().await else { panic!("torn at {at}") };
            assert_eq!(reason.code, "fenced", "what is there is not what was written, torn at {at}");
            assert_eq!(start(&world, true).wait().await, PipelineExit::Finished, "torn at {at}");
        });
        check_complete(&world).unwrap_or_else(|fault| panic!("torn at {at}: {fault}"));
    }
}

#[test]
fn a_store_that_lost_its_records_or_the_newest_of_them_never_begins_afresh() {
    for (lost, expected) in [(usize::MAX, "records-gone"), (1, "target-ahead")] {
        let world = calm(40);
        process().block_on(async {
            assert_eq!(start(&world, true).wait().await, PipelineExit::Finished);
            let shown = world.target(0).visible.len();
            for slot in names(&world.store, "slots").await.iter().rev().take(lost) {
                world.store.delete(slot).await.unwrap();
            }
            let reason = refused(&world).await;
            assert_eq!(reason.code, expected);
            assert!(!reason.instruction.is_empty());
            assert_eq!(world.target(0).visible.len(), shown, "nothing was written");
        });
    }
}

#[test]
fn a_store_that_denies_access_is_final_and_one_that_lets_in_again_is_gone_on_with() {
    let world = calm(40);
    process().block_on(async {
        let PipelineExit::Failed(reason) = live(&world, 3, Fault::Deny).await else { panic!("it was let in") };
        assert_eq!((reason.class, reason.code.as_str()), (StopClass::Storage, "checkpoint-store"));
        assert_eq!(reason.instruction, "make it readable and writable for this user");
        assert_eq!(start(&world, true).wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

/// However long it takes, and whether it is stored before or after that time: one record, one number, no second
/// checkpoint beside it.
#[test]
fn a_record_that_is_stored_slowly_or_without_an_answer_is_stored_once() {
    let half_a_minute = Duration::from_secs(30);
    for fault in [Fault::Delay(half_a_minute), Fault::Late(half_a_minute), Fault::DoneButFail] {
        let world = calm(40);
        process().block_on(async {
            let faulty = world.store.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 1, fault));
            let mut handle = Pipeline::start(setup(&world, faulty, 1));
            if fault != Fault::DoneButFail {
                tokio::time::sleep(half_a_minute - Duration::from_secs(1)).await;
                assert!(records(&world.store).await.len() <= 1, "{fault:?}");
                assert_eq!(world.target(0).marker, None, "{fault:?}");
            }
            assert_eq!(handle.wait().await, PipelineExit::Finished, "{fault:?}");
            assert_eq!(handle.status().borrow().restarts, 0, "{fault:?}");
        });
        check_complete(&world).unwrap_or_else(|wrong| panic!("{fault:?}: {wrong}"));
    }
}

/// The answer takes longer than the checkpoint may: the next run finds what was stored, or fences it off.
#[test]
fn a_record_whose_time_was_over_is_settled_by_the_next_run_or_never_counts() {
    let too_long = Duration::from_secs(700);
    for fault in [Fault::Delay(too_long), Fault::Late(too_long), Fault::Hang] {
        let world = calm(40);
        process().block_on(async {
            let faulty = world.store.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 3, fault));
            let mut handle = Pipeline::start(setup(&world, faulty, 1));
            assert_eq!(handle.wait().await, PipelineExit::Finished, "{fault:?}");
            assert_eq!(handle.status().borrow().restarts, 1, "{fault:?}");
            let epochs: Vec<_> = world.target(0).visible.iter().map(|(epoch, _)| *epoch).collect();
            assert!(epochs.is_sorted() && epochs.iter().collect::<BTreeSet<_>>().len() > 2, "{fault:?}: {epochs:?}");
        });
        check_complete(&world).unwrap_or_else(|wrong| panic!("{fault:?}: {wrong}"));
    }
}
