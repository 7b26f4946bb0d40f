//! The engine's life: checkpoints on request, draining, two hosts, targets and stores that misbehave, final states.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cdchost_connector::StopClass;
use cdchost_model::{Epoch, Generation, Lineage};
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle, PipelineState, PipelineStatus, Reason};
use cdchost_storage::{Fault, Faults, Operation, Store};

use cdchost_sim::harness::{check_complete, check_prefix, endless, process, setup, start};
use cdchost_sim::source::transactions_of;
use cdchost_sim::world::{Rates, World};

fn calm(sinks: usize) -> Arc<World> {
    World::new(42, 40, sinks, Rates::default())
}

async fn until(handle: &PipelineHandle, fact: impl FnMut(&PipelineStatus) -> bool) {
    handle.status().wait_for(fact).await.unwrap();
}

async fn slots(store: &Store) -> Vec<String> {
    store.list("slots", None, 1000).await.unwrap().into_iter().map(|meta| meta.path).collect()
}

fn failed(exit: PipelineExit) -> Reason {
    match exit {
        PipelineExit::Failed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// Transactions that a sink's target shows.
fn shown(world: &World, sink: usize) -> usize {
    world.target(sink).marker.as_ref().map_or(0, |marker| transactions_of(&marker.cut.offset))
}

#[test]
fn a_bounded_run_ends_with_all_of_it_committed() {
    let world = calm(2);
    process().block_on(async {
        let mut handle = start(&world, true);
        assert_eq!(handle.wait().await, PipelineExit::Finished);
        let status = handle.status().borrow().clone();
        assert_eq!((status.state, status.generation), (PipelineState::Stopped, Some(Generation(1))));
        assert_eq!(status.durable, status.committed);
        assert!(status.sinks.iter().all(|sink| sink.committed == status.committed));
    });
    check_complete(&world).unwrap();
    assert!(world.target(0).marker.as_ref().unwrap().cut.end_of_input);
}

#[test]
fn a_bounded_run_commits_what_came_after_the_end_of_the_one_before() {
    let world = calm(2);
    for happened in [15, 15, 40] {
        world.happened.store(happened, Ordering::Relaxed);
        process().block_on(async {
            let mut once = setup(&world, world.store.clone(), 2);
            once.checkpoint.interval = Duration::from_secs(3600); // so that only the end makes a record
            assert_eq!(Pipeline::start(once).wait().await, PipelineExit::Finished);
        });
        assert_eq!((shown(&world, 0), shown(&world, 1)), (happened, happened));
        check_prefix(&world, happened).unwrap();
    }
}

#[test]
fn a_run_that_is_told_to_stop_commits_what_it_took() {
    let world = calm(1);
    process().block_on(async {
        let mut handle = start(&world, false);
        until(&handle, |status| status.committed.is_some()).await;
        handle.stop();
        assert_eq!(handle.wait().await, PipelineExit::Stopped);
    });
    let told = shown(&world, 0);
    assert!(told > 0);
    check_prefix(&world, told).unwrap();
    process().block_on(async {
        let mut handle = start(&world, true);
        assert_eq!(handle.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_checkpoint_asked_for_is_answered_when_it_is_committed() {
    let world = calm(2);
    process().block_on(async {
        let mut slow = endless(&world, 1);
        slow.checkpoint.interval = Duration::from_secs(3600);
        let handle = Pipeline::start(slow);
        tokio::time::sleep(Duration::from_secs(60)).await; // virtual: all of the history is told by then
        assert_eq!(shown(&world, 0), 0);
        let epoch = handle.checkpoint().await.unwrap();
        assert_eq!((shown(&world, 0), shown(&world, 1)), (40, 40));
        let before = slots(&world.store).await;
        assert_eq!(handle.checkpoint().await.unwrap(), epoch, "nothing has changed since");
        assert_eq!(slots(&world.store).await, before, "an epoch in which nothing changed writes no record");
        let status = handle.status().borrow().clone();
        assert!(status.unchanged_micros >= status.committed_micros && status.committed_micros.is_some());
    });
    check_complete(&world).unwrap();
}

#[test]
fn data_flows_on_while_a_commit_hangs_and_stops_at_the_limit() {
    let world = calm(1);
    process().block_on(async {
        world.hold("commit");
        let mut handle = start(&world, true);
        tokio::time::sleep(Duration::from_secs(60)).await; // virtual: long enough for any number of epochs
        let records = slots(&world.store).await.len() - 1;
        assert_eq!(records, 2, "the sink allows two epochs that are durable and not committed");
        assert_eq!(handle.status().borrow().committed, None);
        assert_eq!(shown(&world, 0), 0);
        world.release("commit");
        assert_eq!(handle.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

#[test]
fn nothing_prepared_is_seen_before_its_record_is_durable() {
    let world = calm(1);
    process().block_on(async {
        let stuck = Faults::new(|call| match call.operation {
            Operation::PutIfAbsent if call.path > "slots/00000000000000000001" => Fault::Hang,
            _ => Fault::None,
        });
        let handle = Pipeline::start(setup(&world, world.store.clone().with_faults(stuck), 1));
        tokio::time::sleep(Duration::from_secs(60)).await; // virtual: it prepares and then waits for the store
        assert!(!world.target(0).prepared.is_empty());
        assert!(world.target(0).visible.is_empty());
        drop(handle);
    });
}

#[test]
fn a_second_host_fences_the_first_which_stops_without_a_word_to_its_sinks() {
    let world = calm(2);
    process().block_on(async {
        let mut first = start(&world, false);
        until(&first, |status| status.committed.is_some()).await;
        let mut second = start(&world, true);
        let reason = failed(first.wait().await);
        assert_eq!((reason.class, reason.code.as_str()), (StopClass::Storage, "fenced"));
        assert_eq!(second.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_host_that_sleeps_while_another_takes_over_and_cleans_up_writes_nothing_that_counts() {
    let world = calm(1);
    process().block_on(async {
        // Its second record is on its way to the store for an hour.
        let late = Faults::nth(Operation::PutIfAbsent, 3, Fault::Delay(Duration::from_secs(300)));
        let mut first = Pipeline::start(setup(&world, world.store.clone().with_faults(late), 1));
        until(&first, |status| status.committed.is_some()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut second = start(&world, true);
        assert_eq!(second.wait().await, PipelineExit::Finished);
        assert!(!slots(&world.store).await.contains(&"slots/00000000000000000002".to_owned()), "it was cleaned away");
        check_complete(&world).unwrap();
        assert_eq!(failed(first.wait().await).code, "fenced");
        let mut third = start(&world, true);
        assert_eq!(third.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_run_that_is_fenced_off_while_it_recovers_does_not_blame_the_targets() {
    let world = calm(1);
    process().block_on(async {
        // It has its fence and has seen an empty chain; the answer of its last listing takes a while.
        let late = Faults::nth(Operation::List, 9, Fault::Late(Duration::from_secs(300)));
        let mut first = Pipeline::start(setup(&world, world.store.clone().with_faults(late), 1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(slots(&world.store).await.len(), 1);
        let mut second = start(&world, true);
        assert_eq!(second.wait().await, PipelineExit::Finished);
        assert_eq!(failed(first.wait().await).code, "fenced");
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_target_that_stays_away_ends_in_a_final_state_with_its_reason() {
    let world = calm(1);
    world.down.store(true, Ordering::Relaxed);
    process().block_on(async {
        let mut setup = setup(&world, world.store.clone(), 1);
        setup.restart.budget = 3;
        let mut handle = Pipeline::start(setup);
        let control = handle.control();
        let asked = tokio::spawn(async move { control.checkpoint().await });
        let reason = failed(handle.wait().await);
        assert_eq!((reason.class, reason.code.as_str()), (StopClass::Sink, "sim-down"));
        for answer in [asked.await.unwrap(), handle.checkpoint().await] {
            let why = answer.unwrap_err();
            assert_eq!((why.class, &why.code, &why.instruction), (reason.class, &reason.code, &reason.instruction));
            assert_eq!(why.message, format!("the run ended before the checkpoint was committed: {}", reason.message));
        }
        assert_eq!(reason.instruction, "start the target");
        let status = handle.status().borrow().clone();
        assert_eq!((status.state, status.restarts), (PipelineState::Failed, 3));
    });
}

#[test]
fn a_pipeline_that_cannot_drain_ends_all_the_same() {
    let world = calm(1);
    process().block_on(async {
        world.hold("commit");
        let mut handle = start(&world, true);
        tokio::time::sleep(Duration::from_secs(60)).await; // virtual: there is an epoch to commit
        handle.stop();
        let reason = failed(handle.wait().await);
        assert_eq!((reason.class, reason.code.as_str()), (StopClass::Sink, "stop-timeout"));
    });
}

#[test]
fn what_is_held_up_is_shown_and_stands_in_the_reason_of_the_end() {
    let world = calm(1);
    process().block_on(async {
        let full = Faults::new(|call| match call.operation {
            Operation::PutIfAbsent if call.path > "slots/00000000000000000001" => Fault::Fail,
            _ => Fault::None,
        });
        let mut setup = setup(&world, world.store.clone().with_faults(full), 1);
        setup.checkpoint.timeout = Duration::from_secs(3600);
        let mut handle = Pipeline::start(setup);
        until(&handle, |status| status.held_up.get("checkpoint store: record").is_some_and(|held| held.tries > 3))
            .await;
        let reason = handle.status().borrow().held_up["checkpoint store: record"].reason.clone();
        assert_eq!(reason.class, StopClass::Storage);
        handle.stop();
        let end = failed(handle.wait().await);
        assert_eq!((end.class, end.code.as_str()), (StopClass::Storage, "stop-timeout"));
        assert!(end.message.contains("checkpoint store: record fails again and again for"), "{}", end.message);
        assert!(end.message.ends_with(&reason.message) && end.instruction.ends_with(&reason.instruction), "{end:?}");
    });
}

#[test]
fn what_is_durable_and_open_is_known_also_where_the_next_run_fails_at_once() {
    let world = calm(2);
    process().block_on(async {
        world.hold("commit");
        let handle = start(&world, true);
        until(&handle, |status| status.durable.is_some()).await;
        let durable = handle.status().borrow().durable;
        drop(handle);
        world.release("commit");
        world.down.store(true, Ordering::Relaxed);
        let mut setup = setup(&world, world.store.clone(), 2);
        setup.restart.budget = 0;
        let mut handle = Pipeline::start(setup);
        assert_eq!(failed(handle.wait().await).code, "sim-down");
        let status = handle.status().borrow().clone();
        assert!(durable.is_some() && status.durable >= durable, "{:?}", status.durable);
        assert_eq!(status.committed, None);
    });
}

#[test]
fn a_store_that_is_full_for_a_while_holds_the_record_and_not_the_data() {
    let world = calm(1);
    process().block_on(async {
        let began = tokio::time::Instant::now();
        let full = Faults::new(move |call| {
            let writes = call.operation == Operation::PutIfAbsent && call.path > "slots/00000000000000000001";
            if writes && began.elapsed() < Duration::from_secs(30) { Fault::Fail } else { Fault::None }
        });
        let mut handle = Pipeline::start(setup(&world, world.store.clone().with_faults(full), 1));
        assert_eq!(handle.wait().await, PipelineExit::Finished);
        assert_eq!(handle.status().borrow().restarts, 0);
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_barrier_that_waits_for_the_end_of_one_piece_is_given_the_time_it_takes() {
    for (hold, expected) in [("piece", 0), ("source", 1)] {
        let world = calm(1);
        process().block_on(async {
            world.hold(hold);
            let mut setup = setup(&world, world.store.clone(), 1);
            setup.checkpoint.timeout = Duration::from_secs(5);
            let mut handle = Pipeline::start(setup);
            tokio::time::sleep(Duration::from_secs(9)).await;
            world.release(hold);
            assert_eq!(handle.wait().await, PipelineExit::Finished);
            assert_eq!(handle.status().borrow().restarts, expected, "{hold}");
        });
        check_complete(&world).unwrap();
    }
}

#[test]
fn a_checkpoint_that_takes_too_long_restarts_the_pipeline_and_names_who_held_it_up() {
    let world = calm(1);
    process().block_on(async {
        world.hold("prepare");
        let mut setup = setup(&world, world.store.clone(), 1);
        setup.checkpoint.timeout = Duration::from_secs(5);
        let mut handle = Pipeline::start(setup);
        until(&handle, |status| status.restarts > 0).await;
        let reason = handle.status().borrow().reason.clone().unwrap();
        assert_eq!(reason.code, "checkpoint-timeout");
        assert!(reason.message.contains("sink-0 is still preparing"), "{}", reason.message);
        world.release("prepare");
        assert_eq!(handle.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

/// Runs to the end, lets something happen to store or target, and runs again.
fn refused(change: impl FnOnce(&World) -> Option<Store>, rename: Option<&str>) -> Reason {
    let world = calm(1);
    process().block_on(async {
        assert_eq!(start(&world, true).wait().await, PipelineExit::Finished);
        let store = change(&world).unwrap_or(world.store.clone());
        let mut setup = setup(&world, store, 1);
        if let Some(name) = rename {
            setup.name = name.into();
        }
        let visible = world.target(0).visible.len();
        let reason = failed(Pipeline::start(setup).wait().await);
        assert_eq!(world.target(0).visible.len(), visible, "nothing was written");
        assert!(!reason.instruction.is_empty());
        reason
    })
}

#[test]
fn a_store_and_a_target_that_do_not_belong_together_are_refused() {
    let codes = [
        refused(|_| Some(Store::memory()), None),
        refused(|_| None, Some("other")),
        refused(|_| Some(Store::memory()), Some("other")),
        refused(
            |world| {
                world.target(0).marker.as_mut().unwrap().cut.epoch = Epoch(1_000);
                None
            },
            None,
        ),
        refused(
            |world| {
                world.target(0).marker.as_mut().unwrap().cut.lineage = Lineage("x".into());
                None
            },
            None,
        ),
        refused(
            |world| {
                world.target(0).marker = None;
                None
            },
            None,
        ),
    ];
    assert_eq!(
        codes.map(|reason| reason.code),
        [
            "store-empty-target-not",
            "checkpoint-store-foreign",
            "target-of-another-pipeline",
            "target-ahead",
            "target-of-another-lineage",
            "target-marker-gone"
        ]
    );
}

/// Runs until epochs are durable and none of them is committed beyond the first, and dies there.
async fn die_with_open_epochs(world: &Arc<World>) {
    let handle = start(world, true);
    until(&handle, |status| status.committed.is_some()).await;
    world.hold("commit");
    tokio::time::sleep(Duration::from_secs(10)).await; // virtual: to the limit of open epochs
    let status = handle.status().borrow().clone();
    assert!(status.durable > status.committed);
    drop(handle);
    world.release("commit");
}

#[test]
fn epochs_that_the_target_lost_whole_are_made_again() {
    let world = calm(1);
    process().block_on(die_with_open_epochs(&world));
    world.target(0).lose(usize::MAX);
    process().block_on(async {
        let mut handle = start(&world, true);
        assert_eq!(handle.wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
    process().block_on(async {
        assert_eq!(start(&world, true).wait().await, PipelineExit::Finished, "the new lineage is its own");
    });
}

#[test]
fn a_loss_while_it_runs_is_told_with_what_to_do() {
    let world = calm(1);
    process().block_on(async {
        let handle = start(&world, true);
        until(&handle, |status| status.committed.is_some()).await;
        world.hold("commit");
        tokio::time::sleep(Duration::from_secs(10)).await; // virtual: to the limit of open epochs
        world.target(0).lose(usize::MAX);
        world.release("commit");
        let mut said = String::new();
        until(&handle, |status| {
            let reason = status.reason.iter().find(|reason| reason.code == "sink-lost-prepared");
            reason.is_some_and(|reason| {
                said.clone_from(&reason.instruction);
                true
            })
        })
        .await;
        assert!(said.starts_with("find out what removes or changes files"), "{said}");
    });
}

#[test]
fn an_epoch_that_the_target_lost_in_part_is_final() {
    let world = calm(1);
    process().block_on(die_with_open_epochs(&world));
    world.target(0).lose(1);
    process().block_on(async {
        assert_eq!(failed(start(&world, true).wait().await).code, "target-lost-prepared");
    });
}

/// Flips a bit of the newest record.
async fn damage_newest(world: &World) {
    for path in slots(&world.store).await.iter().rev() {
        let mut object = world.store.get(path).await.unwrap().to_vec();
        if object.windows(9).any(|window| window == b"{\"record\"") {
            let middle = object.len() / 2;
            object[middle] ^= 1;
            world.store.put(path, object.into()).await.unwrap();
            return;
        }
    }
    panic!("there is no record");
}

#[test]
fn a_damaged_record_that_was_not_committed_is_passed_over() {
    let world = calm(1);
    process().block_on(async {
        die_with_open_epochs(&world).await;
        damage_newest(&world).await;
    });
    process().block_on(async {
        assert_eq!(start(&world, true).wait().await, PipelineExit::Finished);
    });
    check_complete(&world).unwrap();
}

#[test]
fn a_damaged_record_that_was_committed_is_final() {
    let world = calm(1);
    process().block_on(async {
        assert_eq!(start(&world, true).wait().await, PipelineExit::Finished);
        damage_newest(&world).await;
        let reason = failed(start(&world, true).wait().await);
        assert_eq!((reason.class, reason.code.as_str()), (StopClass::Storage, "record-damaged"));
    });
}
