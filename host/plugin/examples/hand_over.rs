//! Measures what it costs to hand batches to a sink: `hand_over COMPONENT [options JSON [folder of the root "lake"]]`.
//!
//! The rows are 200 bytes wide in 12 columns (5 int64, 2 int32, 1 float64, 4 texts of which one nullable).
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers, run by hand")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use cdchost_config::{ByteSize, Grants, Limits};
use cdchost_connector::{SchemaChangeRequest, SystemClock};
use cdchost_model::{
    ChangeBatch, ChangeSeq, Cut, Epoch, Field, Generation, Lineage, LogicalType, RowMeta, SchemaChange, SchemaVersion,
    SourceOffset, TableId, TableSchema, TransactionRun,
};
use cdchost_plugin::{EngineOptions, PluginEngine, PluginSpec};
use cdchost_storage::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap();
    let options = arguments.next().unwrap_or_else(|| "{}".into());
    let root = arguments.next();
    let folder = std::env::temp_dir().join(format!("hand-over-{}", std::process::id()));
    let mut settings = EngineOptions::new(Arc::new(SystemClock::default()));
    settings.cache = Some(folder.clone());
    let engine = PluginEngine::new(settings).unwrap();
    let begun = Instant::now();
    engine.load(Path::new(&path), None).await.unwrap();
    println!("load, compiling: {:?}", begun.elapsed());
    let begun = Instant::now();
    let plugin = engine.load(Path::new(&path), None).await.unwrap();
    println!("load, from the cache: {:?}", begun.elapsed());
    let mut spec = spec(serde_json::from_str(&options).unwrap());
    if let Some(root) = root {
        let store = Store::open(&format!("file://{root}"), &Default::default()).await.unwrap();
        spec.allow.store.insert("lake".into());
        spec.stores.insert("lake".into(), store);
    }
    let sink = plugin.sink(spec).unwrap();
    let begun = Instant::now();
    for _ in 0..1000 {
        sink.writer(Generation(1), 0, 1).await.unwrap();
    }
    println!("store and instance: {:?}", begun.elapsed() / 1000);

    let mut committer = sink.committer(Generation(1)).await.unwrap();
    committer.open().await.unwrap();
    println!("recovered: {:?}", committer.recover(None, &[]).await.unwrap());
    committer.apply_schema_change(&create(batch(1).schema())).await.unwrap();
    let mut epoch = 0;
    for rows in [1, 64, 1024, 8192] {
        let batch = batch(rows);
        let mut writer = sink.writer(Generation(1), 0, 1).await.unwrap();
        writer.open(Vec::new()).await.unwrap();
        writer.on_schema(batch.schema()).await.unwrap();
        let calls = (2_000_000 / rows).clamp(100, 20_000);
        let (mut best, mut cpu) = (Duration::MAX, Duration::MAX);
        for _ in 0..5 {
            let (begun, used) = (Instant::now(), cpu_time());
            for _ in 0..calls {
                writer.write(&batch).await.unwrap();
            }
            best = best.min(begun.elapsed() / u32::try_from(calls).unwrap());
            cpu = cpu.min((cpu_time() - used) / u32::try_from(calls).unwrap());
            epoch += 1;
            let items = writer.prepare_commit(&cut(epoch)).await.unwrap();
            committer.commit(&cut(epoch), &items).await.unwrap();
        }
        let rate = rows as f64 / cpu.as_secs_f64() / 1e6;
        println!("{rows:>5} rows: {best:?} a batch, {cpu:?} of them CPU, {rate:.2} M rows/CPU-s");
        writer.close(true).await;
    }
    committer.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// CPU time of all threads so far.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let nanos = threads.map(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanos.sum())
}

fn spec(options: serde_json::Map<String, serde_json::Value>) -> PluginSpec {
    PluginSpec {
        pipeline: "bench".into(),
        id: "sink".into(),
        options,
        secrets: Default::default(),
        allow: Grants::default(),
        limits: Limits {
            memory: ByteSize(512 << 20),
            table_elements: 100_000,
            call_timeout: Duration::from_secs(300),
            output: ByteSize(256 << 20),
            handles: 1000,
            log_lines_per_second: 100,
        },
        stores: Default::default(),
    }
}

fn batch(rows: usize) -> ChangeBatch {
    let mut columns: Vec<(LogicalType, ArrayRef)> = Vec::new();
    for c in 0..5_i64 {
        let values = (0..rows as i64).map(|row| row * 7 + c);
        columns.push((LogicalType::Int64, Arc::new(Int64Array::from_iter_values(values))));
    }
    for c in 0..2_i32 {
        let values = (0..rows as i32).map(|row| row ^ c);
        columns.push((LogicalType::Int32, Arc::new(Int32Array::from_iter_values(values))));
    }
    let values = (0..rows).map(|row| row as f64);
    columns.push((LogicalType::Float64, Arc::new(Float64Array::from_iter_values(values))));
    for width in [12, 24, 40, 56] {
        let text = |row: usize| (width != 24 || !row.is_multiple_of(5)).then(|| format!("{row:0width$}"));
        columns.push((LogicalType::Text { max: None }, Arc::new((0..rows).map(text).collect::<StringArray>())));
    }
    let field = |(at, (ty, _)): (usize, &(LogicalType, ArrayRef))| Field {
        name: format!("c{at}"),
        ty: ty.clone(),
        nullable: at > 0,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    let schema = Arc::new(TableSchema {
        table: TableId::new("bench", "t"),
        version: SchemaVersion(1),
        fields: columns.iter().enumerate().map(field).collect(),
        primary_key: vec![0],
        partition_key: Vec::new(),
        options: Vec::new(),
    });
    let meta = RowMeta {
        change_seq: (0..rows as i64).collect(),
        ordinal: (0..rows as u32).collect(),
        transactions: vec![TransactionRun { rows: rows as u32, id: None, position: None, commit_time: 1 }],
    };
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let columns = RecordBatch::try_new(schema.arrow(), arrays).unwrap();
    ChangeBatch::new(schema, columns, vec![0; rows].into(), meta).unwrap()
}

/// The table, new.
fn create(schema: &Arc<TableSchema>) -> SchemaChangeRequest {
    SchemaChangeRequest {
        id: "create".into(),
        at: cut(0),
        before: None,
        change: SchemaChange::CreateTable,
        after: Some(Arc::clone(schema)),
    }
}

fn cut(epoch: u64) -> Cut {
    Cut {
        epoch: Epoch(epoch),
        generation: Generation(1),
        lineage: Lineage("bench".into()),
        offset: SourceOffset::default(),
        change_seq: ChangeSeq(1),
        path_digest: [0; 32],
        tables_digest: [0; 32],
        end_of_input: false,
    }
}
