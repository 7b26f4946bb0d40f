//! What the sink keeps beside the tables: which tables it writes, and the marker of the newest epoch wholly visible.

use cdchost_sdk::object_store::Creation;
use cdchost_sdk::runtime::{Context, Level, log};
use cdchost_sdk::{Cut, PluginError, Progress, Result, Retry, TableId};
use serde::{Deserialize, Serialize};

use super::rival::other_marker;
use crate::client::Lake;

/// The folder beside the databases; Paimon looks only at those that end in `.db`.
const FOLDER: &str = "_cdchost";
/// Version of both kinds of objects.
const VERSION: u32 = 1;
/// How many markers are kept.
const MARKERS_KEPT: usize = 8;

/// The objects that this sink keeps in a warehouse. They lie under the sink's id, not the pipeline's name, so that a
/// second pipeline with the same sink meets the first one's marker.
#[derive(Debug)]
pub(crate) struct Ledger {
    lake: Lake,
    pipeline: String,
    folder: String,
    /// Markers that this instance knows of, ascending. Epochs have gaps: one without changes gets no record.
    known: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Marker {
    version: u32,
    #[serde(flatten)]
    progress: Progress,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TableNote {
    version: u32,
    pipeline: String,
    /// The epoch of the table's first snapshot; none while it has had no rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_epoch: Option<u64>,
    #[serde(flatten)]
    table: TableId,
}

impl Ledger {
    pub(crate) fn new(lake: Lake, context: &Context) -> Self {
        let folder = format!("{FOLDER}/{}", escaped(&context.operator));
        Self { lake, pipeline: context.pipeline.clone(), folder, known: Vec::new() }
    }

    /// Notes that this sink writes the table.
    pub(crate) fn note_table(&self, table: &TableId) -> Result<()> {
        self.lake.put_if_absent(&self.note_path(table), &self.note(table, None)).map(drop)
    }

    /// Notes that the table has rows now. Without it a table that was emptied would look like a new one.
    pub(crate) fn note_rows(&self, table: &TableId, epoch: u64) {
        if let Err(error) = self.lake.put(&self.note_path(table), &self.note(table, Some(epoch))) {
            let (table, error) = (table.to_string(), error.to_string());
            log(Level::Warn, "it is not noted that the table has rows", &[("table", &table), ("error", &error)]);
        }
    }

    /// The epoch that gave the table its first rows; none if it never had any.
    pub(crate) fn first_epoch_with_rows(&self, table: &TableId) -> Result<Option<u64>> {
        Ok(self.read_note(&self.note_path(table))?.and_then(|note| note.first_epoch))
    }

    fn note(&self, table: &TableId, first_epoch: Option<u64>) -> Vec<u8> {
        let note = TableNote { version: VERSION, pipeline: self.pipeline.clone(), first_epoch, table: table.clone() };
        serde_json::to_vec(&note).expect("a note has no keys other than texts")
    }

    fn read_note(&self, path: &str) -> Result<Option<TableNote>> {
        let Some(bytes) = self.lake.get(path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| self.broken(path, &error))
    }

    fn note_path(&self, table: &TableId) -> String {
        format!("{}/tables/{}.{}", self.folder, escaped(&table.database), escaped(&table.table))
    }

    /// All tables noted.
    pub(crate) fn tables(&self) -> Result<Vec<TableId>> {
        let folder = format!("{}/tables", self.folder);
        let mut tables = Vec::new();
        for name in self.lake.file_names(&folder)? {
            tables.extend(self.read_note(&format!("{folder}/{name}"))?.map(|note| note.table));
        }
        Ok(tables)
    }

    /// The newest marker. Refuses one of another pipeline.
    pub(crate) fn newest(&self) -> Result<Option<Progress>> {
        let Some(epoch) = self.epochs()?.pop() else { return Ok(None) };
        self.marker(epoch)
    }

    /// Puts the marker of an epoch that is wholly visible now, and removes old ones.
    pub(crate) fn put(&mut self, cut: &Cut) -> Result<()> {
        let progress = Progress { pipeline: self.pipeline.clone(), cut: cut.clone() };
        let marker = serde_json::to_vec_pretty(&Marker { version: VERSION, progress })
            .expect("a marker has no keys other than texts");
        if self.lake.put_if_absent(&self.path(cut.epoch), &marker)? == Creation::AlreadyExists {
            self.require(cut)?;
        }
        if let Err(place) = self.known.binary_search(&cut.epoch) {
            self.known.insert(place, cut.epoch);
        }
        self.remove_old()
    }

    /// Refuses the marker of an epoch that another process committed.
    pub(crate) fn require(&self, cut: &Cut) -> Result<()> {
        match self.marker(cut.epoch)? {
            Some(found) if found.cut != *cut => Err(other_marker(cut)),
            _ => Ok(()),
        }
    }

    /// Removes old markers, those of earlier runs included.
    pub(crate) fn prune(&mut self) -> Result<()> {
        self.known = self.epochs()?;
        self.remove_old()
    }

    fn remove_old(&mut self) -> Result<()> {
        let old = self.known.len().saturating_sub(MARKERS_KEPT);
        let paths: Vec<_> = self.known[..old].iter().map(|&epoch| self.path(epoch)).collect();
        self.lake.delete(&paths)?;
        self.known.drain(..old);
        Ok(())
    }

    fn epochs(&self) -> Result<Vec<u64>> {
        let names = self.lake.file_names(&format!("{}/epochs", self.folder))?;
        let mut epochs: Vec<u64> = names.iter().filter_map(|name| name.strip_prefix("epoch-")?.parse().ok()).collect();
        epochs.sort_unstable();
        Ok(epochs)
    }

    fn marker(&self, epoch: u64) -> Result<Option<Progress>> {
        let path = self.path(epoch);
        let Some(bytes) = self.lake.get(&path)? else { return Ok(None) };
        let marker: Marker = serde_json::from_slice(&bytes).map_err(|error| self.broken(&path, &error))?;
        if marker.version != VERSION {
            return Err(self.broken(&path, &format!("version {}, known is {VERSION}", marker.version)));
        }
        if marker.progress.pipeline != self.pipeline {
            let message = format!(
                "the warehouse {} is written by pipeline {:?} through a sink of the same id, this is pipeline {:?}: give it \
                 a warehouse of its own, or, if it writes other tables, another sink id",
                self.lake.name(),
                marker.progress.pipeline,
                self.pipeline
            );
            return Err(PluginError::config("other-pipeline", message));
        }
        Ok(Some(marker.progress))
    }

    fn path(&self, epoch: u64) -> String {
        format!("{}/epochs/epoch-{epoch}", self.folder)
    }

    fn broken(&self, path: &str, error: &dyn std::fmt::Display) -> PluginError {
        let message = format!(
            "{path} in the warehouse {} cannot be read: {error}; put the file back as it was",
            self.lake.name()
        );
        PluginError::remote("ledger-broken", message).with_retry(Retry::Never)
    }
}

/// A name as one part of a path, different for different names.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() || c == '-' || c == '_' {
            out.push(c);
        } else {
            c.to_string().bytes().for_each(|byte| out.push_str(&format!("%{byte:02x}")));
        }
    }
    out
}
