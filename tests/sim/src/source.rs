//! A source that tells the world's history.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use async_trait::async_trait;
use cdchost_connector::{
    ConnectorError, Containment, EventSender, OpenedSource, Source, SourceBarrier, SourceCommand, SourceConnector,
    SourceContext, SourceEvent, SourceRestore, StopClass, TableEvent,
};
use cdchost_model::{
    ChangeBatch, ChangeSeq, Epoch, Field, LogicalType, RowMeta, SchemaChange, SchemaVersion, SourceOffset, StateBlob,
    TableId, TableSchema, TransactionId, TransactionRun,
};

use crate::history::Change;
use crate::host::Host;
use crate::world::TABLES;

/// A table's name.
pub fn table_id(table: usize) -> TableId {
    TableId::new("sim", format!("t{table}"))
}

fn schema(table: usize) -> Arc<TableSchema> {
    let field = |name: &str| Field {
        name: name.into(),
        ty: LogicalType::Int64,
        nullable: false,
        native_type: "bigint".into(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: table_id(table),
        version: SchemaVersion(1),
        fields: vec![field("id"), field("value")],
        primary_key: vec![0],
        partition_key: vec![],
        options: vec![],
    })
}

/// How far the source is: transactions told, in eight bytes.
pub fn transactions_of(offset: &SourceOffset) -> usize {
    let bytes = offset.0[..].try_into().expect("the engine hands offsets on as they are");
    u64::from_le_bytes(bytes) as usize
}

/// A source over the world's history.
#[derive(Debug)]
pub struct SimConnector {
    /// The process that it runs in.
    pub host: Arc<Host>,
    /// Whether its input ends with what has happened when it looks.
    pub bounded: bool,
}

#[async_trait]
impl SourceConnector for SimConnector {
    async fn open(&self, restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError> {
        self.host.step().await;
        if restore.is_some() {
            self.host.world.count(|facts| facts.restores += 1);
        }
        let told = restore.map_or(0, |restore| transactions_of(&restore.offset));
        self.host.note(format_args!("source opens at {told}"));
        let source = SimSource {
            host: Arc::clone(&self.host),
            told,
            announced: BTreeSet::new(),
            bounded: self.bounded,
            ended: false,
        };
        Ok(OpenedSource { source: Box::new(source), tables: (0..TABLES).map(schema).collect(), tables_digest: [7; 32] })
    }

    fn compare(&self, one: &SourceOffset, other: &SourceOffset) -> Result<Containment, ConnectorError> {
        Ok(match transactions_of(one).cmp(&transactions_of(other)) {
            std::cmp::Ordering::Less => Containment::ContainedIn,
            std::cmp::Ordering::Equal => Containment::Equal,
            std::cmp::Ordering::Greater => Containment::Contains,
        })
    }

    fn describe(&self, offset: &SourceOffset) -> String {
        transactions_of(offset).to_string()
    }
}

struct SimSource {
    host: Arc<Host>,
    told: usize,
    announced: BTreeSet<usize>,
    bounded: bool,
    ended: bool,
}

#[async_trait]
impl Source for SimSource {
    async fn run(
        mut self: Box<Self>,
        events: &mut dyn EventSender,
        mut context: SourceContext,
    ) -> Result<(), ConnectorError> {
        loop {
            let more = self.told < self.host.world.happened() || (self.bounded && !self.ended);
            let pause = Duration::from_micros(self.host.world.below(8000));
            tokio::select! {
                biased;
                command = context.commands.recv() => match command {
                    None => return Ok(()),
                    Some(SourceCommand::Barrier(epoch)) => {
                        let shown = |piece: Option<&str>| context.progress.send_modify(|progress| {
                            progress.in_one_piece = piece.map(str::to_owned);
                        });
                        shown(self.host.world.is_held("piece").then_some("a transaction"));
                        self.host.world.pass("piece").await;
                        self.host.world.pass("source").await;
                        shown(None);
                        self.barrier(epoch, events).await?;
                    }
                    Some(SourceCommand::Committed(epoch)) => self.check_committed(epoch),
                },
                () = context.clock.sleep(pause), if more => self.tell(events).await?,
            }
            self.host.step().await;
            if self.host.world.chance(self.host.world.rates().source) {
                return Err(ConnectorError::restart(StopClass::Source, "sim-source", "the server went away"));
            }
        }
    }
}

impl SimSource {
    async fn barrier(&self, epoch: Epoch, events: &mut dyn EventSender) -> Result<(), ConnectorError> {
        self.host.note(format_args!("barrier {epoch} at {}", self.told));
        let told = (self.told as u64).to_le_bytes().to_vec();
        let last = self.host.world.history[..self.told].iter().flatten().last();
        let barrier = SourceBarrier {
            epoch,
            offset: SourceOffset(told.clone().into()),
            state: StateBlob { format: 1, payload: told.into() },
            change_seq: ChangeSeq(last.map_or(0, |change| change.number * 2 + 1)),
        };
        events.send(SourceEvent::Barrier(barrier)).await
    }

    /// An epoch is acknowledged only when every target shows it.
    fn check_committed(&self, epoch: Epoch) {
        self.host.note(format_args!("source hears of epoch {epoch}"));
        for sink in 0..self.host.world.sinks() {
            let marker = self.host.world.target(sink).marker.as_ref().map(|marker| marker.cut.epoch);
            if marker.is_none_or(|marker| marker < epoch) {
                self.host.world.violate(format!("epoch {epoch} was acknowledged, sink {sink} shows {marker:?}"));
            }
        }
    }

    /// Tells a few transactions, one batch a table.
    async fn tell(&mut self, events: &mut dyn EventSender) -> Result<(), ConnectorError> {
        let end = self
            .host
            .world
            .happened()
            .min(self.told + 1 + self.host.world.below(self.host.world.measures().stride) as usize);
        let host = Arc::clone(&self.host);
        let told = &host.world.history[self.told..end];
        for table in 0..TABLES {
            let runs: Vec<(usize, Vec<&Change>)> = told
                .iter()
                .enumerate()
                .map(|(at, changes)| (self.told + at, changes.iter().filter(|c| c.table == table).collect()))
                .collect();
            if runs.iter().all(|(_, changes)| changes.is_empty()) {
                continue;
            }
            if self.announced.insert(table) {
                let event = TableEvent {
                    id: format!("create-{table}"),
                    before: None,
                    change: SchemaChange::CreateTable,
                    after: Some(schema(table)),
                };
                events.send(SourceEvent::Table(event)).await?;
            }
            events.send(SourceEvent::Batch(batch(table, &runs))).await?;
            host.step().await;
        }
        self.told = end;
        if self.bounded && end == host.world.happened() && !self.ended {
            self.ended = true;
            events.send(SourceEvent::EndOfInput).await?;
        }
        Ok(())
    }
}

fn batch(table: usize, runs: &[(usize, Vec<&Change>)]) -> ChangeBatch {
    let (mut ids, mut values, mut ops, mut seqs) = (Vec::new(), Vec::new(), Vec::<u8>::new(), Vec::new());
    let mut transactions = Vec::new();
    for (number, changes) in runs {
        let before = ids.len();
        for (seq, op, id, value) in changes.iter().flat_map(|change| change.rows()) {
            ids.push(id);
            values.push(value);
            ops.push(op as u8);
            seqs.push(seq);
        }
        let rows = (ids.len() - before) as u32;
        if rows > 0 {
            let id = TransactionId { prefix: "sim:".into(), number: *number as u64 };
            transactions.push(TransactionRun { rows, id: Some(id), position: None, commit_time: 0 });
        }
    }
    let schema = schema(table);
    let rows = ids.len();
    let columns: Vec<arrow_array::ArrayRef> = vec![Arc::new(Int64Array::from(ids)), Arc::new(Int64Array::from(values))];
    let columns = RecordBatch::try_new(schema.arrow(), columns).expect("columns fit the schema");
    let meta = RowMeta { change_seq: seqs.into(), ordinal: vec![0; rows].into(), transactions };
    ChangeBatch::new(schema, columns, ops.into(), meta).expect("one op and one number a row")
}
