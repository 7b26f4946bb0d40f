//! Removes what no restore can need any more.

use cdchost_model::Epoch;

use crate::paths::{self, COMMITTED, SLOTS};
use crate::workflow::Kept;
use crate::{Chain, CheckpointError, PlantedFault, Slot};

impl Chain {
    /// Keeps the newest `retained` records that are noted as committed (at least one), all records that are not, and
    /// every slot above the oldest of these; removes the slots below and their notes. Says how many objects it removed.
    ///
    /// Slots go from the lowest up, so that the chain never gets a gap. The newest record and all fences above it
    /// always stay: a run that slept finds its next slot taken, or is told by a higher one that it is too late.
    pub async fn collect_garbage(&mut self, retained: u32) -> Result<u64, CheckpointError> {
        let Some((slot, epoch)) = self.oldest_needed(retained) else { return Ok(0) };
        let mut removed = 0;
        let below = |name: &&String| paths::parse_slot(name).is_some_and(|found| found < slot);
        for name in self.objects().names(SLOTS, None).await?.iter().filter(below) {
            self.objects().remove(name).await?;
            removed += 1;
        }
        let older = |name: &&String| paths::parse_committed(name).is_some_and(|found| found < epoch);
        for name in self.objects().names(COMMITTED, None).await?.iter().filter(older) {
            self.objects().remove(name).await?;
            removed += 1;
        }
        self.kept.retain(|&kept, _| kept >= slot);
        Ok(removed)
    }

    /// The oldest record to be kept, once there are more committed ones than are asked for.
    fn oldest_needed(&self, retained: u32) -> Option<(Slot, Epoch)> {
        let counts = |kept: &Kept| kept.committed || PlantedFault::CleanedOpen.is_planted();
        let committed = self.kept.iter().rev().filter(|(_, kept)| counts(kept));
        committed.map(|(&slot, kept)| (slot, kept.epoch)).nth(retained.max(1) as usize - 1)
    }
}
