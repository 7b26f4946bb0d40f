//! Data files: rows of one bucket in Parquet, and what manifests say of them. Of tables with a key they are sorted by it,
//! one row a key; of tables without they stand in the order in which they came.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::binary_row::serialize_row;
use super::key::{KeyColumns, KeyRange};
use super::manifest::{DataFile, Stats};
use super::partition::PartitionColumns;
use super::schema::LakeType;

/// Name of the column that orders the versions of a row.
const SEQUENCE_COLUMN: &str = "_SEQUENCE_NUMBER";
/// Name of the column that tells deletes from rows.
const KIND_COLUMN: &str = "_VALUE_KIND";
/// Field ids that Paimon gives these two.
const SEQUENCE_FIELD_ID: i32 = i32::MAX - 1;
const KIND_FIELD_ID: i32 = i32::MAX - 2;

/// How many columns stand in a file before those of the table.
pub const SYSTEM_COLUMN_COUNT: usize = 2;
/// Value of the kind column: a row that came to be, or was read.
pub const KIND_INSERT: i8 = 0;
/// Value of the kind column: a row as it is after an update.
pub const KIND_UPDATE: i8 = 2;
/// Value of the kind column: a row that is gone.
pub const KIND_DELETE: i8 = 3;

/// How many bytes of a row group are gathered before it is written out.
const ROW_GROUP_BYTES: usize = 4 << 20;

/// A column of the table, as data files need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumn {
    /// Its field id.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: LakeType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
}

/// How rows of a table lie in its data files: sequence number and kind, where the table has a key, then the columns.
/// (The key columns that older writers repeat in front are left out, as `data-file.thin-mode` says.)
#[derive(Debug)]
pub struct FileLayout {
    schema: SchemaRef,
    schema_id: i64,
    key_places: Vec<usize>,
    key_types: Vec<LakeType>,
    partition_places: Vec<usize>,
    partition_types: Vec<LakeType>,
    properties: Arc<WriterProperties>,
}

impl FileLayout {
    /// The layout of a table's files under one schema; `key` are places in `columns`, in key order.
    pub fn new(schema_id: i64, columns: &[FileColumn], key: &[usize], compression: Compression) -> Self {
        Self::divided(schema_id, columns, (key, &[]), compression)
    }

    /// The same for a table that is divided; the second places are those of the columns that divide it, which the key
    /// leaves out.
    pub fn divided(
        schema_id: i64,
        columns: &[FileColumn],
        (key, partition): (&[usize], &[usize]),
        compression: Compression,
    ) -> Self {
        let with_id = |field: Field, id: i32| {
            field.with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]))
        };
        let mut fields = vec![
            with_id(Field::new(SEQUENCE_COLUMN, arrow_schema::DataType::Int64, false), SEQUENCE_FIELD_ID),
            with_id(Field::new(KIND_COLUMN, arrow_schema::DataType::Int8, false), KIND_FIELD_ID),
        ];
        if key.is_empty() {
            fields.clear();
        }
        fields.extend(columns.iter().map(|c| with_id(Field::new(&c.name, c.ty.arrow(), c.nullable), c.id)));
        let mut properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by("cdchost".to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .set_dictionary_enabled(false);
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(KIND_COLUMN), true);
        let types = |places: &[usize]| places.iter().filter_map(|&place| columns.get(place)).map(|c| c.ty).collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            schema_id,
            key_places: key.to_vec(),
            key_types: types(key),
            partition_places: partition.to_vec(),
            partition_types: types(partition),
            properties: Arc::new(properties.build()),
        }
    }

    /// The columns of a file, in order.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether rows have a key, and versions.
    pub fn is_keyed(&self) -> bool {
        !self.key_places.is_empty()
    }

    /// Whether rows lie in partitions.
    pub fn is_divided(&self) -> bool {
        !self.partition_places.is_empty()
    }

    /// The key columns among sequence number, kind and the table's columns.
    pub fn key_columns<'a>(&self, columns: &'a [ArrayRef]) -> KeyColumns<'a> {
        let columns = self.key_places.iter().map(|place| &columns[SYSTEM_COLUMN_COUNT + place]);
        KeyColumns::new(columns.zip(self.key_types.iter().copied()))
    }

    /// The columns that divide the table among sequence number, kind and the table's columns.
    pub fn partition_columns<'a>(&self, columns: &'a [ArrayRef]) -> PartitionColumns<'a> {
        let columns = self.partition_places.iter().map(|place| &columns[SYSTEM_COLUMN_COUNT + place]);
        PartitionColumns::new(columns.zip(self.partition_types.iter().copied()))
    }
}

/// Writes one data file; rows come sorted by key, each key once.
pub struct DataFileWriter<W: Write + Send> {
    layout: Arc<FileLayout>,
    parquet: ArrowWriter<Counted<W>>,
    row_count: i64,
    delete_count: i64,
    sequences: (i64, i64),
    keys: KeyRange,
}

impl<W: Write + Send> DataFileWriter<W> {
    /// A file that is written to `out`.
    pub fn new(layout: Arc<FileLayout>, out: W) -> Result<Self, ParquetError> {
        let options = ArrowWriterOptions::new()
            .with_properties(layout.properties.as_ref().clone())
            .with_skip_arrow_metadata(true);
        let out = Counted { inner: out, bytes: 0 };
        let parquet = ArrowWriter::try_new_with_options(out, Arc::clone(&layout.schema), options)?;
        Ok(Self {
            layout,
            parquet,
            row_count: 0,
            delete_count: 0,
            sequences: (i64::MAX, i64::MIN),
            keys: KeyRange::default(),
        })
    }

    /// Adds rows: sequence number, kind, then the table's columns.
    pub fn write(&mut self, mut columns: Vec<ArrayRef>) -> Result<(), ParquetError> {
        let row_count = columns.first().map_or(0, |column| column.len());
        if row_count == 0 {
            return Ok(());
        }
        for &sequence in columns[0].as_primitive::<Int64Type>().values() {
            self.sequences = (self.sequences.0.min(sequence), self.sequences.1.max(sequence));
        }
        let kinds = columns[1].as_primitive::<Int8Type>().values();
        self.delete_count += kinds.iter().filter(|&&kind| kind == KIND_DELETE).count() as i64; // rows are below 2^63
        self.row_count += row_count as i64; // likewise
        if self.layout.is_keyed() {
            self.keys.extend(&self.layout.key_columns(&columns), row_count);
        } else {
            columns.drain(..SYSTEM_COLUMN_COUNT);
        }
        self.parquet.write(&RecordBatch::try_new(Arc::clone(&self.layout.schema), columns)?)
    }

    /// Bytes of the file so far, near enough.
    pub fn size(&self) -> usize {
        self.parquet.bytes_written() + self.parquet.in_progress_size()
    }

    /// Rows so far.
    pub fn row_count(&self) -> i64 {
        self.row_count
    }

    /// Ends the file, which has at least one row: where it was written to, and what a manifest says of it.
    pub fn finish(self, name: String, creation_time: i64) -> Result<(W, DataFile), ParquetError> {
        let out = self.parquet.into_inner()?;
        let file = DataFile {
            name,
            size: out.bytes,
            row_count: self.row_count,
            min_key: serialize_row(&self.keys.first()),
            max_key: serialize_row(&self.keys.last()),
            key_stats: Stats {
                min_values: serialize_row(&self.keys.least()),
                max_values: serialize_row(&self.keys.greatest()),
                null_counts: Some(vec![Some(0); self.layout.key_places.len()]),
            },
            value_stats: Stats::none(),
            min_sequence_number: self.sequences.0,
            max_sequence_number: self.sequences.1,
            schema_id: self.layout.schema_id,
            level: 0,
            extra_files: Vec::new(),
            creation_time: Some(creation_time),
            delete_row_count: Some(self.delete_count),
            embedded_index: None,
            file_source: Some(0),
            value_stats_cols: Some(Vec::new()),
            external_path: None,
            first_row_id: None,
            write_cols: None,
        };
        Ok((out.inner, file))
    }
}

/// Counts what is written through it.
struct Counted<W> {
    inner: W,
    bytes: i64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(data)?;
        self.bytes += written as i64; // files are below 2^63
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write + Send> std::fmt::Debug for DataFileWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFileWriter").field("rows", &self.row_count).finish_non_exhaustive()
    }
}
