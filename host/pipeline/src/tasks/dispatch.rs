//! Takes the source's events in order: tables to committers and writers, rows to writers, barriers to all.

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_checkpoint::{PlantedFault, TableVersion};
use cdchost_connector::{ConnectorError, SchemaChangeRequest, SourceBarrier, SourceEvent, StopClass, TableEvent};
use cdchost_model::{ChangeBatch, Cut, Generation, Lineage, SchemaChange, SchemaVersion, TableId};
use tokio::sync::{mpsc, oneshot, watch};

use super::partition::Spread;
use super::{BarrierReport, CommitterMessage, Report, WriterMessage};
use crate::channel::{Receiver, Sender};
use crate::failure::{Failure, bug};

/// Bytes of values that a writer is given at once, so that only what cannot be parted asks for more of its memory.
const WRITE_BYTES_MAX: usize = 16 << 20;

/// The way to one sink.
#[derive(Debug)]
pub(crate) struct SinkLane {
    pub(crate) committer: mpsc::Sender<CommitterMessage>,
    pub(crate) writers: Vec<Sender<WriterMessage>>,
    pub(crate) wants_update_before: bool,
    pub(crate) spread: Spread,
}

/// The dispatcher and its surroundings.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) events: Receiver<SourceEvent>,
    pub(crate) lanes: Vec<SinkLane>,
    pub(crate) reports: mpsc::Sender<Report>,
    /// False while no more epochs may be prepared: rows wait.
    pub(crate) gate: watch::Receiver<bool>,
    pub(crate) generation: Generation,
    pub(crate) lineage: Lineage,
    pub(crate) tables_digest: [u8; 32],
    pub(crate) path_digest: [u8; 32],
    /// The last cut; before the first one of a pipeline, the cut before all epochs.
    pub(crate) last_cut: Arc<Cut>,
    /// Tables seen, in this run or in the record.
    pub(crate) tables: BTreeMap<TableId, SchemaVersion>,
    /// Tables announced in this run.
    pub(crate) announced: BTreeMap<TableId, SchemaVersion>,
    pub(crate) ended: bool,
}

impl Dispatcher {
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        loop {
            let is_barrier = |event: &_| matches!(event, SourceEvent::Barrier(_));
            let held = self.events.recv_with(PlantedFault::OffsetAhead, is_barrier).await.ok_or(Failure::Closed)?;
            match held.message {
                SourceEvent::Table(event) => self.table(event).await?,
                SourceEvent::Batch(batch) => self.batch(batch).await?,
                SourceEvent::Barrier(barrier) => self.barrier(barrier).await?,
                SourceEvent::EndOfInput => {
                    self.ended = true;
                    self.report(Report::EndOfInput).await?;
                }
            }
            drop(held.credit);
        }
    }

    /// The change is made at every target before any later row reaches any writer.
    async fn table(&mut self, event: TableEvent) -> Result<(), Failure> {
        let (SchemaChange::CreateTable, Some(schema)) = (&event.change, event.after.clone()) else {
            return Err(refused(&event));
        };
        let request = SchemaChangeRequest {
            id: event.id,
            at: (*self.last_cut).clone(),
            before: event.before,
            change: event.change,
            after: event.after,
        };
        let mut answers = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let (done, answer) = oneshot::channel();
            let message = CommitterMessage::Apply(Box::new(request.clone()), done);
            lane.committer.send(message).await.map_err(|_| Failure::Closed)?;
            answers.push(answer);
        }
        for answer in answers {
            answer.await.map_err(|_| Failure::Closed)?;
        }
        tracing::info!(event = "table-applied", table = %schema.table, change = request.change.tag());
        for writer in self.lanes.iter().flat_map(|lane| &lane.writers) {
            writer.send_control(WriterMessage::Schema(Arc::clone(&schema))).await?;
        }
        self.tables.insert(schema.table.clone(), schema.version);
        self.announced.insert(schema.table.clone(), schema.version);
        Ok(())
    }

    async fn batch(&mut self, batch: ChangeBatch) -> Result<(), Failure> {
        self.gate.wait_for(|open| *open).await.map_err(|_| Failure::Closed)?;
        let schema = batch.schema();
        if self.announced.get(&schema.table) != Some(&schema.version) {
            let message = format!("rows of table {} came before its schema", schema.table);
            return Err(bug("rows-before-schema", message));
        }
        let batch = batch.with_whole_pairs();
        let Some((last, first)) = self.lanes.split_last() else { return Ok(()) };
        for lane in first {
            lane.send(batch.clone()).await?;
        }
        last.send(batch).await
    }

    async fn barrier(&mut self, barrier: SourceBarrier) -> Result<(), Failure> {
        let cut = Arc::new(Cut {
            epoch: barrier.epoch,
            generation: self.generation,
            lineage: self.lineage.clone(),
            offset: barrier.offset,
            change_seq: barrier.change_seq,
            path_digest: self.path_digest,
            tables_digest: self.tables_digest,
            end_of_input: self.ended,
        });
        self.last_cut = Arc::clone(&cut);
        let version = |(table, &version): (&TableId, _)| TableVersion { table: table.clone(), version };
        let tables = self.tables.iter().map(version).collect();
        self.report(Report::Barrier(BarrierReport { cut: Arc::clone(&cut), source: barrier.state, tables })).await?;
        for writer in self.lanes.iter().flat_map(|lane| &lane.writers) {
            writer.send_control(WriterMessage::Barrier(Arc::clone(&cut))).await?;
        }
        Ok(())
    }

    async fn report(&self, report: Report) -> Result<(), Failure> {
        self.reports.send(report).await.map_err(|_| Failure::Closed)
    }
}

impl SinkLane {
    async fn send(&self, batch: ChangeBatch) -> Result<(), Failure> {
        let batch =
            if self.wants_update_before || !batch.has_updates() { batch } else { batch.without_update_before() };
        for (writer, part) in self.spread.parts(batch) {
            let pieces = if part.bytes() > WRITE_BYTES_MAX { part.pieces(WRITE_BYTES_MAX) } else { vec![part] };
            for piece in pieces {
                let bytes = piece.bytes();
                self.writers[writer].send_rows(WriterMessage::Batch(piece), bytes).await?;
            }
        }
        Ok(())
    }
}

fn refused(event: &TableEvent) -> Failure {
    let table = event.after.as_ref().or(event.before.as_ref()).map(|schema| schema.table.clone());
    let shown = table.as_ref().map_or("a table".into(), |table| format!("table {table}"));
    let message = format!("{} of {shown} cannot be carried to the sinks yet", event.change.tag());
    let mut error = ConnectorError::stop(StopClass::Schema, "schema-change-refused", message)
        .with_instruction("begin afresh with another store and target to take the table as it is now");
    error.table = table;
    error.into()
}
