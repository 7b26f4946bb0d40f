use std::sync::Mutex;

use cdchost_storage::{Fault, Faults, Operation, Store};

use super::*;
use crate::record::tests::sample;
use crate::{Plan, plan};

const PIPELINE: &str = "sales";

async fn claim(store: &Store) -> (Chain, ChainState) {
    Chain::claim(CheckpointStore::new(store.clone()), PIPELINE, 0, 1).await.unwrap()
}

fn prepared(epoch: u64, generation: Generation) -> PreparedEpoch {
    let record = sample();
    let mut cut = record.cut;
    (cut.epoch, cut.generation) = (Epoch(epoch), generation);
    PreparedEpoch {
        cut,
        source: record.source,
        tables: record.tables,
        sinks: record.sinks,
        created_micros: 0,
        config: "{}".into(),
    }
}

async fn try_store(chain: &mut Chain, epoch: u64) -> Stored {
    chain.store(prepared(epoch, chain.generation())).await.unwrap()
}

async fn store(chain: &mut Chain, epoch: u64) -> DurableEpoch {
    match try_store(chain, epoch).await {
        Stored::Durable(durable) => durable,
        other => panic!("{other:?}"),
    }
}

async fn commit(chain: &mut Chain, epoch: u64) {
    store(chain, epoch).await;
    chain.note_committed(Epoch(epoch)).await.unwrap();
}

async fn names(store: &Store) -> Vec<String> {
    let short = |name: String| {
        let (folder, number) = name.split_once('/').unwrap();
        format!("{}{}", &folder[..1], number.trim_start_matches('0'))
    };
    store.list("", None, 1000).await.unwrap().into_iter().map(|meta| short(meta.path)).collect()
}

fn newest(state: &ChainState) -> Option<u64> {
    state.newest().map(|record| record.epoch().0)
}

#[tokio::test]
async fn what_else_lies_among_the_slots_does_not_count() {
    let store = Store::memory();
    let (mut chain, _) = claim(&store).await;
    for name in ["slots/junk", "slots/99999999999999999999", "slots/00000000000000000009.old"] {
        store.put_if_absent(name, b"x".as_slice().into()).await.unwrap();
    }
    self::store(&mut chain, 1).await;
    let (chain, state) = claim(&store).await;
    assert_eq!((chain.generation(), newest(&state)), (Generation(3), Some(1)));
}

#[tokio::test]
async fn each_claim_is_a_new_generation_and_finds_what_the_last_one_left() {
    let store_ = Store::memory();
    let (mut first, state) = claim(&store_).await;
    assert_eq!((first.generation(), newest(&state)), (Generation(1), None));
    commit(&mut first, 1).await;
    store(&mut first, 2).await;
    let (second, state) = claim(&store_).await;
    assert_eq!(second.generation(), Generation(4));
    assert_eq!((newest(&state), state.committed, state.open.len()), (Some(2), Some(Epoch(1)), 1));
    assert_eq!(state.open[0].permits()[0].items().len(), 2);
    assert_eq!(names(&store_).await, ["c1", "s1", "s2", "s3", "s4"]);
}

#[tokio::test]
async fn a_peek_writes_nothing() {
    let store_ = Store::memory();
    let state = Chain::peek(&CheckpointStore::new(store_.clone()), PIPELINE).await.unwrap();
    assert!(matches!(plan(&state), Ok(Plan::Fresh)));
    assert!(names(&store_).await.is_empty());
}

#[tokio::test]
async fn a_fenced_run_stores_nothing_any_more() {
    let store_ = Store::memory();
    let (mut first, _) = claim(&store_).await;
    store(&mut first, 1).await;
    let (mut second, _) = claim(&store_).await;
    assert!(matches!(try_store(&mut first, 2).await, Stored::Fenced { by: Slot(3) }));
    store(&mut second, 2).await;
    assert!(matches!(try_store(&mut first, 3).await, Stored::Fenced { .. }), "and never again");
    assert_eq!(names(&store_).await, ["s1", "s2", "s3", "s4"]);
}

#[tokio::test]
async fn a_run_that_slept_while_its_slot_was_cleaned_away_is_fenced_and_what_it_wrote_never_counts() {
    let store_ = Store::memory();
    let (mut sleeper, _) = claim(&store_).await;
    store(&mut sleeper, 1).await;
    let (mut second, state) = claim(&store_).await;
    second.grow_from(state.newest().map(AsRef::as_ref));
    second.note_committed(Epoch(1)).await.unwrap();
    for epoch in 2..6 {
        commit(&mut second, epoch).await;
        second.collect_garbage(1).await.unwrap();
    }
    assert_eq!(names(&store_).await, ["c5", "s7"]);
    assert!(matches!(try_store(&mut sleeper, 9).await, Stored::Fenced { by: Slot(3) }));
    assert_eq!(names(&store_).await, ["c5", "s3", "s7"], "it left a stray");
    let (third, state) = claim(&store_).await;
    assert_eq!((third.generation(), newest(&state)), (Generation(8), Some(5)));
    assert_eq!(state.epoch_top, Epoch(5));
}

#[tokio::test]
async fn a_record_whose_answer_got_lost_is_stored_once() {
    let store_ = Store::memory();
    let (_, _) = claim(&store_).await;
    // Writes of this run: its fence, then the record.
    let faulty = store_.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 1, Fault::DoneButFail));
    let (mut chain, _) = claim(&faulty).await;
    let Stored::Again(epoch, _) = try_store(&mut chain, 1).await else { panic!("it was stored") };
    assert!(matches!(chain.store(*epoch).await.unwrap(), Stored::Durable(_)));
    assert_eq!(names(&store_).await, ["s1", "s2", "s3"]);
    commit(&mut chain, 2).await;
}

#[tokio::test]
async fn a_record_whose_answer_got_lost_before_a_new_run_is_the_new_runs_business() {
    let store_ = Store::memory();
    let faulty = store_.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 1, Fault::DoneButFail));
    let (mut first, _) = claim(&faulty).await;
    let Stored::Again(epoch, _) = try_store(&mut first, 1).await else { panic!("it was stored") };
    let (_, state) = claim(&store_).await;
    assert_eq!(newest(&state), Some(1), "the new run settles it");
    assert!(matches!(first.store(*epoch).await.unwrap(), Stored::Fenced { .. }), "the old one must not");
}

#[tokio::test]
async fn a_claim_whose_answer_got_lost_is_made_again_or_taken_for_its_own() {
    for fault in [Fault::Fail, Fault::DoneButFail] {
        let store_ = Store::memory();
        let faulty = store_.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 0, fault));
        let checkpoints = CheckpointStore::new(faulty);
        assert!(Chain::claim(checkpoints.clone(), PIPELINE, 0, 1).await.unwrap_err().is_transient());
        let (mut chain, _) = Chain::claim(checkpoints, PIPELINE, 0, 1).await.unwrap();
        store(&mut chain, 1).await;
    }
}

#[tokio::test]
async fn clean_up_keeps_what_was_asked_for_and_all_that_is_open() {
    let store_ = Store::memory();
    let (mut chain, _) = claim(&store_).await;
    for epoch in 1..6 {
        commit(&mut chain, epoch).await;
        chain.collect_garbage(2).await.unwrap();
    }
    assert_eq!(names(&store_).await, ["c4", "c5", "s5", "s6"]);
    store(&mut chain, 6).await;
    store(&mut chain, 7).await;
    assert_eq!(chain.collect_garbage(1).await.unwrap(), 2, "epoch 4 and its note");
    assert_eq!(names(&store_).await, ["c5", "s6", "s7", "s8"]);
    let (_, state) = claim(&store_).await;
    assert_eq!(state.open.iter().map(|r| r.epoch().0).collect::<Vec<_>>(), [6, 7]);
}

/// As those of a bounded run that is started again and again.
#[tokio::test]
async fn runs_of_one_record_each_are_cleaned_up_after() {
    let store_ = Store::memory();
    for epoch in 1..7 {
        let (mut chain, _) = claim(&store_).await;
        commit(&mut chain, epoch).await;
        chain.collect_garbage(2).await.unwrap();
    }
    assert_eq!(names(&store_).await, ["c5", "c6", "s10", "s11", "s12"]);
}

#[tokio::test]
async fn runs_that_make_one_epoch_each_clean_up_after_each_other() {
    let store_ = Store::memory();
    for epoch in 1..8 {
        let (mut chain, state) = claim(&store_).await;
        chain.grow_from(state.newest().map(AsRef::as_ref));
        commit(&mut chain, epoch).await;
        chain.collect_garbage(3).await.unwrap();
    }
    assert_eq!(names(&store_).await, ["c5", "c6", "c7", "s10", "s11", "s12", "s13", "s14"]);
}

/// Between its two listings another run makes and commits the very first epochs, and cleans up.
#[tokio::test(start_paused = true)]
async fn a_chain_that_moves_on_while_it_is_read_is_read_as_it_is() {
    for (late, done) in [("committed", 1), ("slots", 1), ("committed", 4), ("slots", 4)] {
        let store_ = Store::memory();
        let (mut chain, _) = claim(&store_).await;
        let slow = Faults::new(move |call| {
            let delayed = call.operation == Operation::List && call.path == late;
            if delayed { Fault::Delay(std::time::Duration::from_secs(1)) } else { Fault::None }
        });
        let reader = CheckpointStore::new(store_.clone().with_faults(slow));
        let moves = async {
            for epoch in 1..=done {
                commit(&mut chain, epoch).await;
                chain.collect_garbage(1).await.unwrap();
            }
        };
        let (state, ()) = tokio::join!(Chain::peek(&reader, PIPELINE), moves);
        assert_eq!(newest(&state.unwrap()), Some(done), "{late}");
    }
}

#[tokio::test]
async fn fences_above_the_newest_record_are_never_cleaned_away() {
    let store_ = Store::memory();
    let (mut first, _) = claim(&store_).await;
    commit(&mut first, 1).await;
    for _ in 0..5 {
        claim(&store_).await;
    }
    first.collect_garbage(1).await.unwrap();
    assert_eq!(names(&store_).await, ["c1", "s2", "s3", "s4", "s5", "s6", "s7"]);
    assert!(matches!(try_store(&mut first, 2).await, Stored::Fenced { .. }));
}

#[tokio::test]
async fn stores_of_other_pipelines_and_newer_formats_are_refused() {
    let store_ = Store::memory();
    claim(&store_).await;
    let other = Chain::claim(CheckpointStore::new(store_.clone()), "other", 0, 1).await;
    assert!(matches!(other, Err(CheckpointError::Foreign { found, .. }) if found == PIPELINE));
}

/// A store without atomic writes tears the record at byte k. The next run must neither take the torn record for whole
/// nor pass over it in silence.
#[tokio::test]
async fn a_record_torn_at_any_byte_is_never_taken_for_whole() {
    let length = {
        let (mut chain, _) = claim(&Store::memory()).await;
        commit(&mut chain, 1).await;
        chain.object(&prepared(2, Generation(1)), Slot(3)).unwrap().len()
    };
    for at in 0..length {
        let store_ = Store::memory();
        let faulty = store_.clone().with_faults(Faults::nth(Operation::PutIfAbsent, 3, Fault::Tear(at)));
        let (mut chain, _) = claim(&faulty).await;
        commit(&mut chain, 1).await;
        let Stored::Again(epoch, _) = try_store(&mut chain, 2).await else { panic!("torn at {at} and stored") };
        assert!(matches!(chain.store(*epoch).await.unwrap(), Stored::Fenced { .. }), "not our content, at {at}");
        let (_, state) = claim(&store_).await;
        assert_eq!((newest(&state), state.damaged.as_ref().map(|d| d.0)), (Some(1), Some(Slot(3))), "at {at}");
        assert!(matches!(plan(&state), Ok(Plan::RestoreBeforeDamage)));
    }
}

#[tokio::test]
async fn after_a_damaged_record_the_next_one_heals_the_chain() {
    let store_ = Store::memory();
    let (mut first, _) = claim(&store_).await;
    commit(&mut first, 1).await;
    store_.put(&paths::slot(Slot(3)), "garbage".into()).await.unwrap();
    let (mut second, state) = claim(&store_).await;
    assert!(state.damaged.is_some());
    second.grow_from(state.newest().map(AsRef::as_ref));
    commit(&mut second, 99).await;
    let (_, state) = claim(&store_).await;
    assert_eq!((newest(&state), state.damaged), (Some(99), None));
}

#[tokio::test]
async fn of_runs_that_claim_at_once_each_gets_its_own_generation() {
    let store_ = Store::memory();
    let generations = Mutex::new(Vec::new());
    let claims = (0..8).map(|nonce| {
        let checkpoints = CheckpointStore::new(store_.clone());
        async move { Chain::claim(checkpoints, PIPELINE, 0, nonce).await.unwrap().0.generation().0 }
    });
    let tasks: Vec<_> = claims.map(tokio::spawn).collect();
    for task in tasks {
        let generation = task.await.unwrap();
        generations.lock().unwrap().push(generation);
    }
    let mut seen = generations.into_inner().unwrap();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 8);
}
