//! Snapshot files: one version of a table each, in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format's version that is written; also that of Paimon 1.x and 2.x.
pub const SNAPSHOT_VERSION: i32 = 3;

/// What a snapshot did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CommitKind {
    /// Added rows.
    Append,
    /// Merged files without changing what a reader sees.
    Compact,
    /// Replaced rows.
    Overwrite,
    /// Added statistics.
    Analyze,
}

/// One version of a table. Members that this program has no use for are kept in `other`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The format's version; absent in very old files.
    #[serde(default = "first_version")]
    pub version: i32,
    /// Its number; 1 is the first, without gaps.
    pub id: u64,
    /// The table's newest schema.
    pub schema_id: i64,
    /// The list of manifests of the snapshot before.
    pub base_manifest_list: String,
    /// Its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_manifest_list_size: Option<i64>,
    /// The list of manifests that it added.
    pub delta_manifest_list: String,
    /// Its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_manifest_list_size: Option<i64>,
    /// The list of changelog manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changelog_manifest_list: Option<String>,
    /// The manifest of index files, handed on from snapshot to snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_manifest: Option<String>,
    /// Who committed.
    pub commit_user: String,
    /// That user's number for the commit.
    pub commit_identifier: i64,
    /// What it did.
    pub commit_kind: CommitKind,
    /// When, in milliseconds since the epoch.
    pub time_millis: i64,
    /// Rows of all live files, deletes included.
    #[serde(default)]
    pub total_record_count: Option<i64>,
    /// Rows that it added, less those it took away.
    #[serde(default)]
    pub delta_record_count: Option<i64>,
    /// The name of a file of statistics, handed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<String>,
    /// Event time up to which rows are complete, handed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<i64>,
    /// For tables with row ids, handed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_row_id: Option<i64>,
    /// What the committer wants to be remembered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "map_or_null")]
    pub properties: BTreeMap<String, String>,
    /// All else that the file has.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

fn first_version() -> i32 {
    1
}

fn map_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Snapshot {
    /// Reads a snapshot or tag file.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The file's bytes.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a snapshot has no keys other than texts")
    }

    /// Name of snapshot `id` in the table's folder.
    pub fn path(id: u64) -> String {
        format!("snapshot/snapshot-{id}")
    }

    /// The id in a file name of the snapshot folder; none for hints and other files.
    pub fn id_of(file_name: &str) -> Option<u64> {
        file_name.strip_prefix("snapshot-")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_paimon_is_read_and_written_again() {
        let text = r#"{"version":3,"id":2,"schemaId":0,"baseManifestList":"b","baseManifestListSize":1107,
            "deltaManifestList":"d","deltaManifestListSize":1109,"changelogManifestList":null,"commitUser":"u",
            "commitIdentifier":9223372036854775807,"commitKind":"APPEND","timeMillis":1796008083339,"logOffsets":{},
            "totalRecordCount":8,"deltaRecordCount":4,"nextRowId":0,"properties":null,"uuid":"x"}"#;
        let snapshot = Snapshot::parse(text.as_bytes()).unwrap();
        assert_eq!((snapshot.id, snapshot.commit_identifier, snapshot.commit_kind), (2, i64::MAX, CommitKind::Append));
        assert_eq!(snapshot.total_record_count, Some(8));
        assert_eq!(snapshot.other["uuid"], "x");
        let again = Snapshot::parse(&snapshot.to_json()).unwrap();
        assert_eq!(again, snapshot);
    }

    #[test]
    fn ids_come_only_from_names_of_snapshots() {
        assert_eq!(Snapshot::id_of("snapshot-12"), Some(12));
        for name in ["LATEST", "EARLIEST", "snapshot-", "snapshot-x", ".snapshot-12.tmp", "snapshot-1.crc"] {
            assert_eq!(Snapshot::id_of(name), None, "{name}");
        }
    }
}
