//! The rows of one table that one writer holds, and the data files made of them.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use cdchost_sdk::runtime::now_micros;
use cdchost_sdk::{Batch, PluginError, Result, Schema, TableId};
use parquet::basic::Compression;
use parquet::errors::ParquetError;

use crate::client::{Names, TableFolder};
use crate::config::{Buckets, Settings, check_table_options};
use crate::encode::{chunk_of, lake_columns, lake_schema, table_options};
use crate::fold::{Chunk, Run, fold};
use crate::format::data_file::{DataFileWriter, FileColumn, FileLayout};
use crate::format::manifest::{EntryKind, ManifestEntry};
use crate::format::partition::Partitioning;
use crate::format::schema::{LakeColumn, LakeSchema};

/// The rows of one table that one writer holds.
#[derive(Debug)]
pub(super) struct TableBuffer {
    folder: TableFolder,
    columns: Vec<LakeColumn>,
    layout: Arc<FileLayout>,
    schema_id: i64,
    buckets: Buckets,
    partitioning: Partitioning,
    chunks: Vec<Chunk>,
    chunk_bytes: usize,
    /// Files that are written and not yet handed over.
    staged: Vec<ManifestEntry>,
}

/// Chunks of fewer rows are put together, so that many small batches do not slow down what follows.
const SMALL_CHUNK_ROWS: usize = 2048;

impl TableBuffer {
    /// Looks up the lake's table, which the committer has made.
    pub(super) fn open(folder: TableFolder, schema: &Schema, settings: &Settings) -> Result<Self> {
        let (columns, lake) = look_up(&folder, schema, settings)?;
        Ok(Self {
            layout: Arc::new(layout_of(&lake, &columns)),
            schema_id: lake.id,
            buckets: Buckets::of(&lake.options, !lake.primary_keys.is_empty())?,
            partitioning: Partitioning::of(&lake).map_err(|why| folder.broken("its schema", &why))?,
            folder,
            columns,
            chunks: Vec::new(),
            chunk_bytes: 0,
            staged: Vec::new(),
        })
    }

    /// What follows has another schema; the rows so far have been written out.
    pub(super) fn change_schema(&mut self, schema: &Schema, settings: &Settings) -> Result<()> {
        let staged = std::mem::take(&mut self.staged);
        let changed = Self::open(self.folder.clone(), schema, settings);
        match changed {
            Ok(changed) => *self = Self { staged, ..changed },
            Err(error) => {
                self.staged = staged;
                return Err(error);
            }
        }
        Ok(())
    }

    pub(super) fn id(&self) -> &TableId {
        &self.folder.id
    }

    pub(super) fn schema_id(&self) -> i64 {
        self.schema_id
    }

    pub(super) fn buckets(&self) -> Buckets {
        self.buckets
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(super) fn take(&mut self, batch: Batch) -> Result<()> {
        let bytes = batch.bytes();
        let chunk = chunk_of(batch, &self.columns, self.layout.is_keyed())?;
        if chunk.read.is_empty() {
            return Ok(());
        }
        self.chunks.push(chunk);
        self.chunk_bytes += bytes;
        self.join_small_chunks().map_err(|error| failed(self.id(), "rows cannot be put together", &error))
    }

    /// Writes all rows to data files and forgets them. After an error they are still there.
    pub(super) fn write_out(&mut self, names: &mut Names, last_epoch: u64, target_file_size: usize) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let mut written = Vec::new();
        if let Err(error) = self.write_files(names, last_epoch, target_file_size, &mut written) {
            self.remove(&written);
            return Err(error);
        }
        self.staged.append(&mut written);
        self.chunks.clear();
        self.chunk_bytes = 0;
        Ok(())
    }

    /// The files written since the last hand-over.
    pub(super) fn hand_over(&mut self) -> Vec<ManifestEntry> {
        std::mem::take(&mut self.staged)
    }

    /// Forgets rows and removes files that were not handed over.
    pub(super) fn discard(&mut self) {
        self.chunks.clear();
        self.chunk_bytes = 0;
        let staged = self.hand_over();
        self.remove(&staged);
    }

    /// Removes files that nobody was told of. A store that does not answer leaves them to the next run's recovery.
    fn remove(&self, entries: &[ManifestEntry]) {
        if let Err(error) = self.folder.delete_data(&self.partitioning, entries) {
            cdchost_sdk::runtime::log(
                cdchost_sdk::runtime::Level::Warn,
                "staged files are left behind",
                &[("table", &self.folder.id.to_string()), ("error", &error.message)],
            );
        }
    }

    fn write_files(
        &self,
        names: &mut Names,
        last_epoch: u64,
        target_file_size: usize,
        written: &mut Vec<ManifestEntry>,
    ) -> Result<()> {
        let Self { folder, layout, .. } = self;
        for run in fold(layout, self.buckets.count(), &self.chunks) {
            let place = self.partitioning.folder(&run.partition).map_err(|why| folder.broken("a row", &why))?;
            let place = format!("{place}bucket-{}/", run.bucket);
            let mut open: Option<OpenFile> = None;
            run.for_each(|columns| {
                let file = match &mut open {
                    Some(file) => file,
                    None => open.insert(OpenFile::begin(folder, &place, layout, names.data_file(last_epoch))?),
                };
                file.parquet.write(columns).map_err(|error| file_failed(folder, &error))?;
                if file.parquet.size() >= target_file_size
                    && let Some(full) = open.take()
                {
                    written.push(full.end(folder, &run, self.buckets)?);
                }
                Ok::<_, WriteError>(())
            })
            .map_err(|WriteError(error)| error)?;
            if let Some(last) = open {
                written.push(last.end(folder, &run, self.buckets)?);
            }
        }
        Ok(())
    }

    /// Joins the last chunks while they are small and alike in size, as a binary counter carries.
    fn join_small_chunks(&mut self) -> Result<(), ArrowError> {
        while let [.., one, other] = self.chunks.as_slice()
            && one.read.len() + other.read.len() <= SMALL_CHUNK_ROWS
            && one.read.len() <= other.read.len() * 2
        {
            let columns = one.columns.iter().zip(&other.columns);
            let columns = columns.map(|(one, other)| concat(&[one.as_ref(), other.as_ref()]));
            let joined = Chunk {
                columns: columns.collect::<Result<_, _>>()?,
                read: [one.read.as_slice(), &other.read].concat(),
            };
            self.chunks.truncate(self.chunks.len() - 2);
            self.chunks.push(joined);
        }
        Ok(())
    }
}

/// A data file that is being written.
struct OpenFile {
    name: String,
    parquet: DataFileWriter<cdchost_sdk::object_store::Upload>,
}

impl OpenFile {
    fn begin(folder: &TableFolder, place: &str, layout: &Arc<FileLayout>, name: String) -> Result<Self> {
        let upload = folder.upload(&format!("{place}{name}"));
        let parquet = DataFileWriter::new(Arc::clone(layout), upload).map_err(|error| file_failed(folder, &error))?;
        Ok(Self { name, parquet })
    }

    fn end(self, folder: &TableFolder, run: &Run<'_>, buckets: Buckets) -> Result<ManifestEntry> {
        let millis = (now_micros() / 1000) as i64; // the clock is far below 2^63
        let (mut upload, file) = self.parquet.finish(self.name, millis).map_err(|error| file_failed(folder, &error))?;
        upload.flush().map_err(|error| file_failed(folder, &ParquetError::External(Box::new(error))))?;
        upload.finish()?;
        let bucket = run.bucket as i32; // bucket counts are far below 2^31
        let (partition, total_buckets) = (run.partition.clone(), buckets.total());
        Ok(ManifestEntry { kind: EntryKind::Add, partition, bucket, total_buckets, file })
    }
}

/// Lets the closures of [`crate::fold`] fail with a plugin's error.
struct WriteError(PluginError);

impl From<PluginError> for WriteError {
    fn from(error: PluginError) -> Self {
        Self(error)
    }
}

impl From<ArrowError> for WriteError {
    fn from(error: ArrowError) -> Self {
        Self(PluginError::bug("rows-broken", format!("rows cannot be gathered: {error}")))
    }
}

/// The lake's table for a source's table, checked to take its rows.
fn look_up(folder: &TableFolder, schema: &Schema, settings: &Settings) -> Result<(Vec<LakeColumn>, LakeSchema)> {
    let columns = lake_columns(schema, settings.time)?;
    let wanted = lake_schema(schema, settings, table_options(schema, settings), 0)?;
    let refuse = |message: String| Err(PluginError::config("table-differs", message).with_table(&schema.table));
    let Some(lake) = folder.newest_schema()? else {
        return refuse(format!("table {} is not in the lake", schema.table));
    };
    if let Some(difference) = lake.difference(&wanted) {
        return refuse(format!("the lake's table {} has changed: {difference}", schema.table));
    }
    check_table_options(&lake.options).map_err(|error| error.with_table(&schema.table))?;
    Ok((columns, lake))
}

fn layout_of(lake: &LakeSchema, columns: &[LakeColumn]) -> FileLayout {
    let file_columns: Vec<_> = lake
        .fields
        .iter()
        .zip(columns)
        .map(|(field, column)| FileColumn {
            id: field.id,
            name: column.name.clone(),
            ty: column.ty,
            nullable: column.nullable,
        })
        .collect();
    let place_of = |name: &String| lake.fields.iter().position(|field| field.name == *name);
    let partition: Vec<_> = lake.partition_keys.iter().filter_map(place_of).collect();
    let key: Vec<_> =
        lake.primary_keys.iter().filter_map(place_of).filter(|place| !partition.contains(place)).collect();
    let compression = match lake.option("file.compression") {
        Some("none") => Compression::UNCOMPRESSED,
        _ => Compression::SNAPPY,
    };
    FileLayout::divided(lake.id, &file_columns, (&key, &partition), compression)
}

/// A store that does not answer stays that, also when it comes through the Parquet writer.
fn file_failed(folder: &TableFolder, error: &ParquetError) -> PluginError {
    if let ParquetError::External(cause) = error {
        let cause = cause.as_ref();
        let io = cause
            .downcast_ref::<std::io::Error>()
            .and_then(|io| io.get_ref())
            .map(|inner| inner as &dyn std::error::Error);
        let store = io.unwrap_or(cause).downcast_ref::<cdchost_sdk::object_store::StoreError>();
        if let Some(store) = store {
            return store.clone().into();
        }
    }
    failed(&folder.id, "a data file cannot be written", error)
}

fn failed(table: &TableId, what: &str, error: &dyn std::fmt::Display) -> PluginError {
    PluginError::bug("rows-broken", format!("{what} for table {table}: {error}")).with_table(table)
}
