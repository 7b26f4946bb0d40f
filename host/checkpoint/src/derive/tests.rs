use super::*;
use crate::Parent;
use crate::record::tests::sample;
use cdchost_model::Generation;

/// A record as (slot, generation, epoch), grown from the one in slot `parent`.
pub(crate) fn record(slot: u64, generation: u64, epoch: u64, parent: Option<&Record>) -> Record {
    let mut record = sample();
    record.slot = Slot(slot);
    record.cut.generation = Generation(generation);
    record.cut.epoch = Epoch(epoch);
    record.digest = [slot as u8; 32];
    record.parent = parent.map(|p| Parent { slot: p.slot, epoch: p.epoch(), digest: p.digest });
    record
}

fn observed(records: &[Record], fences: &[u64], damaged: &[u64], committed: &[u64]) -> Observed {
    let mut observed = Observed::default();
    for record in records {
        observed.slots.insert(record.slot, Seen::Record(Arc::new(record.clone())));
    }
    for &slot in fences {
        let fence = Fence { pipeline: "sales".into(), generation: Generation(slot), created_micros: 0, nonce: 0 };
        observed.slots.insert(Slot(slot), Seen::Fence(fence));
    }
    for &slot in damaged {
        observed.slots.insert(Slot(slot), Seen::Damaged("torn".into()));
    }
    observed.committed = committed.iter().map(|&epoch| Epoch(epoch)).collect();
    observed
}

fn epochs(records: &[Arc<Record>]) -> Vec<u64> {
    records.iter().map(|record| record.epoch().0).collect()
}

#[test]
fn nothing_seen_is_an_empty_chain() {
    let state = derive(&Observed::default()).unwrap();
    assert!(state.newest().is_none() && state.damaged.is_none());
    assert_eq!((state.end, state.epoch_top), (Slot(0), Epoch(0)));
}

#[test]
fn open_records_reach_back_to_the_newest_committed_one() {
    let one = record(2, 1, 1, None);
    let two = record(3, 1, 3, Some(&one));
    let three = record(5, 4, 4, Some(&two));
    let state = derive(&observed(&[one, two, three], &[1, 4, 6], &[], &[1])).unwrap();
    assert_eq!(epochs(&state.open), [3, 4]);
    assert_eq!(state.base.unwrap().epoch(), Epoch(1));
    assert_eq!((state.end, state.epoch_top), (Slot(6), Epoch(4)));
}

#[test]
fn a_record_that_nothing_grew_from_is_passed_over() {
    let one = record(2, 1, 1, None);
    let lost = record(3, 1, 2, Some(&one));
    let two = record(5, 4, 9, Some(&one));
    let state = derive(&observed(&[one, lost, two], &[1, 4], &[], &[1])).unwrap();
    assert_eq!(epochs(&state.open), [9]);
    assert_eq!(state.base.unwrap().epoch(), Epoch(1));
}

#[test]
fn damage_counts_above_the_newest_record_only() {
    let one = record(2, 1, 1, None);
    let two = record(4, 1, 2, Some(&one));
    let state = derive(&observed(&[one.clone(), two], &[1], &[3], &[1])).unwrap();
    assert!(state.damaged.is_none());
    let state = derive(&observed(&[one], &[1, 4], &[3], &[1])).unwrap();
    assert_eq!(state.damaged, Some((Slot(3), "torn".into())));
}

#[test]
fn an_open_record_whose_parent_is_gone_breaks_the_chain() {
    let one = record(2, 1, 1, None);
    let two = record(3, 1, 2, Some(&one));
    let broken = derive(&observed(std::slice::from_ref(&two), &[1], &[2], &[]));
    assert!(matches!(broken, Err(CheckpointError::Broken { epoch: Epoch(1), slot: Slot(2) })));
    // Another record in the parent's place is not the parent.
    let mut stray = one.clone();
    stray.digest = [77; 32];
    assert!(derive(&observed(&[stray, two.clone()], &[1], &[], &[])).is_err());
    // A parent that was committed and cleaned away is no loss.
    let state = derive(&observed(&[two], &[], &[], &[1])).unwrap();
    assert_eq!(epochs(&state.open), [2]);
    assert!(state.base.is_none());
}

#[test]
fn what_lies_below_a_gap_never_counts() {
    let slots = |numbers: &[u64]| -> BTreeSet<Slot> { numbers.iter().map(|&n| Slot(n)).collect() };
    let shown = |numbers| unbroken_end(&slots(numbers)).iter().map(|slot| slot.0).collect::<Vec<_>>();
    assert_eq!(shown(&[2, 6, 7, 8]), [6, 7, 8]);
    assert_eq!(shown(&[1, 2, 3]), [1, 2, 3]);
    assert_eq!(shown(&[]), [0; 0]);
}

#[test]
fn objects_in_the_wrong_place_are_damage() {
    let fence = Fence { pipeline: "sales".into(), generation: Generation(3), created_micros: 0, nonce: 0 };
    assert!(matches!(judge(Slot(3), SlotObject::Fence(fence.clone())), Seen::Fence(_)));
    assert!(matches!(judge(Slot(4), SlotObject::Fence(fence)), Seen::Damaged(_)));
    let one = || SlotObject::Record(Box::new(record(5, 4, 1, None)));
    assert!(matches!(judge(Slot(5), one()), Seen::Record(_)));
    assert!(matches!(judge(Slot(6), one()), Seen::Damaged(_)));
    let own = SlotObject::Record(Box::new(record(5, 5, 1, None)));
    assert!(matches!(judge(Slot(5), own), Seen::Damaged(_)), "a record cannot lie in its own run's fence");
}
