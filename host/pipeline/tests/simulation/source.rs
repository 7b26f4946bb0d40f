//! A source that tells the world's history.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use async_trait::async_trait;
use cdchost_connector::{
    ConnectorError, Containment, EventSender, OpenedSource, Source, SourceBarrier, SourceCommand, SourceConnector,
    SourceContext, SourceEvent, SourceRestore, TableEvent,
};
use cdchost_model::{
    ChangeBatch, ChangeSeq, Epoch, Field, LogicalType, RowMeta, SchemaChange, SchemaVersion, SourceOffset, StateBlob,
    TableId, TableSchema, TransactionId, TransactionRun,
};

use super::history::Change;
use super::world::World;

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
    offset.0[..].try_into().map(u64::from_le_bytes).unwrap() as usize
}

/// A source over the world's history. Bounded, unless told that more may come.
#[derive(Debug)]
pub struct SimConnector {
    pub world: Arc<World>,
    pub bounded: bool,
}

#[async_trait]
impl SourceConnector for SimConnector {
    async fn open(&self, restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError> {
        self.world.step().await;
        if restore.is_some() {
            self.world.restores.fetch_add(1, Ordering::Relaxed);
        }
        let told = restore.map_or(0, |restore| transactions_of(&restore.offset));
        let source = SimSource {
            world: Arc::clone(&self.world),
            told,
            announced: BTreeSet::new(),
            bounded: self.bounded,
            ended: false,
        };
        Ok(OpenedSource { source: Box::new(source), tables: (0..3).map(schema).collect(), tables_digest: [7; 32] })
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
    world: Arc<World>,
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
            let more = self.told < self.world.happened() || (self.bounded && !self.ended);
            let pause = Duration::from_micros(self.world.below(8000));
            tokio::select! {
                biased;
                command = context.commands.recv() => match command {
                    None => return Ok(()),
                    Some(SourceCommand::Barrier(epoch)) => {
                        let shown = |piece: Option<&str>| context.progress.send_modify(|progress| {
                            progress.in_one_piece = piece.map(str::to_owned);
                        });
                        shown(self.world.is_held("piece").then_some("a transaction"));
                        self.world.pass("piece").await;
                        self.world.pass("source").await;
                        shown(None);
                        self.barrier(epoch, events).await?;
                    }
                    Some(SourceCommand::Committed(epoch)) => self.check_committed(epoch),
                },
                () = context.clock.sleep(pause), if more => self.tell(events).await?,
            }
            self.world.step().await;
        }
    }
}

impl SimSource {
    async fn barrier(&self, epoch: Epoch, events: &mut dyn EventSender) -> Result<(), ConnectorError> {
        let told = (self.told as u64).to_le_bytes().to_vec();
        let last = self.world.history[..self.told].iter().flatten().last();
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
        for (sink, target) in self.world.targets.iter().enumerate() {
            let marker = target.lock().unwrap().marker.as_ref().map(|marker| marker.cut.epoch);
            if marker.is_none_or(|marker| marker < epoch) {
                self.world.violate(format!("epoch {epoch} was acknowledged, sink {sink} shows {marker:?}"));
            }
        }
    }

    /// Tells a few transactions, one batch a table.
    async fn tell(&mut self, events: &mut dyn EventSender) -> Result<(), ConnectorError> {
        let end = self.world.happened().min(self.told + 1 + self.world.below(4) as usize);
        let world = Arc::clone(&self.world);
        let told = &world.history[self.told..end];
        for table in 0..3 {
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
            world.step().await;
        }
        self.told = end;
        if self.bounded && end == world.happened() && !self.ended {
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
    let columns = RecordBatch::try_new(schema.arrow(), columns).unwrap();
    let meta = RowMeta { change_seq: seqs.into(), ordinal: vec![0; rows].into(), transactions };
    ChangeBatch::new(schema, columns, ops.into(), meta).unwrap()
}
