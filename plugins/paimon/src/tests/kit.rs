//! A warehouse in memory, runs of the sink in it, and a reader of what came out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use cdchost_sdk::data::RawColumn;
use cdchost_sdk::harness::{Instance, World};
use cdchost_sdk::{
    Batch, Committable, Committer, Cut, Field, LogicalType, Op, Outcome, ReadPlan, Recovered, Result, Schema,
    SchemaChange, SchemaChangeRequest, Sink, TableId, Writer,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::committer::merge_entries;
use crate::format::manifest::{ManifestEntry, read_manifest, read_manifest_list};
use crate::format::snapshot::Snapshot;
use crate::{Options, Paimon, PaimonCommitter, PaimonWriter};

/// A key, and its value; none = deleted.
pub(super) type Change = (i32, Op, i64, Option<&'static str>);

/// A warehouse in memory with one table `shop.orders (id int primary key, note text)`.
#[derive(Clone, Debug)]
pub(super) struct Warehouse {
    pub(super) world: World,
    pub(super) options: Value,
    pub(super) pipeline: String,
}

/// One run of the sink: a committer and two writers of one generation.
pub(super) struct Run {
    pub(super) warehouse: Warehouse,
    pub(super) generation: u64,
    pub(super) committer: PaimonCommitter,
    pub(super) writers: Vec<PaimonWriter>,
    plan: Option<ReadPlan>,
}

pub(super) fn orders() -> Arc<Schema> {
    table("orders")
}

pub(super) fn table(name: &str) -> Arc<Schema> {
    schema(name, &[("id", LogicalType::Int32, false), ("note", LogicalType::Text { max: Some(20) }, true)])
}

pub(super) fn schema(name: &str, columns: &[(&str, LogicalType, bool)]) -> Arc<Schema> {
    let field = |(name, ty, nullable): &(&str, LogicalType, bool)| Field {
        name: (*name).into(),
        ty: ty.clone(),
        nullable: *nullable,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(Schema {
        table: TableId::new("shop", name),
        version: 1,
        fields: columns.iter().map(field).collect(),
        primary_key: vec![0],
        partition_key: Vec::new(),
        options: Vec::new(),
    })
}

pub(super) fn cut(epoch: u64, generation: u64) -> Cut {
    Cut {
        epoch,
        generation,
        lineage: "first".into(),
        offset: vec![7; 3],
        change_seq: epoch as i64 * 100,
        path_digest: vec![1; 32],
        tables_digest: vec![2; 32],
        end_of_input: false,
    }
}

impl Warehouse {
    pub(super) fn new() -> Self {
        let options = json!({"warehouse": "lake/wh", "table": {"bucket": 4}});
        Self { world: World::new(&["lake"]), options, pipeline: "test".into() }
    }

    pub(super) fn instance(&self, generation: u64, subtask: u32) -> Instance {
        let mut instance = Instance::new(self.options.clone());
        instance.context.pipeline = self.pipeline.clone();
        instance.context.generation = generation;
        (instance.context.subtask, instance.context.parallelism) = (subtask, 2);
        instance
    }

    fn options(&self) -> Options {
        serde_json::from_value(self.options.clone()).unwrap()
    }

    pub(super) fn committer(&self, generation: u64) -> Result<PaimonCommitter> {
        self.world.run(&self.instance(generation, 0), || Ok(Paimon::committer(self.options())?.0))
    }

    /// Opens committer and writers as the host does, recovery in between.
    pub(super) fn start(
        &self,
        generation: u64,
        restored: Option<&Cut>,
        pending: &[Committable],
    ) -> Result<(Run, Recovered)> {
        let mut committer = self.committer(generation)?;
        let recovered = self.world.run(&self.instance(generation, 0), || committer.recover(restored, pending))?;
        let writer = |subtask| {
            self.world.run(&self.instance(generation, subtask), || Paimon::writer(self.options(), Vec::new()))
        };
        let writers = vec![writer(0)?, writer(1)?];
        Ok((Run { warehouse: self.clone(), generation, committer, writers, plan: None }, recovered))
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.world.paths("lake")
    }

    fn object(&self, path: &str) -> Vec<u8> {
        self.world.object("lake", path).unwrap_or_else(|| panic!("{path} is not there"))
    }

    pub(super) fn snapshots(&self, table: &str) -> Vec<Snapshot> {
        let folder = format!("wh/shop.db/{table}/snapshot/");
        let ids = self.paths().into_iter().filter_map(|path| Snapshot::id_of(path.strip_prefix(&folder)?));
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        let read = |id: &u64| Snapshot::parse(&self.object(&format!("{folder}snapshot-{id}"))).unwrap();
        ids.iter().map(read).collect()
    }

    pub(super) fn live_files(&self, table: &str, snapshot: &Snapshot) -> Vec<ManifestEntry> {
        let object = |name: &str| self.object(&format!("wh/shop.db/{table}/manifest/{name}"));
        let lists = [&snapshot.base_manifest_list, &snapshot.delta_manifest_list];
        let manifests = lists.into_iter().flat_map(|list| read_manifest_list(&object(list)).unwrap());
        merge_entries(manifests.flat_map(|manifest| read_manifest(&object(&manifest.name)).unwrap()).collect())
    }

    /// What a reader sees of the newest snapshot: the newest version of each key, deletes left out.
    pub(super) fn rows(&self, table: &str) -> BTreeMap<i32, String> {
        let snapshots = self.snapshots(table);
        snapshots.last().map(|newest| self.rows_at(table, newest)).unwrap_or_default()
    }

    pub(super) fn rows_at(&self, table: &str, snapshot: &Snapshot) -> BTreeMap<i32, String> {
        let mut newest: BTreeMap<i32, (i64, i8, String)> = BTreeMap::new();
        for entry in self.live_files(table, snapshot) {
            let path = format!("wh/shop.db/{table}/bucket-{}/{}", entry.bucket, entry.file.name);
            let bytes = self.object(&path);
            assert_eq!(bytes.len() as i64, entry.file.size, "{path}");
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let mut row_count = 0;
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                row_count += batch.num_rows() as i64;
                let sequences = batch.column(0).as_primitive::<Int64Type>();
                let kinds = batch.column(1).as_primitive::<Int8Type>();
                let keys = batch.column(2).as_primitive::<Int32Type>();
                let notes = batch.column(3).as_string::<i32>();
                assert!(keys.values().is_sorted_by(|one, next| one < next), "{path} is not sorted by key");
                for row in 0..batch.num_rows() {
                    let version = (sequences.value(row), kinds.value(row), notes.value(row).to_owned());
                    let held = newest.entry(keys.value(row)).or_insert_with(|| version.clone());
                    if held.0 <= version.0 {
                        *held = version;
                    }
                }
            }
            assert_eq!(row_count, entry.file.row_count);
        }
        let live = newest.into_iter().filter(|(_, (_, kind, _))| *kind != 3);
        live.map(|(key, (_, _, note))| (key, note)).collect()
    }

    /// Paths of data files that no snapshot names.
    pub(super) fn unnamed_data_files(&self, table: &str) -> Vec<String> {
        let named: Vec<_> =
            self.snapshots(table).iter().flat_map(|snapshot| self.live_files(table, snapshot)).collect();
        let folder = format!("wh/shop.db/{table}/");
        let mut paths = self.paths();
        let is_data = |path: &String| path.starts_with(&folder) && path.contains("/bucket-");
        paths.retain(|path| is_data(path) && !named.iter().any(|entry| path.ends_with(&entry.file.name)));
        paths
    }

    /// Writes the warehouse where the environment asks for it, so that other people's readers can look at it.
    pub(super) fn keep(&self, name: &str) {
        let Some(folder) = std::env::var_os("CDCHOST_KEEP_LAKES") else { return };
        for path in self.paths() {
            let file = std::path::Path::new(&folder).join(name).join(&path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, self.object(&path)).unwrap();
        }
    }
}

impl Run {
    pub(super) fn committer<T>(&mut self, work: impl FnOnce(&mut PaimonCommitter) -> T) -> T {
        let instance = self.warehouse.instance(self.generation, 0);
        self.warehouse.world.run(&instance, || work(&mut self.committer))
    }

    pub(super) fn writer<T>(&mut self, subtask: usize, work: impl FnOnce(&mut PaimonWriter) -> T) -> T {
        let instance = self.warehouse.instance(self.generation, subtask as u32);
        self.warehouse.world.run(&instance, || work(&mut self.writers[subtask]))
    }

    pub(super) fn create(&mut self, schema: &Arc<Schema>) -> Result<()> {
        let request = SchemaChangeRequest {
            id: format!("create {}", schema.table),
            at: cut(0, self.generation),
            before: None,
            change: SchemaChange::CreateTable,
            after: Some(Arc::clone(schema)),
        };
        self.committer(|committer| committer.apply_schema_change(&request))?;
        for subtask in 0..self.writers.len() {
            self.plan = Some(self.writer(subtask, |writer| writer.on_schema(schema))?);
        }
        Ok(())
    }

    /// Hands rows to the writer that their key falls to.
    pub(super) fn write(&mut self, schema: &Arc<Schema>, changes: &[Change]) -> Result<()> {
        for subtask in 0..self.writers.len() {
            let own: Vec<_> =
                changes.iter().filter(|change| change.0.rem_euclid(2) == subtask as i32).copied().collect();
            if !own.is_empty() {
                let plan = self.plan.clone().expect("the table was announced");
                let batch = batch(schema, plan, &own)?;
                self.writer(subtask, |writer| writer.write(batch))?;
            }
        }
        Ok(())
    }

    pub(super) fn prepare(&mut self, epoch: u64) -> Result<Vec<Committable>> {
        let at = cut(epoch, self.generation);
        let mut items = Vec::new();
        for subtask in 0..self.writers.len() {
            items.extend(self.writer(subtask, |writer| writer.prepare_commit(&at))?);
        }
        Ok(items)
    }

    pub(super) fn commit(&mut self, epoch: u64, items: &[Committable]) -> Result<Vec<Outcome>> {
        let at = cut(epoch, self.generation);
        self.committer(|committer| committer.commit(&at, items))
    }

    /// A whole epoch that must become visible.
    pub(super) fn epoch(&mut self, epoch: u64, schema: &Arc<Schema>, changes: &[Change]) -> Vec<Committable> {
        self.write(schema, changes).unwrap();
        let items = self.prepare(epoch).unwrap();
        let outcomes = self.commit(epoch, &items).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Committed), "{outcomes:?}");
        items
    }
}

fn batch(schema: &Arc<Schema>, plan: ReadPlan, changes: &[Change]) -> Result<Batch> {
    let notes: Vec<Option<&str>> = changes.iter().map(|change| change.3).collect();
    let keys =
        RawColumn { data: changes.iter().flat_map(|change| change.0.to_le_bytes()).collect(), ..RawColumn::default() };
    let sequences =
        RawColumn { data: changes.iter().flat_map(|change| change.2.to_le_bytes()).collect(), ..RawColumn::default() };
    let ops = changes.iter().map(|change| change.1 as u8).collect();
    Batch::new(Arc::clone(schema), Arc::new(plan), ops, vec![keys, texts(&notes)], vec![sequences])
}

/// A column of texts as it crosses the contract.
pub(super) fn texts(values: &[Option<impl AsRef<[u8]>>]) -> RawColumn {
    let (mut offsets, mut data) = (0i32.to_le_bytes().to_vec(), Vec::new());
    for value in values {
        data.extend_from_slice(value.as_ref().map_or(&[], AsRef::as_ref));
        offsets.extend_from_slice(&(data.len() as i32).to_le_bytes());
    }
    let validity = bits(values.iter().map(Option::is_some));
    let null_count = values.iter().filter(|value| value.is_none()).count() as u32;
    RawColumn { null_count, validity, offsets, data }
}

/// Bits, least significant first.
pub(super) fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let values: Vec<bool> = values.collect();
    let byte = |bits: &[bool]| bits.iter().enumerate().map(|(place, &bit)| u8::from(bit) << place).sum();
    values.chunks(8).map(byte).collect()
}
