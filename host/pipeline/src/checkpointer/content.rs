//! What an epoch's record will hold, as it comes together.

use std::sync::Arc;
use std::time::Duration;

use cdchost_checkpoint::{PlantedFault, Record, SinkRecord, TableVersion};
use cdchost_connector::StopClass;
use cdchost_model::{Committable, Cut, Epoch, SourceOffset, StateBlob};

use super::{Holdup, SinkPart};
use crate::failure::{Failure, bug};
use crate::handle::CheckpointRequest;
use crate::tasks::Report;

/// All of a record that says how far the pipeline is; two equal ones mean that nothing happened between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    offset: SourceOffset,
    source: StateBlob,
    tables: Vec<TableVersion>,
    tables_digest: [u8; 32],
    writers: Vec<Vec<StateBlob>>,
    end_of_input: bool,
}

impl Content {
    pub(crate) fn of_record(record: &Record) -> Self {
        Self {
            offset: record.cut.offset.clone(),
            source: record.source.clone(),
            tables: record.tables.clone(),
            tables_digest: record.cut.tables_digest,
            writers: record.sinks.iter().map(|sink| sink.writers.clone()).collect(),
            end_of_input: record.cut.end_of_input,
        }
    }

    /// Whether it is that of the last epoch of a bounded run.
    pub(crate) fn is_end(&self) -> bool {
        self.end_of_input
    }
}

/// What one writer handed over.
type Prepared = (Vec<Committable>, StateBlob);

/// A checkpoint between its barrier and its record.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) epoch: Epoch,
    pub(crate) since: Duration,
    pub(crate) requests: Vec<CheckpointRequest>,
    barrier: Option<(Arc<Cut>, StateBlob, Vec<TableVersion>)>,
    /// By sink and subtask.
    prepared: Vec<Vec<Option<Prepared>>>,
}

/// A checkpoint that all have prepared.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) cut: Cut,
    pub(crate) source: StateBlob,
    pub(crate) tables: Vec<TableVersion>,
    pub(crate) sinks: Vec<SinkRecord>,
    pub(crate) content: Content,
}

impl InFlight {
    pub(crate) fn new(
        epoch: Epoch,
        since: Duration,
        requests: Vec<CheckpointRequest>,
        writers: impl Iterator<Item = usize>,
    ) -> Self {
        let prepared = writers.map(|writers| vec![None; writers]).collect();
        Self { epoch, since, requests, barrier: None, prepared }
    }

    pub(crate) fn take(&mut self, report: Report) -> Result<(), Failure> {
        match report {
            Report::Barrier(barrier) if barrier.cut.epoch == self.epoch && self.barrier.is_none() => {
                crate::failpoints::hit(crate::failpoints::AFTER_BARRIER);
                tracing::info!(event = "prepare-started", epoch = self.epoch.0);
                self.barrier = Some((barrier.cut, barrier.source, barrier.tables));
                Ok(())
            }
            Report::Prepared { sink, subtask, epoch, committables, state } if epoch == self.epoch => {
                let place = self.prepared.get_mut(sink).and_then(|writers| writers.get_mut(subtask));
                match place {
                    Some(place @ None) => *place = Some((committables, state)),
                    _ => return Err(bug("checkpoint-order", "a writer prepared twice")),
                }
                Ok(())
            }
            _ => Err(bug("checkpoint-order", format!("epoch {} got the barrier of another one", self.epoch))),
        }
    }

    pub(crate) fn is_prepared(&self) -> bool {
        self.barrier.is_some() && self.prepared.iter().flatten().all(Option::is_some)
    }

    /// Whether the source has not come to it.
    pub(crate) fn awaits_barrier(&self) -> bool {
        self.barrier.is_none()
    }

    /// Who is waited for.
    pub(crate) fn holdup(&self, sinks: &[SinkPart]) -> Holdup {
        if self.awaits_barrier() {
            return (StopClass::Source, "the barrier did not arrive from the source".into());
        }
        for (sink, writers) in sinks.iter().zip(&self.prepared) {
            if let Some(subtask) = writers.iter().position(Option::is_none) {
                return (StopClass::Sink, format!("writer {subtask} of sink {} is still preparing", sink.id));
            }
        }
        (StopClass::Storage, "the record is still being stored".into())
    }

    /// Puts the parts together; must be prepared.
    pub(crate) fn gather(self, parts: &[SinkPart]) -> Result<Gathered, Failure> {
        let Some((cut, source, tables)) = self.barrier else {
            return Err(bug("checkpoint-order", "an epoch without barrier was taken for prepared"));
        };
        let cut = Arc::unwrap_or_clone(cut);
        let mut sinks = Vec::with_capacity(parts.len());
        let mut writers = Vec::with_capacity(parts.len());
        for (part, prepared) in parts.iter().zip(self.prepared) {
            let (committables, states): (Vec<_>, Vec<_>) = prepared.into_iter().flatten().unzip();
            writers.push(states.clone());
            let mut committables: Vec<_> = committables.into_iter().flatten().collect();
            if PlantedFault::CommittableLeftOut.is_planted() {
                committables.pop();
            }
            sinks.push(SinkRecord::new(part.id.clone(), part.version.clone(), part.digest, states, committables));
        }
        let content = Content {
            offset: cut.offset.clone(),
            source: source.clone(),
            tables: tables.clone(),
            tables_digest: cut.tables_digest,
            writers,
            end_of_input: cut.end_of_input,
        };
        Ok(Gathered { cut, source, tables, sinks, content })
    }
}
