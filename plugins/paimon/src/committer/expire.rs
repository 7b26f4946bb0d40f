//! Removes old snapshots and what only they need.

use std::collections::BTreeSet;

use cdchost_sdk::Result;
use cdchost_sdk::runtime::{counter_add, now_micros};

use super::manifests::merge;
use crate::client::TableFolder;
use crate::config::Settings;
use crate::format::manifest::{EntryKind, ManifestEntry, ManifestFile};
use crate::format::partition::Partitioning;
use crate::format::snapshot::Snapshot;

/// Most snapshots that one pass removes, so that it never holds up commits for long.
const SNAPSHOTS_A_PASS: usize = 64;

/// Removes snapshots that are neither among the newest nor young; the newest of `commit_user` and all that a stream
/// reader still wants stay, and so do the files of tags.
pub(super) fn expire(
    folder: &TableFolder,
    partitioning: &Partitioning,
    commit_user: &str,
    settings: &Settings,
) -> Result<()> {
    let ids = folder.snapshot_ids()?;
    let Some((expired, kept)) = choose(folder, &ids, commit_user, settings)? else { return Ok(()) };
    folder.put("snapshot/EARLIEST", kept.id.to_string().as_bytes())?;
    let tags = folder.tags()?;
    let mut needed = Files::default();
    for snapshot in tags.iter().chain([&kept]) {
        needed.add(folder, snapshot)?;
    }
    let mut gone = Files::default();
    for snapshot in &expired {
        gone.add(folder, snapshot)?;
    }
    let mut paths = deleted_data_files(folder, partitioning, (&expired, &kept), &tags)?;
    paths.extend(gone.names.difference(&needed.names).map(|name| format!("manifest/{name}")));
    folder.delete(&paths)?;
    // Last, so that a crash before leaves something to begin again with.
    folder.delete(&expired.iter().map(|snapshot| Snapshot::path(snapshot.id)).collect::<Vec<_>>())?;
    counter_add("paimon_snapshots_expired_total", expired.len() as u64);
    Ok(())
}

/// The snapshots to remove, oldest first, and the oldest that stays.
fn choose(
    folder: &TableFolder,
    ids: &[u64],
    commit_user: &str,
    settings: &Settings,
) -> Result<Option<(Vec<Snapshot>, Snapshot)>> {
    let removable = ids.len().saturating_sub(settings.snapshots_retained).min(SNAPSHOTS_A_PASS);
    let now_millis = (now_micros() / 1000) as i64; // the clock is far below 2^63
    let wanted_from = consumed_from(folder)?;
    let mut expired = Vec::new();
    let mut keep = None;
    for &id in ids {
        let Some(snapshot) = folder.snapshot(id)? else { continue };
        let young = now_millis - snapshot.time_millis < settings.snapshot_retention_millis;
        if expired.len() >= removable || young || wanted_from.is_some_and(|from| id >= from) {
            keep = Some(snapshot);
            break;
        }
        expired.push(snapshot);
    }
    let Some(mut keep) = keep.filter(|_| !expired.is_empty()) else { return Ok(None) };
    // The newest own snapshot tells which epochs are visible: it and all behind it stay.
    if keep.commit_user != commit_user && !has_own_from(folder, ids, keep.id, commit_user)? {
        let Some(own) = expired.iter().rposition(|snapshot| snapshot.commit_user == commit_user) else {
            return Ok(Some((expired, keep)));
        };
        keep = expired.swap_remove(own);
        expired.truncate(own);
    }
    Ok((!expired.is_empty()).then_some((expired, keep)))
}

fn has_own_from(folder: &TableFolder, ids: &[u64], from: u64, commit_user: &str) -> Result<bool> {
    for &id in ids.iter().rev().take_while(|&&id| id >= from) {
        if folder.snapshot(id)?.is_some_and(|snapshot| snapshot.commit_user == commit_user) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The oldest snapshot that a stream reader has not read yet.
fn consumed_from(folder: &TableFolder) -> Result<Option<u64>> {
    let mut oldest: Option<u64> = None;
    for name in folder.file_names("consumer")?.iter().filter(|name| name.starts_with("consumer-")) {
        let path = format!("consumer/{name}");
        let Some(bytes) = folder.get(&path)? else { continue };
        let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| folder.broken(&path, &error))?;
        if let Some(next) = json.get("nextSnapshot").and_then(serde_json::Value::as_u64) {
            oldest = Some(oldest.map_or(next, |oldest| oldest.min(next)));
        }
    }
    Ok(oldest)
}

/// Names of manifests and lists.
#[derive(Debug, Default)]
struct Files {
    names: BTreeSet<String>,
}

impl Files {
    fn add(&mut self, folder: &TableFolder, snapshot: &Snapshot) -> Result<()> {
        for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
            if self.names.insert(list.clone()) {
                self.names.extend(manifests_in(folder, list)?.into_iter().map(|manifest| manifest.name));
            }
        }
        Ok(())
    }
}

/// The manifests of a list; none if an earlier pass has removed it already.
fn manifests_in(folder: &TableFolder, list: &str) -> Result<Vec<ManifestFile>> {
    match folder.get(&format!("manifest/{list}"))? {
        Some(_) => folder.manifest_list(list),
        None => Ok(Vec::new()),
    }
}

/// Data files that a snapshot after the first expired one took away, and that nobody needs any more.
fn deleted_data_files(
    folder: &TableFolder,
    partitioning: &Partitioning,
    (expired, kept): (&[Snapshot], &Snapshot),
    tags: &[Snapshot],
) -> Result<Vec<String>> {
    let paths_of = |entry: &ManifestEntry| paths_of(folder, partitioning, entry);
    let mut deleted: BTreeSet<String> = BTreeSet::new();
    for snapshot in expired.iter().skip(1).chain([kept]) {
        let lists = manifests_in(folder, &snapshot.delta_manifest_list)?;
        for manifest in lists.iter().filter(|manifest| manifest.deleted_count > 0) {
            let Some(entries) = entries_of(folder, manifest)? else { continue };
            for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Delete) {
                deleted.extend(paths_of(entry)?);
            }
        }
    }
    if deleted.is_empty() {
        return Ok(Vec::new());
    }
    for snapshot in tags.iter().filter(|tag| tag.id < kept.id).chain([kept]) {
        let mut entries = Vec::new();
        for manifest in folder.manifests_of(snapshot)? {
            entries.extend(folder.manifest(&manifest.name)?);
        }
        for entry in &merge(entries) {
            for path in paths_of(entry)? {
                deleted.remove(&path);
            }
        }
    }
    Ok(deleted.into_iter().collect())
}

fn entries_of(folder: &TableFolder, manifest: &ManifestFile) -> Result<Option<Vec<ManifestEntry>>> {
    match folder.get(&format!("manifest/{}", manifest.name))? {
        Some(_) => folder.manifest(&manifest.name).map(Some),
        None => Ok(None),
    }
}

/// The file and those that belong to it; none if they lie outside of the bucket's folder.
fn paths_of(folder: &TableFolder, partitioning: &Partitioning, entry: &ManifestEntry) -> Result<Vec<String>> {
    if entry.file.external_path.is_some() {
        return Ok(Vec::new());
    }
    let place = partitioning.bucket_folder(entry).map_err(|why| folder.broken("a data file's entry", &why))?;
    let names = std::iter::once(&entry.file.name).chain(&entry.file.extra_files);
    Ok(names.map(|name| format!("{place}{name}")).collect())
}
