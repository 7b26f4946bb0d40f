use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use async_trait::async_trait;
use cdchost_config::TablePatterns;
use cdchost_connector::{
    RouteConnector, Router, RowTargets, SourceBarrier, SystemClock, TableRoute, Transform, TransformConnector,
};
use cdchost_model::{
    ChangeSeq, Epoch, Field, LogicalType, Op, RowMeta, SchemaVersion, SourceOffset, StateBlob, TransactionRun,
};

use super::*;
use crate::channel::channel;
use crate::setup::{NamedColumn, RouteSetup, TransformSetup};

/// Passes rows on, each table after a pause of its own.
#[derive(Debug)]
struct Slow;

#[async_trait]
impl TransformConnector for Slow {
    fn id(&self) -> &str {
        "slow"
    }

    async fn open(&self, _: Generation, _: u32, _: u32) -> Result<Box<dyn Transform>, ConnectorError> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl Transform for Slow {
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<TableSchema>, ConnectorError> {
        Ok(Arc::clone(schema))
    }

    async fn process(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch, ConnectorError> {
        let slow = batch.schema().table.table.len().is_multiple_of(2);
        tokio::time::sleep(Duration::from_secs(if slow { 60 } else { 1 })).await;
        Ok(batch.clone())
    }
}

/// Sends even ids to one table and odd ones to another.
#[derive(Debug)]
struct Parity;

#[tokio::test]
async fn names_that_no_table_has_are_refused() {
    let patterns = |list: &[&str]| TablePatterns::parse(list).unwrap();
    let column = |name: &str| NamedColumn { option: "hash".into(), name: name.into() };
    let transform = |tables: &[&str], columns: &[&str]| TransformSetup {
        tables: patterns(tables),
        columns: columns.iter().map(|name| column(name)).collect(),
        transform: Arc::new(Slow),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    for (step, expect) in [
        (transform(&["d.a", "!d.x", "d.b"], &["id"]), ""),
        (
            transform(&["d.a", "d.c"], &["id"]),
            "the pattern \"d.c\" matches none of the tables that are captured: d.a, d.b",
        ),
        (
            transform(&["d.a"], &["id", "email"]),
            "hash names the column \"email\", which none of its tables has; they have id",
        ),
        (
            transform(&["d.a"], &["ids"]),
            "hash names the column \"ids\", which none of its tables has, did you mean id?",
        ),
    ] {
        let path = PathSetup { transforms: vec![step], lanes: 1, ..PathSetup::default() };
        let refused = require_met(&path, &[schema("a"), schema("b")], &clock).await.err().map(Failure::into_error);
        let told = refused.map(|error| (error.class, error.message.replace("transform slow: ", "")));
        let expect = (!expect.is_empty()).then(|| (cdchost_connector::StopClass::Config, expect.to_owned()));
        assert_eq!(told, expect);
    }
}

#[async_trait]
impl RouteConnector for Parity {
    fn id(&self) -> &str {
        "parity"
    }

    async fn open(&self, _: Generation, _: u32, _: u32) -> Result<Box<dyn Router>, ConnectorError> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl Router for Parity {
    async fn on_schema(&mut self, _: &Arc<TableSchema>) -> Result<TableRoute, ConnectorError> {
        Ok(TableRoute::ByRow)
    }

    async fn route_rows(&mut self, batch: &ChangeBatch) -> Result<RowTargets, ConnectorError> {
        let targets = vec![TableId::new("t", "even"), TableId::new("t", "odd")];
        let of_row = ids(batch).into_iter().map(|id| u32::from(id % 2 != 0)).collect();
        Ok(RowTargets { targets, of_row })
    }
}

fn ids(batch: &ChangeBatch) -> Vec<i64> {
    batch.columns().column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
}

fn schema(table: &str) -> Arc<TableSchema> {
    let field = Field {
        name: "id".into(),
        ty: LogicalType::Int64,
        nullable: false,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: TableId::new("d", table),
        version: SchemaVersion(1),
        fields: vec![field],
        primary_key: vec![0],
        partition_key: Vec::new(),
        options: Vec::new(),
    })
}

fn rows(table: &str, rows: &[(Op, i64)]) -> SourceEvent {
    let schema = schema(table);
    let columns = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    let columns = RecordBatch::try_new(schema.arrow(), vec![Arc::new(columns)]).unwrap();
    let meta = RowMeta {
        change_seq: (0..rows.len() as i64).collect(),
        ordinal: vec![0; rows.len()].into(),
        transactions: vec![TransactionRun { rows: rows.len() as u32, id: None, position: None, commit_time: 0 }],
    };
    let ops = rows.iter().map(|row| row.0 as u8).collect();
    SourceEvent::Batch(ChangeBatch::new(schema, columns, ops, meta).unwrap())
}

fn table(name: &str) -> SourceEvent {
    let after = Some(schema(name));
    SourceEvent::Table(TableEvent { id: name.into(), before: None, change: SchemaChange::CreateTable, after })
}

fn barrier(epoch: u64) -> SourceEvent {
    SourceEvent::Barrier(SourceBarrier {
        epoch: Epoch(epoch),
        offset: SourceOffset::default(),
        state: StateBlob { format: 1, payload: Default::default() },
        change_seq: ChangeSeq::default(),
    })
}

fn shown(event: &SourceEvent) -> String {
    match event {
        SourceEvent::Table(event) => format!("{} made", event.after.as_ref().unwrap().table),
        SourceEvent::Batch(batch) => {
            let ops = batch.ops().iter().map(u8::to_string).collect::<String>();
            format!("{} {ops} {:?}", batch.schema().table, ids(batch))
        }
        SourceEvent::Barrier(barrier) => format!("barrier {}", barrier.epoch),
        SourceEvent::EndOfInput => "end".into(),
    }
}

/// What comes out of the lanes for these events.
async fn through(path: PathSetup, events: Vec<SourceEvent>, expected: usize) -> Vec<String> {
    let (to, from_source) = channel(1 << 20);
    let (out, mut to_dispatch) = channel(1 << 20);
    let ground = Ground {
        generation: Generation(1),
        clock: Arc::new(SystemClock::default()),
        metrics: PathMetrics::default(),
        status: watch::channel(PipelineStatus::default()).0,
    };
    let mut tasks = JoinSet::new();
    start(&path, ground, (from_source, out), &mut tasks).await.unwrap();
    for event in events {
        to.send_rows(event, 1).await.unwrap();
    }
    let mut said = Vec::new();
    while said.len() < expected {
        let held = to_dispatch.recv().await.expect("the lanes go on");
        said.push(shown(&held.message));
    }
    said
}

fn patterns() -> TablePatterns {
    TablePatterns::parse(&["d.*"]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_comes_out_has_the_order_of_what_went_in() {
    let transform = TransformSetup { tables: patterns(), columns: Vec::new(), transform: Arc::new(Slow) };
    let path = PathSetup { transforms: vec![transform], lanes: 4, ..PathSetup::default() };
    let events = vec![
        table("slow"),
        table("quick"),
        rows("slow", &[(Op::Insert, 1)]),
        rows("quick", &[(Op::Insert, 2)]),
        barrier(1),
        rows("quick", &[(Op::Insert, 3)]),
        rows("slow", &[(Op::Insert, 4)]),
        barrier(2),
        SourceEvent::EndOfInput,
    ];
    let expect = [
        "d.slow made",
        "d.quick made",
        "d.slow 0 [1]",
        "d.quick 0 [2]",
        "barrier 1",
        "d.quick 0 [3]",
        "d.slow 0 [4]",
        "barrier 2",
        "end",
    ];
    assert_ne!(lane_of(&schema("slow").table, 4), lane_of(&schema("quick").table, 4), "they are in different lanes");
    assert_eq!(through(path, events, expect.len()).await, expect);
}

#[tokio::test]
async fn rows_choose_their_table_and_an_update_that_moves_is_a_delete_and_an_insert() {
    let route = RouteSetup { tables: patterns(), targets: Vec::new(), route: Arc::new(Parity) };
    let path = PathSetup { routes: vec![route], ..PathSetup::default() };
    let events = vec![
        table("a"),
        rows("a", &[(Op::Insert, 2), (Op::Insert, 3), (Op::UpdateBefore, 4), (Op::UpdateAfter, 5)]),
        rows("a", &[(Op::Delete, 3)]),
        barrier(1),
    ];
    let expect = ["t.even made", "t.even 03 [2, 4]", "t.odd made", "t.odd 00 [3, 5]", "t.odd 3 [3]", "barrier 1"];
    assert_eq!(through(path, events, expect.len()).await, expect);
}

#[tokio::test]
async fn a_look_tells_the_targets_that_options_name_for_rows_to_choose() {
    let route = |targets: &[&str]| RouteSetup {
        tables: patterns(),
        targets: targets.iter().map(|table| TableId::new("t", *table)).collect(),
        route: Arc::new(Parity),
    };
    let path = PathSetup { routes: vec![route(&["even", "odd"]), route(&[])], ..PathSetup::default() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let plan = plan_tables(&path, &[schema("a")], clock).await.unwrap();
    let planned = plan.tables[0].as_ref().unwrap();
    let choices: Vec<_> = planned.choices.iter().map(|table| (table.table.to_string(), table.fields.len())).collect();
    let columns = schema("a").fields.len();
    assert_eq!((planned.by_row, planned.targets.len()), (true, 0));
    assert_eq!(choices, [("t.even".to_owned(), columns), ("t.odd".to_owned(), columns)]);
}
