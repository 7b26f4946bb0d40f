//! Lists of manifests, two a snapshot: what was there before, and what it added.

use super::super::avro::{AvroError, Encoder, Value, read_file, write_file};
use super::entry::Stats;
use super::record::Fields;

/// One manifest, as a list names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFile {
    /// Name within the folder of manifests.
    pub name: String,
    /// Bytes.
    pub size: i64,
    /// Entries that add a file.
    pub added_count: i64,
    /// Entries that delete one.
    pub deleted_count: i64,
    /// Of the partitions in it.
    pub partition_stats: Stats,
    /// The newest schema when it was written.
    pub schema_id: i64,
    /// Least bucket in it.
    pub min_bucket: Option<i64>,
    /// Greatest bucket in it.
    pub max_bucket: Option<i64>,
    /// Least level in it.
    pub min_level: Option<i64>,
    /// Greatest level in it.
    pub max_level: Option<i64>,
    /// For tables with row ids.
    pub min_row_id: Option<i64>,
    /// For tables with row ids.
    pub max_row_id: Option<i64>,
}

const LIST_VERSION: i64 = 2;

const SCHEMA: &str = concat!(
    r#"{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":["#,
    r#"{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},"#,
    r#"{"name":"_NUM_ADDED_FILES","type":"long"},{"name":"_NUM_DELETED_FILES","type":"long"},"#,
    r#"{"name":"_PARTITION_STATS","type":{"type":"record","name":"record__PARTITION_STATS","fields":["#,
    r#"{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},"#,
    r#"{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}},"#,
    r#"{"name":"_SCHEMA_ID","type":"long"},{"name":"_MIN_BUCKET","type":["null","int"],"default":null},"#,
    r#"{"name":"_MAX_BUCKET","type":["null","int"],"default":null},"#,
    r#"{"name":"_MIN_LEVEL","type":["null","int"],"default":null},"#,
    r#"{"name":"_MAX_LEVEL","type":["null","int"],"default":null},"#,
    r#"{"name":"_MIN_ROW_ID","type":["null","long"],"default":null},"#,
    r#"{"name":"_MAX_ROW_ID","type":["null","long"],"default":null}]}"#,
);

const FIELDS: [&str; 13] = [
    "_VERSION",
    "_FILE_NAME",
    "_FILE_SIZE",
    "_NUM_ADDED_FILES",
    "_NUM_DELETED_FILES",
    "_PARTITION_STATS",
    "_SCHEMA_ID",
    "_MIN_BUCKET",
    "_MAX_BUCKET",
    "_MIN_LEVEL",
    "_MAX_LEVEL",
    "_MIN_ROW_ID",
    "_MAX_ROW_ID",
];

/// A list of these manifests; `sync` must be random.
pub fn write_manifest_list(manifests: &[ManifestFile], sync: [u8; 16]) -> Vec<u8> {
    let mut out = Encoder::default();
    for manifest in manifests {
        let long = |out: &mut Encoder, value: i64| {
            out.long(value);
        };
        out.long(LIST_VERSION).bytes(manifest.name.as_bytes()).long(manifest.size);
        out.long(manifest.added_count).long(manifest.deleted_count);
        manifest.partition_stats.write(&mut out);
        out.long(manifest.schema_id);
        out.optional(manifest.min_bucket, long).optional(manifest.max_bucket, long);
        out.optional(manifest.min_level, long).optional(manifest.max_level, long);
        out.optional(manifest.min_row_id, long).optional(manifest.max_row_id, long);
    }
    write_file(SCHEMA, manifests.len(), &out.finish(), sync)
}

/// The manifests of a list. Fails on one with a filled field that is not known here, since it would be lost.
pub fn read_manifest_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, AvroError> {
    read_file(bytes)?.iter().map(read_manifest_file).collect()
}

fn read_manifest_file(value: &Value) -> Result<ManifestFile, AvroError> {
    let fields = Fields::of(value);
    fields.only(&FIELDS)?;
    let version = fields.long("_VERSION")?;
    if version != LIST_VERSION {
        return Err(AvroError(format!("manifest list of version {version}, known is {LIST_VERSION}")));
    }
    Ok(ManifestFile {
        name: fields.text("_FILE_NAME")?,
        size: fields.long("_FILE_SIZE")?,
        added_count: fields.long("_NUM_ADDED_FILES")?,
        deleted_count: fields.long("_NUM_DELETED_FILES")?,
        partition_stats: Stats::read(&fields.record("_PARTITION_STATS")?)?,
        schema_id: fields.long("_SCHEMA_ID")?,
        min_bucket: fields.optional_long("_MIN_BUCKET")?,
        max_bucket: fields.optional_long("_MAX_BUCKET")?,
        min_level: fields.optional_long("_MIN_LEVEL")?,
        max_level: fields.optional_long("_MAX_LEVEL")?,
        min_row_id: fields.optional_long("_MIN_ROW_ID")?,
        max_row_id: fields.optional_long("_MAX_ROW_ID")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back() {
        let full = ManifestFile {
            name: "manifest-1".into(),
            size: 1,
            added_count: 2,
            deleted_count: 3,
            partition_stats: Stats::none(),
            schema_id: 4,
            min_bucket: Some(0),
            max_bucket: Some(1),
            min_level: Some(0),
            max_level: Some(5),
            min_row_id: Some(6),
            max_row_id: Some(7),
        };
        let bare = ManifestFile {
            min_bucket: None,
            max_bucket: None,
            min_level: None,
            max_level: None,
            min_row_id: None,
            max_row_id: None,
            ..full.clone()
        };
        let manifests = vec![full, bare];
        assert_eq!(read_manifest_list(&write_manifest_list(&manifests, [3; 16])).unwrap(), manifests);
        assert!(read_manifest_list(&write_manifest_list(&[], [3; 16])).unwrap().is_empty());
    }
}
