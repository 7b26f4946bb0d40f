//! Removes files that earlier runs of this pipeline prepared and nobody will commit any more.

use std::collections::BTreeSet;

use cdchost_sdk::Result;

use super::publish::TableCommitter;
use crate::client::{Names, Origin};
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
    table: &mut TableCommitter,
    newest: Option<&Snapshot>,
    names: &Names,
    bounds: &Bounds,
) -> Result<usize> {
    let partitioning = table.partitioning()?;
    let folder = &table.folder;
    let earlier = |name: &str| names.origin_of(name).filter(|origin| origin.generation < bounds.generation);
    let is_late = |origin: Origin| origin.epoch >= bounds.progress;
    // Wherever they lie: before it was made anew the table may have been divided otherwise.
    let mut orphans = folder.paths()?;
    orphans.retain(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("data-") && earlier(name).is_some_and(is_late)
    });
    if let Some(newest) = newest.filter(|_| !orphans.is_empty()) {
        // They cannot be live; should they be all the same, they stay.
        for manifest in folder.manifests_of(newest)? {
            let entries = folder.manifest(&manifest.name)?;
            let added = entries.iter().filter(|entry| entry.kind == EntryKind::Add);
            let live = added.map(|entry| folder.data_path(&partitioning, entry)).collect::<Result<BTreeSet<_>>>()?;
            orphans.retain(|path| !live.contains(path));
        }
    }
    let is_cut_off = |origin: Origin| origin.epoch > bounds.marker_before;
    let mut manifests = folder.file_names("manifest")?;
    manifests.retain(|name| earlier(name).is_some_and(is_cut_off));
    if !manifests.is_empty() {
        let named = named_since(table, newest, bounds.marker_before)?;
        orphans
            .extend(manifests.into_iter().filter(|name| !named.contains(name)).map(|name| format!("manifest/{name}")));
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
