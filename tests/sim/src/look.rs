//! Looks at store and targets from outside: what they show, what lies about, and what befalls them while nobody runs.

use bytes::Bytes;
use cdchost_checkpoint::{Chain, CheckpointStore};
use cdchost_storage::Store;

use crate::script::Before;
use crate::sink::{PIPELINE, out_of_order};
use crate::source::transactions_of;
use crate::world::World;

/// What opens the head of a record.
const RECORD: &[u8] = b"{\"record\"";

/// Names of all slots, in order.
async fn slots(store: &Store) -> Vec<String> {
    let found = store.list("slots", None, 100_000).await.expect("the bare store has no faults");
    found.into_iter().map(|meta| meta.path).collect()
}

/// All that lies in slots and begins as a record does.
pub(crate) async fn records(store: &Store) -> Vec<Bytes> {
    let mut records = Vec::new();
    for slot in slots(store).await {
        let object = store.get(&slot).await.unwrap_or_default(); // it may have been cleaned away
        if is_record(&object) {
            records.push(object);
        }
    }
    records
}

fn is_record(object: &[u8]) -> bool {
    object.windows(RECORD.len()).any(|window| window == RECORD)
}

/// Every target shows the first so many transactions, each change once, in order.
pub(crate) fn shows(world: &World, sink: usize, transactions: usize) -> Result<(), String> {
    let target = world.target(sink);
    let mut rows: Vec<_> = target.visible.iter().map(|(_, row)| *row).collect();
    rows.sort_unstable();
    let expected = world.expected(sink, transactions);
    if rows != expected {
        return Err(format!(
            "sink {sink} shows {} rows, the first {transactions} transactions have {}",
            rows.len(),
            expected.len()
        ));
    }
    out_of_order(&target).map_or(Ok(()), Err)
}

/// How many transactions a target says that it shows.
pub(crate) fn marked(world: &World, sink: usize) -> usize {
    world.target(sink).marker.as_ref().map_or(0, |marker| transactions_of(&marker.cut.offset))
}

/// Offsets only grow along the chain, and what is noted as committed is at every target.
pub(crate) async fn check_chain(world: &World) {
    let store = CheckpointStore::new(world.store.clone());
    let state = match Chain::peek(&store, PIPELINE).await {
        Ok(state) => state,
        // What befell it is the next run's business, which must say so.
        Err(_) if world.facts().damaged + world.facts().torn > 0 => return,
        Err(error) => return world.violate(format!("the chain cannot be read: {error}")),
    };
    let offsets: Vec<usize> = state.path().map(|record| transactions_of(&record.cut.offset)).collect();
    if !offsets.is_sorted() {
        world.violate(format!("offsets go back along the chain: {offsets:?}"));
    }
    let Some(base) = &state.base else { return };
    for sink in 0..world.sinks() {
        let marker = world.target(sink).marker.as_ref().map(|marker| marker.cut.epoch);
        if marker < Some(base.epoch()) {
            world.violate(format!("epoch {} is noted as committed, sink {sink} shows {marker:?}", base.epoch()));
        }
    }
}

/// After a whole run without faults nothing is left that no run can need.
pub(crate) async fn check_litter(world: &World, retained: u32) {
    for sink in 0..world.sinks() {
        let left = world.target(sink).prepared.len();
        if left > 0 {
            world.violate(format!("sink {sink} still holds {left} things that were prepared and never committed"));
        }
    }
    let records = records(&world.store).await.len();
    let (facts, retained) = (world.facts(), retained as usize);
    if records > retained + (facts.torn + facts.damaged) as usize {
        world.violate(format!("{records} records are left, {retained} are to be kept"));
    }
    let notes = world.store.list("committed", None, 100_000).await.expect("the bare store has no faults").len();
    if notes > retained {
        world.violate(format!("{notes} notes are left, {retained} records are to be kept"));
    }
}

/// Something befalls store or target.
pub(crate) async fn befall(world: &World, what: Before) {
    match what {
        Before::Damage => damage(world).await,
        Before::LoseAll => lose(world, usize::MAX),
        Before::LoseOne => lose(world, 1),
    }
}

/// Flips a bit of the newest record.
async fn damage(world: &World) {
    for slot in slots(&world.store).await.iter().rev() {
        let mut object = world.store.get(slot).await.unwrap_or_default().to_vec();
        if is_record(&object) {
            let bit = world.below(object.len() as u64 * 8) as usize;
            object[bit / 8] ^= 1 << (bit % 8);
            world.note(format_args!("bit {bit} of {slot} flips"));
            world.count(|facts| facts.damaged += 1);
            world.store.put(slot, object.into()).await.expect("the bare store has no faults");
            return;
        }
    }
}

fn lose(world: &World, most: usize) {
    let holding: Vec<usize> = (0..world.sinks()).filter(|&sink| !world.target(sink).prepared.is_empty()).collect();
    let Some(&sink) = holding.get(world.below(holding.len() as u64) as usize) else { return };
    let lost = world.target(sink).lose(most);
    world.note(format_args!("sink {sink} loses {lost} things that were prepared"));
    world.count(|facts| facts.losses += u64::from(lost > 0));
}
