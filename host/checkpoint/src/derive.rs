//! What was seen in the store → what state the chain is in. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cdchost_model::Epoch;

use crate::record::format::{Fence, SlotObject};
use crate::{CheckpointError, Record, Slot};

/// What was seen in one slot.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Fence(Fence),
    Record(Arc<Record>),
    /// Not readable, for this reason.
    Damaged(String),
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) slots: BTreeMap<Slot, Seen>,
    pub(crate) committed: BTreeSet<Epoch>,
}

/// The state of a pipeline's chain.
#[derive(Clone, Debug)]
pub struct ChainState {
    /// Records not noted as committed, oldest first; each grew from the one before, the last is the newest.
    pub open: Vec<Arc<Record>>,
    /// The newest record that is noted as committed and that the open ones grew from.
    pub base: Option<Arc<Record>>,
    /// A slot above the newest record that cannot be read, and why.
    pub damaged: Option<(Slot, String)>,
    /// The newest epoch that is noted as committed.
    pub committed: Option<Epoch>,
    /// The highest epoch that any object names.
    pub epoch_top: Epoch,
    /// The last slot of the chain.
    pub end: Slot,
}

impl ChainState {
    /// The newest readable record.
    pub fn newest(&self) -> Option<&Arc<Record>> {
        self.open.last().or(self.base.as_ref())
    }

    /// The records that a target's marker may name: base and open ones, oldest first.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = &Arc<Record>> {
        self.base.iter().chain(&self.open)
    }

    /// The chain as it was before `epoch` was made: for a restore from an older record.
    pub fn before(&self, epoch: Epoch) -> Self {
        let mut before = self.clone();
        before.open.retain(|record| record.epoch() < epoch);
        before
    }
}

/// The slots that end the chain without a gap. What lies below a gap was written by a run that slept while its
/// successors moved on and cleaned up: it never counts.
pub(crate) fn unbroken_end(slots: &BTreeSet<Slot>) -> Vec<Slot> {
    let mut end: Vec<Slot> = Vec::new();
    for &slot in slots.iter().rev() {
        if end.last().is_some_and(|last| slot.next() != *last) {
            break;
        }
        end.push(slot);
    }
    end.reverse();
    end
}

/// What an object in a slot is worth: it must say that it belongs there.
pub(crate) fn judge(slot: Slot, object: SlotObject) -> Seen {
    match object {
        SlotObject::Fence(fence) if fence.generation.0 == slot.0 => Seen::Fence(fence),
        SlotObject::Fence(fence) => Seen::Damaged(format!("its fence is that of slot {}", fence.generation)),
        SlotObject::Record(record) if record.slot != slot => {
            Seen::Damaged(format!("its record is that of slot {}", record.slot))
        }
        SlotObject::Record(record) if record.generation().0 >= slot.0 => {
            Seen::Damaged(format!("its record is of generation {}, which is not older", record.generation()))
        }
        SlotObject::Record(record) => Seen::Record(Arc::from(record)),
    }
}

/// The state of the chain.
pub(crate) fn derive(observed: &Observed) -> Result<ChainState, CheckpointError> {
    let records: BTreeMap<Slot, &Arc<Record>> = observed
        .slots
        .iter()
        .filter_map(|(&slot, seen)| if let Seen::Record(record) = seen { Some((slot, record)) } else { None })
        .collect();
    let newest = records.last_key_value();
    let damaged = observed.slots.iter().rev().find_map(|(&slot, seen)| match seen {
        Seen::Damaged(why) if newest.is_none_or(|(&top, _)| slot > top) => Some((slot, why.clone())),
        _ => None,
    });
    let mut state = ChainState {
        open: Vec::new(),
        base: None,
        damaged,
        committed: observed.committed.last().copied(),
        epoch_top: epoch_top(observed),
        end: observed.slots.last_key_value().map_or(Slot(0), |(&slot, _)| slot),
    };
    let mut next = newest.map(|(_, &record)| record);
    while let Some(record) = next {
        if observed.committed.contains(&record.epoch()) {
            state.base = Some(Arc::clone(record));
            break;
        }
        state.open.insert(0, Arc::clone(record));
        next = parent_of(record, &records, &observed.committed)?;
    }
    Ok(state)
}

fn epoch_top(observed: &Observed) -> Epoch {
    let records = observed.slots.values().filter_map(|seen| match seen {
        Seen::Record(record) => Some(record.epoch()),
        _ => None,
    });
    records.chain(observed.committed.iter().copied()).max().unwrap_or(Epoch(0))
}

fn parent_of<'a>(
    record: &Record,
    records: &BTreeMap<Slot, &'a Arc<Record>>,
    committed: &BTreeSet<Epoch>,
) -> Result<Option<&'a Arc<Record>>, CheckpointError> {
    let Some(parent) = record.parent else { return Ok(None) };
    match records.get(&parent.slot) {
        Some(found) if found.digest == parent.digest => Ok(Some(found)),
        _ if committed.contains(&parent.epoch) => Ok(None),
        _ => Err(CheckpointError::Broken { epoch: parent.epoch, slot: parent.slot }),
    }
}

#[cfg(test)]
pub(crate) mod tests;
