//! One snapshot of one table: put if absent on top of the newest, as often as others get there first.

use std::collections::BTreeMap;

use cdchost_sdk::object_store::Creation;
use cdchost_sdk::runtime::{Context, Level, log, now_micros};
use cdchost_sdk::{PluginError, Result};

use super::expire;
use super::manifests::ManifestWriter;
use super::progress::Ledger;
use super::rival::{Standing, final_stop, mark_of};
use crate::client::{Names, TableFolder};
use crate::config::{Buckets, Settings};
use crate::format::manifest::{ManifestEntry, ManifestFile};
use crate::format::partition::Partitioning;
use crate::format::schema::LakeSchema;
use crate::format::snapshot::{CommitKind, SNAPSHOT_VERSION, Snapshot};
use crate::handover::Handover;

/// Which run this is, and the newest one that may have written before it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) generation: u64,
    /// Above the own one only where a pipeline starts afresh over a target that it has written before.
    pub(super) newest_generation: u64,
}

/// The epoch to be made visible.
#[derive(Debug)]
pub(super) struct Epoch<'a> {
    pub(super) epoch: u64,
    pub(super) lineage: &'a str,
    pub(super) run: &'a Run,
    pub(super) context: &'a Context,
    pub(super) ledger: &'a Ledger,
}

/// What became of an epoch in one table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// It is visible now.
    Now,
    /// It was visible before.
    Before,
    /// Others committed each time.
    Busy,
    /// Files are gone; the text names them.
    Lost(String),
}

/// One table as its commits see it.
#[derive(Debug)]
pub(super) struct TableCommitter {
    pub(super) folder: TableFolder,
    commit_user: String,
    /// Once it was looked up.
    partitioning: Option<Partitioning>,
    last_seen: Option<u64>,
    /// This sink's newest epoch in the table as this run saw or put it, 0 = none; none before the first look.
    pub(super) shown: Option<i64>,
    commit_count: u64,
}

/// What a table's snapshots say of this sink.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest snapshot of all.
    pub(super) newest: Option<Snapshot>,
    /// This sink's newest.
    pub(super) own: Option<Snapshot>,
    /// The highest sequence number, others' snapshots since then included.
    pub(super) max_sequence: i64,
}

/// The files of an epoch in one table, named by a manifest that no snapshot names yet.
#[derive(Debug)]
struct Staged {
    manifest: ManifestFile,
    row_count: i64,
    schema_id: i64,
    max_sequence: i64,
    mark: String,
}

/// The least name of the data files that the snapshot added: no other process makes a file of that name.
pub(super) const PROPERTY_FILE: &str = "cdchost.file";
const PROPERTY_PIPELINE: &str = "cdchost.pipeline";
const PROPERTY_EPOCH: &str = "cdchost.epoch";
pub(super) const PROPERTY_GENERATION: &str = "cdchost.generation";
const PROPERTY_LINEAGE: &str = "cdchost.lineage";
const PROPERTY_MAX_SEQUENCE: &str = "cdchost.max-sequence";

/// How often a commit is tried on a newer snapshot before the host is asked to wait.
const ATTEMPTS_MAX: u32 = 20;
/// Expiry runs at the first commit and at every so many.
const COMMITS_BETWEEN_EXPIRIES: u64 = 16;
/// Files that a message names.
const NAMES_SHOWN_MAX: usize = 5;

impl Staged {
    fn new(entries: &[ManifestEntry], manifest: ManifestFile) -> Self {
        let files = || entries.iter().map(|entry| &entry.file);
        Self {
            manifest,
            row_count: files().map(|file| file.row_count).sum(),
            schema_id: files().map(|file| file.schema_id).max().unwrap_or(0),
            max_sequence: files().map(|file| file.max_sequence_number).max().unwrap_or(0),
            mark: mark_of(entries).to_owned(),
        }
    }
}

impl TableCommitter {
    pub(super) fn new(folder: TableFolder, context: &Context) -> Self {
        let commit_user = format!("cdchost:{}:{}:{}", context.pipeline, context.operator, folder.id);
        Self { folder, commit_user, partitioning: None, last_seen: None, shown: None, commit_count: 0 }
    }

    /// The table may have been made anew, divided otherwise than when it was looked at.
    pub(super) fn look_anew(&mut self) {
        self.partitioning = None;
    }

    pub(super) fn partitioning(&mut self) -> Result<Partitioning> {
        let known = match self.partitioning.take() {
            Some(known) => known,
            None => self.folder.partitioning()?,
        };
        Ok(self.partitioning.insert(known).clone())
    }

    /// Makes the files of an epoch part of the table, once.
    pub(super) fn publish(
        &mut self,
        epoch: &Epoch<'_>,
        handovers: &[&Handover],
        names: &mut Names,
    ) -> Result<Published> {
        let entries: Vec<_> = handovers.iter().flat_map(|handover| handover.entries.iter().cloned()).collect();
        let partitioning = self.partitioning()?;
        let mut staged: Option<Staged> = None;
        for _ in 0..ATTEMPTS_MAX {
            let history = self.history(self.last_seen)?;
            match self.standing(&history, epoch, mark_of(&entries)) {
                Ok(Standing::Open) => {}
                Ok(Standing::Shown) => {
                    self.forget(staged);
                    return Ok(Published::Before);
                }
                Err(error) => {
                    self.forget(staged);
                    return Err(error);
                }
            }
            self.check_buckets(history.newest.as_ref(), handovers)?;
            let ready = match staged.take() {
                Some(ready) => ready,
                None => {
                    if let Some(lost) = self.missing_files(&partitioning, &entries)? {
                        return Ok(Published::Lost(lost));
                    }
                    let mut writer = ManifestWriter::new(&self.folder, &partitioning, names, epoch.epoch);
                    Staged::new(&entries, writer.write(&entries)?)
                }
            };
            if self.try_snapshot(epoch, history, &ready, names)? {
                return Ok(Published::Now);
            }
            staged = Some(ready);
        }
        self.forget(staged);
        Ok(Published::Busy)
    }

    /// The newest snapshot, and what is known of this sink from it and those before.
    pub(super) fn history(&self, last_seen: Option<u64>) -> Result<History> {
        let mut history = History { newest: self.folder.newest_snapshot(last_seen)?, ..History::default() };
        let mut at = history.newest.clone();
        while let Some(snapshot) = at {
            if self.is_own(&snapshot) {
                let noted = snapshot.properties.get(PROPERTY_MAX_SEQUENCE).and_then(|text| text.parse().ok());
                history.max_sequence = history.max_sequence.max(noted.unwrap_or(0));
                history.own = Some(snapshot);
                break;
            }
            for manifest in self.folder.manifest_list(&snapshot.delta_manifest_list)? {
                let entries = self.folder.manifest(&manifest.name)?;
                let highest = entries.iter().map(|entry| entry.file.max_sequence_number).max();
                history.max_sequence = history.max_sequence.max(highest.unwrap_or(0));
            }
            at = self.folder.snapshot(snapshot.id - 1)?;
        }
        Ok(history)
    }

    #[cfg(test)]
    pub(super) fn commit_user(&self) -> &str {
        &self.commit_user
    }

    /// Whether this sink committed the snapshot.
    pub(super) fn is_own(&self, snapshot: &Snapshot) -> bool {
        snapshot.commit_user == self.commit_user
    }

    /// Removes old snapshots at the first commit and at some of those that follow. A failure is logged: the next
    /// expiry makes up for it.
    pub(super) fn expire_now_and_then(&mut self, settings: &Settings) {
        let due = self.commit_count.is_multiple_of(COMMITS_BETWEEN_EXPIRIES);
        self.commit_count += 1;
        if !due {
            return;
        }
        let expired = self
            .partitioning()
            .and_then(|partitioning| expire::expire(&self.folder, &partitioning, &self.commit_user, settings));
        if let Err(error) = expired {
            let (table, error) = (self.folder.id.to_string(), error.to_string());
            log(Level::Warn, "snapshots are not expired", &[("table", &table), ("error", &error)]);
        }
    }

    /// Puts the snapshot after `newest`. False if somebody else was first.
    fn try_snapshot(
        &mut self,
        epoch: &Epoch<'_>,
        history: History,
        staged: &Staged,
        names: &mut Names,
    ) -> Result<bool> {
        let (partitioning, is_first) = (self.partitioning()?, history.newest.is_none());
        let mut writer = ManifestWriter::new(&self.folder, &partitioning, names, epoch.epoch);
        let base = match &history.newest {
            Some(newest) => writer.merge_if_many(self.folder.manifests_of(newest)?)?,
            None => Vec::new(),
        };
        let (base_list, base_size) = writer.write_list(&base)?;
        let (delta_list, delta_size) = writer.write_list(std::slice::from_ref(&staged.manifest))?;
        let mut snapshot = self.snapshot_after(history, epoch, staged)?;
        snapshot.base_manifest_list = base_list;
        snapshot.base_manifest_list_size = Some(base_size);
        snapshot.delta_manifest_list = delta_list;
        snapshot.delta_manifest_list_size = Some(delta_size);
        let (path, json) = (Snapshot::path(snapshot.id), snapshot.to_json());
        if self.folder.put_if_absent(&path, &json)? == Creation::AlreadyExists
            && self.folder.get(&path)?.as_deref() != Some(json.as_slice())
        {
            let lists = [&snapshot.base_manifest_list, &snapshot.delta_manifest_list];
            self.folder.delete(&lists.map(|list| format!("manifest/{list}")))?;
            return Ok(false);
        }
        self.last_seen = Some(snapshot.id);
        self.shown = Some(snapshot.commit_identifier);
        self.hint(snapshot.id);
        if is_first {
            epoch.ledger.note_rows(&self.folder.id, epoch.epoch);
        }
        Ok(true)
    }

    fn snapshot_after(&self, history: History, epoch: &Epoch<'_>, staged: &Staged) -> Result<Snapshot> {
        let Staged { row_count, schema_id, max_sequence, .. } = *staged;
        let properties = [
            (PROPERTY_PIPELINE, epoch.context.pipeline.clone()),
            (PROPERTY_EPOCH, epoch.epoch.to_string()),
            (PROPERTY_GENERATION, epoch.run.generation.to_string()),
            (PROPERTY_LINEAGE, epoch.lineage.to_owned()),
            (PROPERTY_FILE, staged.mark.clone()),
            (PROPERTY_MAX_SEQUENCE, max_sequence.max(history.max_sequence).to_string()),
        ];
        let before = history.newest.as_ref();
        Ok(Snapshot {
            version: SNAPSHOT_VERSION,
            id: before.map_or(1, |before| before.id + 1),
            schema_id: before.map_or(schema_id, |before| before.schema_id.max(schema_id)),
            base_manifest_list: String::new(),
            base_manifest_list_size: None,
            delta_manifest_list: String::new(),
            delta_manifest_list_size: None,
            changelog_manifest_list: None,
            index_manifest: before.and_then(|before| before.index_manifest.clone()),
            commit_user: self.commit_user.clone(),
            commit_identifier: identifier_of(epoch.epoch)?,
            commit_kind: CommitKind::Append,
            time_millis: (now_micros() / 1000) as i64, // the clock is far below 2^63
            total_record_count: Some(before.and_then(|before| before.total_record_count).unwrap_or(0) + row_count),
            delta_record_count: Some(row_count),
            statistics: before.and_then(|before| before.statistics.clone()),
            watermark: before.and_then(|before| before.watermark),
            next_row_id: before.and_then(|before| before.next_row_id),
            properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            other: BTreeMap::new(),
        })
    }

    /// Readers may begin their search at these; none of them trusts them, nor do we.
    fn hint(&self, id: u64) {
        let text = id.to_string();
        let mut put = self.folder.put("snapshot/LATEST", text.as_bytes());
        if id == 1 {
            put = put.and_then(|()| self.folder.put("snapshot/EARLIEST", text.as_bytes()));
        }
        if let Err(error) = put {
            let (table, error) = (self.folder.id.to_string(), error.to_string());
            log(Level::Warn, "hint of the newest snapshot is not written", &[("table", &table), ("error", &error)]);
        }
    }

    fn missing_files(&self, partitioning: &Partitioning, entries: &[ManifestEntry]) -> Result<Option<String>> {
        let mut missing = Vec::new();
        for entry in entries {
            let path = self.folder.data_path(partitioning, entry)?;
            if !self.folder.has_data_file(&path, entry.file.size)? {
                missing.push(path);
            }
        }
        if missing.is_empty() {
            return Ok(None);
        }
        let (count, shown) = (missing.len(), missing[..missing.len().min(NAMES_SHOWN_MAX)].join(", "));
        Ok(Some(format!("{count} prepared files of table {} are gone or cut: {shown}", self.folder.id)))
    }

    /// Whoever changes the number of buckets writes the table anew; files made for the old number do not fit then.
    fn check_buckets(&self, newest: Option<&Snapshot>, handovers: &[&Handover]) -> Result<()> {
        for handover in handovers {
            let Some(newest) = newest.filter(|newest| newest.schema_id > handover.schema_id) else { continue };
            let path = LakeSchema::path(newest.schema_id);
            let Some(bytes) = self.folder.get(&path)? else { continue };
            let schema = LakeSchema::parse(&bytes).map_err(|error| self.folder.broken(&path, &error))?;
            let now = Buckets::of(&schema.options, !schema.primary_keys.is_empty())?.total();
            let then = handover.bucket_count;
            if now != then {
                let table = &self.folder.id;
                let message = format!(
                    "table {table} has {now} buckets now, the prepared files are for {then}: restart from an older savepoint, or set the buckets back"
                );
                return Err(final_stop("buckets-changed", message).with_table(table));
            }
        }
        Ok(())
    }

    /// Removes a manifest that no snapshot names.
    fn forget(&self, staged: Option<Staged>) {
        let Some(Staged { manifest, .. }) = staged else { return };
        if let Err(error) = self.folder.delete(&[format!("manifest/{}", manifest.name)]) {
            log(Level::Warn, "a manifest is left behind", &[("name", &manifest.name), ("error", &error.message)]);
        }
    }
}

pub(super) fn identifier_of(epoch: u64) -> Result<i64> {
    i64::try_from(epoch)
        .map_err(|_| PluginError::bug("epoch", format!("epoch {epoch} is beyond what a snapshot can name")))
}
