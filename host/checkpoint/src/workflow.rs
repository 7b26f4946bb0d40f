//! Read → decide → act: claims a place in the chain, stores records, notes commits.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cdchost_model::{Cut, Epoch, Generation, StateBlob};
use cdchost_storage::{PutOutcome, StorageError};

use crate::derive::{Observed, Seen, derive, judge, unbroken_end};
use crate::paths::{self, COMMITTED, SLOTS};
use crate::record::format::{self, Fence, Note, OBJECT_BYTES_MAX};
use crate::record::permits;
use crate::{
    ChainState, CheckpointError, CheckpointStore, CommitPermit, DecodeError, Parent, PlantedFault, Record, SinkRecord,
    Slot, TableVersion,
};

/// So often the chain is read anew because another run moves it on meanwhile.
const READS_MAX: u32 = 100;

/// An epoch that every sink has prepared and that is not durable yet. Nothing of it can be committed.
#[derive(Debug)]
pub struct PreparedEpoch {
    /// Where it ends.
    pub cut: Cut,
    /// The source's state there.
    pub source: StateBlob,
    /// Tables seen so far.
    pub tables: Vec<TableVersion>,
    /// The sinks.
    pub sinks: Vec<SinkRecord>,
    /// Now, in microseconds since the epoch.
    pub created_micros: i64,
    /// The configuration as JSON, without secrets.
    pub config: String,
}

/// An epoch whose record is durable: it can be committed, and must be.
#[derive(Debug)]
pub struct DurableEpoch {
    epoch: Epoch,
    slot: Slot,
    permits: Vec<CommitPermit>,
}

impl DurableEpoch {
    /// Its number.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Where its record lies.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// What each sink prepared, to be committed.
    pub fn into_permits(self) -> Vec<CommitPermit> {
        self.permits
    }
}

/// What became of a [`Chain::store`].
#[derive(Debug)]
pub enum Stored {
    /// The record is durable and this run is the newest.
    Durable(DurableEpoch),
    /// Not known; call again with the epoch given back.
    Again(Box<PreparedEpoch>, StorageError),
    /// A newer run has taken over. Stop without abort and without clean-up: what it found durable is its business.
    Fenced {
        /// A slot that is not ours.
        by: Slot,
    },
}

/// A run's hold on the chain.
#[derive(Debug)]
pub struct Chain {
    store: CheckpointStore,
    pipeline: String,
    generation: Generation,
    last: Slot,
    parent: Option<Parent>,
    /// The bytes of a record whose outcome is not known, so that it is tried again as it was.
    unsettled: Option<(Epoch, Bytes)>,
    /// Records not cleaned away yet, and whether they are noted as committed.
    pub(crate) kept: BTreeMap<Slot, Kept>,
    /// Records that a planted fault holds back.
    #[cfg(feature = "planted-faults")]
    held_back: Vec<(String, Bytes)>,
}

/// A record as the clean-up knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) epoch: Epoch,
    pub(crate) committed: bool,
}

impl Chain {
    /// Reads the chain and writes nothing.
    pub async fn peek(store: &CheckpointStore, pipeline: &str) -> Result<ChainState, CheckpointError> {
        let mut reader = Reader::new(store, pipeline);
        reader.catch_up().await?;
        derive(&reader.observed)
    }

    /// Fences all older runs, and reads what they left. `nonce` tells this claim from any other.
    pub async fn claim(
        store: CheckpointStore,
        pipeline: &str,
        now_micros: i64,
        nonce: u64,
    ) -> Result<(Self, ChainState), CheckpointError> {
        let mut reader = Reader::new(&store, pipeline);
        let generation = loop {
            reader.catch_up().await?;
            let slot = reader.end().next();
            let generation = Generation(slot.0);
            let fence = Fence { pipeline: pipeline.into(), generation, created_micros: now_micros, nonce };
            let object = format::encode_fence(&fence);
            let created = store.create(&paths::slot(slot), object.clone()).await?;
            let ours = created == PutOutcome::Created || store.read(&paths::slot(slot)).await? == Some(object);
            // A slot can be free because it was cleaned away: then there is a higher one, and the claim is void.
            if ours && store.slots_after(&paths::slot(slot)).await?.is_empty() {
                break generation;
            }
        };
        reader.catch_up().await?;
        let state = derive(&reader.observed)?;
        let kept = kept(&reader.observed, &state);
        let last = Slot(generation.0);
        let chain = Self {
            pipeline: pipeline.into(),
            generation,
            last,
            parent: None,
            unsettled: None,
            kept,
            store,
            #[cfg(feature = "planted-faults")]
            held_back: Vec::new(),
        };
        Ok((chain, state))
    }

    /// The number of this run.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The record that the next one grows from.
    pub fn grow_from(&mut self, record: Option<&Record>) {
        self.parent = record.map(Record::link);
    }

    /// Makes a prepared epoch durable. On [`Stored::Again`] the same epoch must be tried again before any other.
    pub async fn store(&mut self, epoch: PreparedEpoch) -> Result<Stored, CheckpointError> {
        let slot = self.last.next();
        let name = paths::slot(slot);
        let object = self.object(&epoch, slot)?;
        match self.create(&name, object.clone()).await {
            Ok(true) => {}
            Ok(false) => return Ok(Stored::Fenced { by: slot }),
            Err(error) if error.is_transient() => return Ok(Stored::Again(Box::new(epoch), error)),
            Err(error) => return Err(error.into()),
        }
        self.last = slot;
        self.unsettled = None;
        self.parent = Some(Parent { slot, epoch: epoch.cut.epoch, digest: format::digest_of(&object) });
        self.kept.insert(slot, Kept { epoch: epoch.cut.epoch, committed: false });
        let permits = permits(&epoch.cut, &epoch.sinks);
        Ok(Stored::Durable(DurableEpoch { epoch: epoch.cut.epoch, slot, permits }))
    }

    /// Notes that an epoch is committed at all sinks. May be repeated.
    pub async fn note_committed(&mut self, epoch: Epoch) -> Result<(), CheckpointError> {
        let note = Note { pipeline: self.pipeline.clone(), epoch };
        #[cfg(feature = "planted-faults")]
        while let Some((name, object)) = self.held_back.pop() {
            self.store.create(&name, object).await?;
        }
        self.store.create(&paths::committed(epoch), format::encode_note(&note)).await?;
        for kept in self.kept.values_mut().filter(|kept| kept.epoch == epoch) {
            kept.committed = true;
        }
        Ok(())
    }

    /// A slot of a run that came after this one, if there is any.
    pub async fn overtaken(&self) -> Result<Option<Slot>, CheckpointError> {
        Ok(self.store.slots_after(&paths::slot(self.last)).await?.first().copied())
    }

    pub(crate) fn objects(&self) -> &CheckpointStore {
        &self.store
    }

    /// Whether our object is in the slot and no other run came after; false = fenced.
    async fn create(&mut self, name: &str, object: Bytes) -> Result<bool, StorageError> {
        #[cfg(feature = "planted-faults")]
        if PlantedFault::CommitBeforeStore.is_planted() {
            self.held_back.push((name.into(), object));
            return Ok(true);
        }
        let ours = match self.store.create(name, object.clone()).await? {
            PutOutcome::Created => true,
            PutOutcome::AlreadyExists => self.store.read(name).await? == Some(object),
        };
        // A run that slept may create anew what was cleaned away; a higher slot shows that it is no longer the newest.
        Ok(ours && self.store.slots_after(name).await?.is_empty() || PlantedFault::FenceNotChecked.is_planted())
    }

    fn object(&mut self, epoch: &PreparedEpoch, slot: Slot) -> Result<Bytes, CheckpointError> {
        if let Some((unsettled, object)) = &self.unsettled
            && *unsettled == epoch.cut.epoch
        {
            return Ok(object.clone());
        }
        let record = Record {
            pipeline: self.pipeline.clone(),
            slot,
            parent: self.parent,
            cut: epoch.cut.clone(),
            source: epoch.source.clone(),
            tables: epoch.tables.clone(),
            sinks: epoch.sinks.clone(),
            created_micros: epoch.created_micros,
            config: epoch.config.clone(),
            digest: [0; 32],
        };
        let object = format::encode_record(&record);
        if object.len() as u64 > OBJECT_BYTES_MAX {
            let bytes = object.len() as u64;
            return Err(CheckpointError::TooLarge { epoch: epoch.cut.epoch, bytes, max: OBJECT_BYTES_MAX });
        }
        self.unsettled = Some((epoch.cut.epoch, object.clone()));
        Ok(object)
    }
}

/// What a run finds and may clean away: the records that it grows from, and those before them that were committed.
fn kept(observed: &Observed, state: &ChainState) -> BTreeMap<Slot, Kept> {
    let noted = observed.slots.iter().filter_map(|(&slot, seen)| match seen {
        Seen::Record(record) if observed.committed.contains(&record.epoch()) => {
            Some((slot, Kept { epoch: record.epoch(), committed: true }))
        }
        _ => None,
    });
    let path = state.path().map(|record| {
        let committed = state.committed.is_some_and(|epoch| epoch >= record.epoch());
        (record.slot, Kept { epoch: record.epoch(), committed })
    });
    noted.chain(path).collect()
}

/// Reads slots and notes, each once.
struct Reader<'a> {
    store: &'a CheckpointStore,
    pipeline: &'a str,
    observed: Observed,
}

impl<'a> Reader<'a> {
    fn new(store: &'a CheckpointStore, pipeline: &'a str) -> Self {
        Self { store, pipeline, observed: Observed::default() }
    }

    /// The last slot seen.
    fn end(&self) -> Slot {
        self.observed.slots.last_key_value().map_or(Slot(0), |(&slot, _)| slot)
    }

    /// Reads until slots and notes belong together: a note counts only if the slots are those from before it was seen.
    /// Otherwise a run that moves on meanwhile would look like one whose records are gone.
    async fn catch_up(&mut self) -> Result<(), CheckpointError> {
        let mut slots = self.slots().await?;
        for _ in 0..READS_MAX {
            self.read(&slots).await?;
            let notes = self.store.names(COMMITTED, None).await?;
            self.observed.committed = notes.iter().filter_map(|name| paths::parse_committed(name)).collect();
            let now = self.slots().await?;
            if now == slots {
                return Ok(());
            }
            slots = now;
        }
        Err(CheckpointError::Moving { reads: READS_MAX })
    }

    async fn slots(&self) -> Result<BTreeSet<Slot>, CheckpointError> {
        let names = self.store.names(SLOTS, None).await?;
        Ok(names.iter().filter_map(|name| paths::parse_slot(name)).collect())
    }

    /// Reads those of the slots that count and were not read yet.
    async fn read(&mut self, slots: &BTreeSet<Slot>) -> Result<(), CheckpointError> {
        let end = unbroken_end(slots);
        self.observed.slots.retain(|slot, _| end.contains(slot));
        for slot in end {
            if !self.observed.slots.contains_key(&slot)
                && let Some(object) = self.store.read(&paths::slot(slot)).await?
            {
                let seen = self.see(slot, &object)?;
                self.observed.slots.insert(slot, seen);
            }
        }
        Ok(())
    }

    fn see(&self, slot: Slot, object: &Bytes) -> Result<Seen, CheckpointError> {
        let seen = match format::decode_slot(object) {
            Ok(object) => judge(slot, object),
            Err(reason @ DecodeError::Format { .. }) => return Err(CheckpointError::Format { slot, reason }),
            Err(reason) => Seen::Damaged(reason.to_string()),
        };
        let found = match &seen {
            Seen::Fence(fence) => &fence.pipeline,
            Seen::Record(record) => &record.pipeline,
            Seen::Damaged(_) => return Ok(seen),
        };
        if found != self.pipeline {
            return Err(CheckpointError::Foreign { own: self.pipeline.into(), found: found.clone() });
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests;
