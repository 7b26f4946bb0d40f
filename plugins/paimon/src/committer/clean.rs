//! Removes files that earlier runs of this pipeline prepared and nobody will commit any more.

use std::collections::BTreeSet;

use cdchost_sdk::Result;

use super::publish::TableCommitter;
use crate::client::{Names, Origin};
use crate::config::bucket_count;
use crate::format::manifest::EntryKind;
use crate::format::snapshot::Snapshot;

/// What tells an orphan.
#[derive(Debug)]
pub(super) struct Bounds {
    /// The own run: only files of earlier ones are touched.
    pub(super) generation: u64,
    /// The epoch of the marker before this recovery: commits of later ones may have been cut off.
    pub(super) marker_before: u64,
    /// The epoch of the marker now: what was written after it is in no checkpoint.
    pub(super) progress: u64,
}

/// Removes orphans of one table; how many there were.
///
/// All that a checkpoint holds has been settled before. So a data file that an earlier run began after the newest
/// whole epoch is nobody's; and a manifest of an epoch beyond the old marker is nobody's unless a snapshot names it.
pub(super) fn remove_orphans(
    table: &TableCommitter,
    newest: Option<&Snapshot>,
    names: &Names,
    bounds: &Bounds,
) -> Result<usize> {
    let folder = &table.folder;
    let earlier = |name: &String| names.origin_of(name).filter(|origin| origin.generation < bounds.generation);
    let mut orphans = Vec::new();
    let Some(schema) = folder.newest_schema()? else { return Ok(0) };
    for bucket in 0..bucket_count(&schema.options)? {
        let is_late = |origin: Origin| origin.epoch >= bounds.progress;
        let files = folder.file_names(&format!("bucket-{bucket}"))?;
        let late = files.into_iter().filter(|name| earlier(name).is_some_and(is_late));
        orphans.extend(late.map(|name| format!("bucket-{bucket}/{name}")));
    }
    let is_cut_off = |origin: Origin| origin.epoch > bounds.marker_before;
    let mut manifests = folder.file_names("manifest")?;
    manifests.retain(|name| earlier(name).is_some_and(is_cut_off));
    if !manifests.is_empty() {
        let named = named_since(table, newest, bounds.marker_before)?;
        orphans
            .extend(manifests.into_iter().filter(|name| !named.contains(name)).map(|name| format!("manifest/{name}")));
    }
    if let Some(newest) = newest.filter(|_| orphans.iter().any(|path| path.starts_with("bucket-"))) {
        // They cannot be live; should they be all the same, they stay.
        for manifest in folder.manifests_of(newest)? {
            let entries = folder.manifest(&manifest.name)?;
            let live: BTreeSet<_> = entries
                .iter()
                .filter(|entry| entry.kind == EntryKind::Add)
                .map(|entry| format!("bucket-{}/{}", entry.bucket, entry.file.name))
                .collect();
            orphans.retain(|path| !live.contains(path));
        }
    }
    folder.delete(&orphans)?;
    Ok(orphans.len())
}

/// Names of all lists and manifests that the newest snapshots name, back to the first that is no later than `epoch`.
fn named_since(table: &TableCommitter, newest: Option<&Snapshot>, epoch: u64) -> Result<BTreeSet<String>> {
    let folder = &table.folder;
    let mut named = BTreeSet::new();
    let mut at = newest.cloned();
    while let Some(snapshot) = at {
        named.extend([snapshot.base_manifest_list.clone(), snapshot.delta_manifest_list.clone()]);
        named.extend(folder.manifests_of(&snapshot)?.into_iter().map(|manifest| manifest.name));
        if table.is_own(&snapshot) && u64::try_from(snapshot.commit_identifier).is_ok_and(|shown| shown <= epoch) {
            break;
        }
        at = folder.snapshot(snapshot.id - 1)?;
    }
    Ok(named)
}
