//! Entries of a manifest: data files added or deleted.

use super::super::avro::{AvroError, Encoder, Value, read_file, write_file};
use super::super::binary_row::empty_row;
use super::record::Fields;

/// Whether a file came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The file is part of the table from here on.
    Add,
    /// The file is no longer part of the table.
    Delete,
}

/// Least and greatest values of some columns, as binary rows, and how many NULLs each column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The least value of each column.
    pub min_values: Vec<u8>,
    /// The greatest value of each column.
    pub max_values: Vec<u8>,
    /// NULLs of each column.
    pub null_counts: Option<Vec<Option<i64>>>,
}

/// All that a manifest says of one data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Name within its bucket's folder.
    pub name: String,
    /// Bytes.
    pub size: i64,
    /// Rows, deletes included.
    pub row_count: i64,
    /// The first key, as a binary row.
    pub min_key: Vec<u8>,
    /// The last key, as a binary row.
    pub max_key: Vec<u8>,
    /// Of the key columns.
    pub key_stats: Stats,
    /// Of the value columns.
    pub value_stats: Stats,
    /// Least sequence number.
    pub min_sequence_number: i64,
    /// Greatest sequence number.
    pub max_sequence_number: i64,
    /// The schema it was written with.
    pub schema_id: i64,
    /// Level in the merge tree; 0 = as it was flushed.
    pub level: i32,
    /// Names of files that belong to it.
    pub extra_files: Vec<String>,
    /// When it was made, in milliseconds since the epoch.
    pub creation_time: Option<i64>,
    /// How many of its rows are deletes.
    pub delete_row_count: Option<i64>,
    /// An index of the file, embedded.
    pub embedded_index: Option<Vec<u8>>,
    /// 0 written, 1 compacted.
    pub file_source: Option<i64>,
    /// Columns that the value statistics are of; none = all.
    pub value_stats_cols: Option<Vec<String>>,
    /// Where it lies, if not in its bucket's folder.
    pub external_path: Option<String>,
    /// For tables with row ids.
    pub first_row_id: Option<i64>,
    /// Columns that it holds; none = all.
    pub write_cols: Option<Vec<String>>,
}

/// One line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Added or deleted.
    pub kind: EntryKind,
    /// The partition, as a binary row.
    pub partition: Vec<u8>,
    /// The bucket in it.
    pub bucket: i32,
    /// How many buckets the partition has.
    pub total_buckets: i32,
    /// The file.
    pub file: DataFile,
}

impl Stats {
    /// Statistics that were not made.
    pub fn none() -> Self {
        Self { min_values: empty_row(), max_values: empty_row(), null_counts: Some(Vec::new()) }
    }

    pub(super) fn write(&self, out: &mut Encoder) {
        out.bytes(&self.min_values).bytes(&self.max_values);
        out.optional(self.null_counts.as_deref(), |out, counts| {
            out.array(counts, |out, count| {
                out.optional(*count, |out, count| {
                    out.long(count);
                });
            });
        });
    }

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, AvroError> {
        Ok(Self {
            min_values: fields.bytes("_MIN_VALUES")?,
            max_values: fields.bytes("_MAX_VALUES")?,
            null_counts: fields.optional_longs("_NULL_COUNTS")?,
        })
    }
}

impl ManifestEntry {
    /// What makes a file the same in two entries: where it lies, its name and its level.
    pub fn identity(&self) -> (&[u8], i32, &str, i32) {
        (&self.partition, self.bucket, &self.file.name, self.file.level)
    }
}

/// The version of entries that is written; also that of Paimon 1.x and 2.x.
const ENTRY_VERSION: i64 = 2;

const SCHEMA: &str = concat!(
    r#"{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":["#,
    r#"{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},"#,
    r#"{"name":"_BUCKET","type":"int"},{"name":"_TOTAL_BUCKETS","type":"int"},"#,
    r#"{"name":"_FILE","type":{"type":"record","name":"record__FILE","fields":["#,
    r#"{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},"#,
    r#"{"name":"_MIN_KEY","type":"bytes"},{"name":"_MAX_KEY","type":"bytes"},"#,
    r#"{"name":"_KEY_STATS","type":{"type":"record","name":"record__FILE__KEY_STATS","fields":["#,
    r#"{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},"#,
    r#"{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}},"#,
    r#"{"name":"_VALUE_STATS","type":{"type":"record","name":"record__FILE__VALUE_STATS","fields":["#,
    r#"{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},"#,
    r#"{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}},"#,
    r#"{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},"#,
    r#"{"name":"_SCHEMA_ID","type":"long"},{"name":"_LEVEL","type":"int"},"#,
    r#"{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}},"#,
    r#"{"name":"_CREATION_TIME","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},"#,
    r#"{"name":"_DELETE_ROW_COUNT","type":["null","long"],"default":null},"#,
    r#"{"name":"_EMBEDDED_FILE_INDEX","type":["null","bytes"],"default":null},"#,
    r#"{"name":"_FILE_SOURCE","type":["null","int"],"default":null},"#,
    r#"{"name":"_VALUE_STATS_COLS","type":["null",{"type":"array","items":"string"}],"default":null},"#,
    r#"{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},"#,
    r#"{"name":"_FIRST_ROW_ID","type":["null","long"],"default":null},"#,
    r#"{"name":"_WRITE_COLS","type":["null",{"type":"array","items":"string"}],"default":null}]}}]}"#,
);

const ENTRY_FIELDS: [&str; 6] = ["_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE"];

const STATS_FIELDS: [&str; 3] = ["_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS"];

const FILE_FIELDS: [&str; 20] = [
    "_FILE_NAME",
    "_FILE_SIZE",
    "_ROW_COUNT",
    "_MIN_KEY",
    "_MAX_KEY",
    "_KEY_STATS",
    "_VALUE_STATS",
    "_MIN_SEQUENCE_NUMBER",
    "_MAX_SEQUENCE_NUMBER",
    "_SCHEMA_ID",
    "_LEVEL",
    "_EXTRA_FILES",
    "_CREATION_TIME",
    "_DELETE_ROW_COUNT",
    "_EMBEDDED_FILE_INDEX",
    "_FILE_SOURCE",
    "_VALUE_STATS_COLS",
    "_EXTERNAL_PATH",
    "_FIRST_ROW_ID",
    "_WRITE_COLS",
];

/// A manifest of these entries; `sync` must be random.
pub fn write_manifest(entries: &[ManifestEntry], sync: [u8; 16]) -> Vec<u8> {
    write_file(SCHEMA, entries.len(), &encode_entries(entries), sync)
}

/// The entries of a manifest. Fields that are not known here are left out.
pub fn read_manifest(bytes: &[u8]) -> Result<Vec<ManifestEntry>, AvroError> {
    read_file(bytes)?.iter().map(read_entry).collect()
}

/// The entries of a manifest that is to be written anew. Fails on a filled field that is not known here, since it would
/// be lost.
pub fn read_whole_manifest(bytes: &[u8]) -> Result<Vec<ManifestEntry>, AvroError> {
    let values = read_file(bytes)?;
    values.iter().try_for_each(refuse_unknown)?;
    values.iter().map(read_entry).collect()
}

/// The entries one behind the other, without a file around them.
pub fn encode_entries(entries: &[ManifestEntry]) -> Vec<u8> {
    let mut out = Encoder::default();
    entries.iter().for_each(|entry| write_entry(entry, &mut out));
    out.finish()
}

/// What [`encode_entries`] made of so many entries.
pub fn decode_entries(count: usize, bytes: &[u8]) -> Result<Vec<ManifestEntry>, AvroError> {
    read_manifest(&write_file(SCHEMA, count, bytes, [0; 16]))
}

fn write_entry(entry: &ManifestEntry, out: &mut Encoder) {
    let file = &entry.file;
    let long = |out: &mut Encoder, value: i64| {
        out.long(value);
    };
    let bytes = |out: &mut Encoder, value: &[u8]| {
        out.bytes(value);
    };
    let texts = |out: &mut Encoder, value: &[String]| {
        out.array(value, |out, text| {
            out.bytes(text.as_bytes());
        });
    };
    out.long(ENTRY_VERSION);
    out.long(match entry.kind {
        EntryKind::Add => 0,
        EntryKind::Delete => 1,
    });
    out.bytes(&entry.partition).long(entry.bucket.into()).long(entry.total_buckets.into());
    out.bytes(file.name.as_bytes()).long(file.size).long(file.row_count);
    out.bytes(&file.min_key).bytes(&file.max_key);
    file.key_stats.write(out);
    file.value_stats.write(out);
    out.long(file.min_sequence_number).long(file.max_sequence_number);
    out.long(file.schema_id).long(file.level.into());
    texts(out, &file.extra_files);
    out.optional(file.creation_time, long).optional(file.delete_row_count, long);
    out.optional(file.embedded_index.as_deref(), bytes);
    out.optional(file.file_source, long);
    out.optional(file.value_stats_cols.as_deref(), texts);
    out.optional(file.external_path.as_deref().map(str::as_bytes), bytes);
    out.optional(file.first_row_id, long);
    out.optional(file.write_cols.as_deref(), texts);
}

fn refuse_unknown(value: &Value) -> Result<(), AvroError> {
    let entry = Fields::of(value);
    entry.only(&ENTRY_FIELDS)?;
    let file = entry.record("_FILE")?;
    file.only(&FILE_FIELDS)?;
    file.record("_KEY_STATS")?.only(&STATS_FIELDS)?;
    file.record("_VALUE_STATS")?.only(&STATS_FIELDS)
}

fn read_entry(value: &Value) -> Result<ManifestEntry, AvroError> {
    let entry = Fields::of(value);
    let version = entry.long("_VERSION")?;
    if version != ENTRY_VERSION {
        return Err(AvroError(format!("manifest entry of version {version}, known is {ENTRY_VERSION}")));
    }
    let kind = match entry.long("_KIND")? {
        0 => EntryKind::Add,
        1 => EntryKind::Delete,
        other => return Err(AvroError(format!("manifest entry of kind {other}"))),
    };
    Ok(ManifestEntry {
        kind,
        partition: entry.bytes("_PARTITION")?,
        bucket: entry.int("_BUCKET")?,
        total_buckets: entry.int("_TOTAL_BUCKETS")?,
        file: read_data_file(&entry.record("_FILE")?)?,
    })
}

fn read_data_file(file: &Fields<'_>) -> Result<DataFile, AvroError> {
    Ok(DataFile {
        name: file.text("_FILE_NAME")?,
        size: file.long("_FILE_SIZE")?,
        row_count: file.long("_ROW_COUNT")?,
        min_key: file.bytes("_MIN_KEY")?,
        max_key: file.bytes("_MAX_KEY")?,
        key_stats: Stats::read(&file.record("_KEY_STATS")?)?,
        value_stats: Stats::read(&file.record("_VALUE_STATS")?)?,
        min_sequence_number: file.long("_MIN_SEQUENCE_NUMBER")?,
        max_sequence_number: file.long("_MAX_SEQUENCE_NUMBER")?,
        schema_id: file.long("_SCHEMA_ID")?,
        level: file.int("_LEVEL")?,
        extra_files: file.optional_texts("_EXTRA_FILES")?.unwrap_or_default(),
        creation_time: file.optional_long("_CREATION_TIME")?,
        delete_row_count: file.optional_long("_DELETE_ROW_COUNT")?,
        embedded_index: file.optional_bytes("_EMBEDDED_FILE_INDEX")?,
        file_source: file.optional_long("_FILE_SOURCE")?,
        value_stats_cols: file.optional_texts("_VALUE_STATS_COLS")?,
        external_path: file.optional_text("_EXTERNAL_PATH")?,
        first_row_id: file.optional_long("_FIRST_ROW_ID")?,
        write_cols: file.optional_texts("_WRITE_COLS")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::binary_row::{Datum, serialize_row};
    use super::*;

    fn entry() -> ManifestEntry {
        let key = serialize_row(&[Some(Datum::Int(1))]);
        ManifestEntry {
            kind: EntryKind::Add,
            partition: empty_row(),
            bucket: 3,
            total_buckets: 4,
            file: DataFile {
                name: "data-1.parquet".into(),
                size: 1234,
                row_count: 2,
                min_key: key.clone(),
                max_key: key.clone(),
                key_stats: Stats { min_values: key.clone(), max_values: key, null_counts: Some(vec![Some(0), None]) },
                value_stats: Stats::none(),
                min_sequence_number: 1,
                max_sequence_number: i64::MAX,
                schema_id: 0,
                level: 0,
                extra_files: vec!["a".into()],
                creation_time: Some(1),
                delete_row_count: Some(1),
                embedded_index: Some(vec![1]),
                file_source: Some(0),
                value_stats_cols: Some(Vec::new()),
                external_path: Some("s3://elsewhere".into()),
                first_row_id: Some(9),
                write_cols: Some(vec!["c".into()]),
            },
        }
    }

    #[test]
    fn every_field_comes_back() {
        let full = entry();
        let mut bare = ManifestEntry { kind: EntryKind::Delete, ..entry() };
        bare.file.creation_time = None;
        bare.file.delete_row_count = None;
        bare.file.embedded_index = None;
        bare.file.file_source = None;
        bare.file.value_stats_cols = None;
        bare.file.external_path = None;
        bare.file.first_row_id = None;
        bare.file.write_cols = None;
        bare.file.key_stats.null_counts = None;
        let entries = vec![full, bare];
        assert_eq!(read_manifest(&write_manifest(&entries, [9; 16])).unwrap(), entries);
        assert_eq!(decode_entries(2, &encode_entries(&entries)).unwrap(), entries);
        assert!(decode_entries(3, &encode_entries(&entries)).is_err());
        assert!(decode_entries(1, &encode_entries(&entries)).is_err());
    }

    #[test]
    fn a_filled_field_that_is_not_known_is_dropped_only_by_readers() {
        let schema = SCHEMA.replace(
            r#"{"name":"_KIND","type":"int"}"#,
            r#"{"name":"_KIND","type":"int"},{"name":"_NEW","type":["null","long"]}"#,
        );
        let mut record = encode_entries(&[entry()]);
        record.insert(2, 0); // behind version and kind, one byte each: the branch of null
        let entries = read_manifest(&write_file(&schema, 1, &record, [1; 16])).unwrap();
        assert_eq!(entries, [entry()]);
        assert_eq!(read_whole_manifest(&write_file(&schema, 1, &record, [1; 16])).unwrap(), [entry()]);
        record.splice(2..3, [2, 2]); // the branch of long, and 1
        assert_eq!(read_manifest(&write_file(&schema, 1, &record, [1; 16])).unwrap(), [entry()]);
        let error = read_whole_manifest(&write_file(&schema, 1, &record, [1; 16])).unwrap_err();
        assert!(error.0.contains("_NEW"), "{error}");
    }
}
