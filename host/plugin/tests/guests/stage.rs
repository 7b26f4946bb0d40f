//! What every test needs: an engine, a sink of a guest, a table, a batch, a cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use cdchost_config::{ByteSize, Grants, Limits};
use cdchost_connector::{Sink, SinkWriter, SystemClock};
use cdchost_model::{
    ChangeBatch, ChangeSeq, Cut, Epoch, Field, Generation, Lineage, LogicalType, RowMeta, SchemaVersion, SourceOffset,
    TableId, TableSchema, TransactionRun,
};
use cdchost_plugin::{EngineOptions, Plugin, PluginEngine, PluginSpec};
use tempfile::TempDir;

use crate::guest::Guest;

pub fn engine() -> PluginEngine {
    let mut options = EngineOptions::new(Arc::new(SystemClock::default()));
    // One thread: whoever holds on to it stops everybody else.
    options.threads = 1;
    options.instances_max = 8;
    options.probe_timeout = Duration::from_millis(500);
    PluginEngine::new(options).unwrap()
}

pub fn limits() -> Limits {
    Limits {
        memory: ByteSize(32 << 20),
        table_elements: 1000,
        call_timeout: Duration::from_secs(20),
        output: ByteSize(16 << 20),
        handles: 50,
        log_lines_per_second: 10,
    }
}

pub fn spec() -> PluginSpec {
    PluginSpec {
        pipeline: "demo".into(),
        id: "lake".into(),
        options: serde_json::Map::new(),
        secrets: BTreeMap::new(),
        allow: Grants::default(),
        limits: limits(),
        stores: BTreeMap::new(),
    }
}

pub async fn load(engine: &PluginEngine, guest: Guest) -> Plugin {
    let folder = TempDir::new().unwrap();
    let path = guest.write(folder.path(), "guest");
    engine.load(&path, None).await.unwrap()
}

pub async fn refusal(engine: &PluginEngine, bytes: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("guest.wasm");
    std::fs::write(&path, bytes).unwrap();
    engine.load(Path::new(&path), None).await.map(|_| ()).unwrap_err().findings().join("\n")
}

pub async fn sink(engine: &PluginEngine, guest: Guest) -> Arc<dyn Sink> {
    load(engine, guest).await.sink(spec()).unwrap()
}

/// A writer that is open and knows the table.
pub async fn writer(sink: &Arc<dyn Sink>) -> Box<dyn SinkWriter> {
    let mut writer = sink.writer(Generation(3), 0, 1).await.unwrap();
    writer.open(Vec::new()).await.unwrap();
    writer.on_schema(&schema()).await.unwrap();
    writer
}

pub fn schema() -> Arc<TableSchema> {
    let field = |name: &str, ty, nullable| Field {
        name: name.into(),
        ty,
        nullable,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: TableId::new("shop", "orders"),
        version: SchemaVersion(1),
        fields: vec![field("id", LogicalType::Int64, false), field("note", LogicalType::Text { max: None }, true)],
        primary_key: vec![0],
        partition_key: Vec::new(),
        options: Vec::new(),
    })
}

/// Rows with these ids.
pub fn batch(ids: &[i64]) -> ChangeBatch {
    let schema = schema();
    let notes: StringArray = ids.iter().map(|id| (id % 2 == 0).then(|| format!("note {id}"))).collect();
    let columns: [ArrayRef; 2] = [Arc::new(Int64Array::from(ids.to_vec())), Arc::new(notes)];
    let rows = u32::try_from(ids.len()).unwrap();
    let meta = RowMeta {
        change_seq: ids.to_vec().into(),
        ordinal: vec![0; ids.len()].into(),
        transactions: vec![TransactionRun { rows, id: None, position: None, commit_time: 7 }],
    };
    let columns = RecordBatch::try_new(schema.arrow(), columns.to_vec()).unwrap();
    ChangeBatch::new(schema, columns, vec![0; ids.len()].into(), meta).unwrap()
}

pub fn cut(epoch: u64) -> Cut {
    Cut {
        epoch: Epoch(epoch),
        generation: Generation(3),
        lineage: Lineage("l".into()),
        offset: SourceOffset(vec![1, 2, 3].into()),
        change_seq: ChangeSeq(9),
        path_digest: [1; 32],
        tables_digest: [2; 32],
        end_of_input: false,
    }
}
