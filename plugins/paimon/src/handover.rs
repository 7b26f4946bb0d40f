//! What a writer hands to the committer through the checkpoint: the files of one table and one epoch.
//!
//! Format 1: the length of the head (u32, little-endian), the head in JSON, then the entries as manifests encode them.

use cdchost_sdk::{Committable, Cut, PluginError, Result, TableId};
use serde::{Deserialize, Serialize};

use crate::format::manifest::{ManifestEntry, decode_entries, encode_entries};

/// The format's version, kept beside the payload.
pub(crate) const FORMAT: u32 = 1;
/// Most files of one table, writer and epoch.
const FILES_MAX: usize = 1 << 20;

/// The files of one table that one writer made in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) table: TableId,
    /// The schema that the files were written with.
    pub(crate) schema_id: i64,
    /// As manifests have it.
    pub(crate) bucket_count: i32,
    /// The epoch's cut, with the first of a writer's hand-overs.
    pub(crate) cut: Option<Cut>,
    pub(crate) entries: Vec<ManifestEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Head {
    table: TableId,
    schema_id: i64,
    bucket_count: i32,
    file_count: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

impl Handover {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let head = Head {
            table: self.table.clone(),
            schema_id: self.schema_id,
            bucket_count: self.bucket_count,
            file_count: self.entries.len(),
            cut: self.cut.clone(),
        };
        let head = serde_json::to_vec(&head).expect("a head has no keys other than texts");
        let mut out = (head.len() as u32).to_le_bytes().to_vec(); // a head is some hundred bytes
        out.extend_from_slice(&head);
        out.extend_from_slice(&encode_entries(&self.entries));
        out
    }

    pub(crate) fn of(committable: &Committable) -> Result<Self> {
        let broken = |why: String| {
            let (key, epoch) = (&committable.key, committable.epoch);
            PluginError::bug("committable-broken", format!("what was prepared for {key} in epoch {epoch} {why}"))
        };
        if committable.format != FORMAT {
            return Err(broken(format!("has format {}, known is {FORMAT}", committable.format)));
        }
        let (length, rest) = committable.payload.split_first_chunk::<4>().ok_or_else(|| broken("is empty".into()))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (head, entries) = rest.split_at_checked(length).ok_or_else(|| broken("is cut off".into()))?;
        let head: Head = serde_json::from_slice(head).map_err(|error| broken(format!("has a broken head: {error}")))?;
        if head.file_count > FILES_MAX {
            return Err(broken(format!("has {} files, at most {FILES_MAX} can be", head.file_count)));
        }
        let entries =
            decode_entries(head.file_count, entries).map_err(|error| broken(format!("is broken: {error}")))?;
        let Head { table, schema_id, bucket_count, cut, .. } = head;
        Ok(Self { table, schema_id, bucket_count, cut, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::binary_row::empty_row;
    use crate::format::manifest::{DataFile, EntryKind, Stats};

    /// One entry as it may stand in a hand-over.
    fn entry(name: &str) -> ManifestEntry {
        let file = DataFile {
            name: name.into(),
            size: 100,
            row_count: 1,
            min_key: empty_row(),
            max_key: empty_row(),
            key_stats: Stats::none(),
            value_stats: Stats::none(),
            min_sequence_number: 1,
            max_sequence_number: 1,
            schema_id: 0,
            level: 0,
            extra_files: Vec::new(),
            creation_time: None,
            delete_row_count: Some(0),
            embedded_index: None,
            file_source: Some(0),
            value_stats_cols: Some(Vec::new()),
            external_path: None,
            first_row_id: None,
            write_cols: None,
        };
        ManifestEntry { kind: EntryKind::Add, partition: empty_row(), bucket: 0, total_buckets: 1, file }
    }

    fn committable(payload: Vec<u8>) -> Committable {
        Committable { epoch: 7, generation: 1, key: "shop.orders".into(), format: FORMAT, payload, rows: 2, bytes: 200 }
    }

    #[test]
    fn a_hand_over_comes_back_whole_or_not_at_all() {
        let cut = Cut {
            epoch: 7,
            generation: 1,
            lineage: "l".into(),
            offset: vec![1, 2],
            change_seq: 5,
            path_digest: vec![0; 32],
            tables_digest: vec![1; 32],
            end_of_input: false,
        };
        let handover = Handover {
            table: TableId::new("shop", "orders"),
            schema_id: 0,
            bucket_count: 1,
            cut: Some(cut),
            entries: vec![entry("data-1.parquet"), entry("data-2.parquet")],
        };
        let bytes = handover.to_bytes();
        assert_eq!(Handover::of(&committable(bytes.clone())).unwrap(), handover);
        for length in 0..bytes.len() {
            assert!(Handover::of(&committable(bytes[..length].to_vec())).is_err(), "{length} of {}", bytes.len());
        }
        let mut newer = committable(bytes);
        newer.format = 2;
        assert!(Handover::of(&newer).unwrap_err().message.contains("format 2"));
    }

    #[test]
    fn what_earlier_releases_handed_over_is_read() {
        let kept = include_bytes!("handover/format-1.bin");
        let handover = Handover::of(&committable(kept.to_vec())).unwrap();
        assert_eq!(handover.table, TableId::new("shop", "orders"));
        assert_eq!(handover.entries, [entry("data-1.parquet")]);
        assert_eq!(handover.to_bytes(), kept);
    }
}
