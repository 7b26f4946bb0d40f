//! Writes manifests and lists of them, and merges manifests when there are many.

use std::collections::BTreeMap;

use cdchost_sdk::Result;
use cdchost_sdk::runtime::{Level, log};

use crate::client::{Names, TableFolder, random};
use crate::format::manifest::{
    EntryKind, ManifestEntry, ManifestFile, encode_entries, write_manifest, write_manifest_list,
};
use crate::format::partition::Partitioning;

/// Manifests of fewer bytes are merged, and merged ones are cut at it: Paimon's own default.
const TARGET_BYTES: usize = 8 << 20;
/// So many small manifests are merged: Paimon's own default.
const MERGE_COUNT_MIN: usize = 30;

/// Writes manifests of one table for one epoch.
#[derive(Debug)]
pub(super) struct ManifestWriter<'a> {
    folder: &'a TableFolder,
    partitioning: &'a Partitioning,
    names: &'a mut Names,
    epoch: u64,
}

impl<'a> ManifestWriter<'a> {
    pub(super) fn new(
        folder: &'a TableFolder,
        partitioning: &'a Partitioning,
        names: &'a mut Names,
        epoch: u64,
    ) -> Self {
        Self { folder, partitioning, names, epoch }
    }

    pub(super) fn write(&mut self, entries: &[ManifestEntry]) -> Result<ManifestFile> {
        let partition_stats = self.partitioning.stats(entries).map_err(|why| self.folder.broken("an entry", &why))?;
        let name = self.names.manifest(self.epoch);
        let bytes = write_manifest(entries, random()?);
        self.folder.put(&format!("manifest/{name}"), &bytes)?;
        let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count() as i64; // far below 2^63
        let buckets = || entries.iter().map(|entry| i64::from(entry.bucket));
        let levels = || entries.iter().map(|entry| i64::from(entry.file.level));
        Ok(ManifestFile {
            name,
            size: bytes.len() as i64, // likewise
            added_count: count(EntryKind::Add),
            deleted_count: count(EntryKind::Delete),
            partition_stats,
            schema_id: entries.iter().map(|entry| entry.file.schema_id).max().unwrap_or(0),
            min_bucket: buckets().min(),
            max_bucket: buckets().max(),
            min_level: levels().min(),
            max_level: levels().max(),
            min_row_id: None,
            max_row_id: None,
        })
    }

    /// Writes a list; its name and size.
    pub(super) fn write_list(&mut self, manifests: &[ManifestFile]) -> Result<(String, i64)> {
        let name = self.names.manifest_list(self.epoch);
        let bytes = write_manifest_list(manifests, random()?);
        self.folder.put(&format!("manifest/{name}"), &bytes)?;
        Ok((name, bytes.len() as i64)) // far below 2^63
    }

    /// The same files in fewer manifests, once there are many small ones. What cannot be read whole stays as it is.
    pub(super) fn merge_if_many(&mut self, manifests: Vec<ManifestFile>) -> Result<Vec<ManifestFile>> {
        let is_small = |manifest: &&ManifestFile| manifest.size < TARGET_BYTES as i64;
        // Only the small ones at the end: an entry that deletes a file must stay behind the one that adds it.
        let small_count = manifests.iter().rev().take_while(is_small).count();
        if small_count < MERGE_COUNT_MIN {
            return Ok(manifests);
        }
        let (kept, small) = manifests.split_at(manifests.len() - small_count);
        let Some(mut entries) = read_all(self.folder, small) else { return Ok(manifests) };
        entries = merge(entries);
        let mut kept = kept.to_vec();
        if entries.iter().any(|entry| entry.kind == EntryKind::Delete) {
            // They delete files that the kept ones add: all is written anew, so that they can go.
            let Some(all) = read_all(self.folder, &manifests) else { return Ok(manifests) };
            entries = merge(all);
            kept.clear();
        }
        for part in parts_of(&entries) {
            kept.push(self.write(part)?);
        }
        Ok(kept)
    }
}

fn read_all(folder: &TableFolder, manifests: &[ManifestFile]) -> Option<Vec<ManifestEntry>> {
    let mut entries = Vec::new();
    for manifest in manifests {
        match folder.whole_manifest(&manifest.name) {
            Ok(read) => entries.extend(read),
            Err(error) => {
                let (table, error) = (folder.id.to_string(), error.to_string());
                log(Level::Warn, "manifests are not merged", &[("table", &table), ("error", &error)]);
                return None;
            }
        }
    }
    Some(entries)
}

/// Drops each pair of an entry that adds a file and a later one that deletes it. The order stays.
pub(crate) fn merge(entries: Vec<ManifestEntry>) -> Vec<ManifestEntry> {
    let mut added: BTreeMap<(Vec<u8>, i32, String, i32), usize> = BTreeMap::new();
    let mut merged: Vec<Option<ManifestEntry>> = Vec::with_capacity(entries.len());
    for entry in entries {
        let (partition, bucket, name, level) = entry.identity();
        let identity = (partition.to_vec(), bucket, name.to_owned(), level);
        match entry.kind {
            EntryKind::Add => {
                added.insert(identity, merged.len());
                merged.push(Some(entry));
            }
            EntryKind::Delete => match added.remove(&identity) {
                Some(place) => merged[place] = None,
                None => merged.push(Some(entry)),
            },
        }
    }
    merged.into_iter().flatten().collect()
}

/// Stretches of entries that make manifests of about the target size.
fn parts_of(entries: &[ManifestEntry]) -> Vec<&[ManifestEntry]> {
    let Some(first) = entries.first() else { return Vec::new() };
    let entry_bytes = encode_entries(std::slice::from_ref(first)).len().max(1);
    entries.chunks((TARGET_BYTES / entry_bytes).max(1)).collect()
}
