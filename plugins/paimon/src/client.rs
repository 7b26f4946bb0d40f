//! The warehouse as files: where tables lie, reading their metadata, publishing.

mod names;

use cdchost_sdk::object_store::{Creation, Root, StoreError, Upload};
use cdchost_sdk::{PluginError, Result, Retry, TableId};

use crate::config::Settings;
use crate::format::manifest::{ManifestEntry, ManifestFile, read_manifest, read_manifest_list, read_whole_manifest};
use crate::format::partition::Partitioning;
use crate::format::schema::LakeSchema;
use crate::format::snapshot::Snapshot;
pub(crate) use names::{Names, Origin, check_names, random};

/// The folder of a warehouse.
#[derive(Clone, Debug)]
pub(crate) struct Lake {
    root: Root,
    folder: String,
}

/// The folder of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableFolder {
    pub(crate) id: TableId,
    lake: Lake,
    path: String,
}

impl Lake {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { root: Root::new(&settings.root), folder: settings.folder.clone() }
    }

    /// The table's folder. Refuses names that Paimon cannot have.
    pub(crate) fn table(&self, id: &TableId) -> Result<TableFolder> {
        check_names(id, &[])?;
        let path = self.path(&format!("{}.db/{}", id.database, id.table));
        Ok(TableFolder { id: id.clone(), lake: self.clone(), path })
    }

    /// What the warehouse is called in messages.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.root.name(), self.folder)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        optional(self.root.get(&self.path(path)))
    }

    pub(crate) fn put(&self, path: &str, data: &[u8]) -> Result<()> {
        Ok(self.root.put(&self.path(path), data)?)
    }

    pub(crate) fn put_if_absent(&self, path: &str, data: &[u8]) -> Result<Creation> {
        Ok(self.root.put_if_absent(&self.path(path), data)?)
    }

    pub(crate) fn delete(&self, paths: &[String]) -> Result<()> {
        let paths: Vec<_> = paths.iter().map(|path| self.path(path)).collect();
        Ok(self.root.delete(&paths)?)
    }

    /// Names of the files directly in a folder.
    pub(crate) fn file_names(&self, folder: &str) -> Result<Vec<String>> {
        list(&self.root, &self.path(folder))
    }

    fn path(&self, path: &str) -> String {
        if self.folder.is_empty() { path.into() } else { format!("{}/{path}", self.folder) }
    }
}

impl TableFolder {
    pub(crate) fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        optional(self.lake.root.get(&self.path(path)))
    }

    pub(crate) fn put(&self, path: &str, data: &[u8]) -> Result<()> {
        Ok(self.lake.root.put(&self.path(path), data)?)
    }

    pub(crate) fn put_if_absent(&self, path: &str, data: &[u8]) -> Result<Creation> {
        Ok(self.lake.root.put_if_absent(&self.path(path), data)?)
    }

    pub(crate) fn upload(&self, path: &str) -> Upload {
        self.lake.root.upload(&self.path(path))
    }

    pub(crate) fn delete(&self, paths: &[String]) -> Result<()> {
        let paths: Vec<_> = paths.iter().map(|path| self.path(path)).collect();
        Ok(self.lake.root.delete(&paths)?)
    }

    /// Where a data file lies.
    pub(crate) fn data_path(&self, partitioning: &Partitioning, entry: &ManifestEntry) -> Result<String> {
        let folder = partitioning.bucket_folder(entry).map_err(|why| self.broken("a data file's entry", &why))?;
        Ok(folder + &entry.file.name)
    }

    pub(crate) fn delete_data(&self, partitioning: &Partitioning, entries: &[ManifestEntry]) -> Result<()> {
        let paths = entries.iter().map(|entry| self.data_path(partitioning, entry));
        self.delete(&paths.collect::<Result<Vec<_>>>()?)
    }

    /// How the table is divided, which never changes once it has a snapshot.
    pub(crate) fn partitioning(&self) -> Result<Partitioning> {
        let Some(schema) = self.newest_schema()? else { return Ok(Partitioning::default()) };
        Partitioning::of(&schema).map_err(|why| self.broken(&LakeSchema::path(schema.id), &why))
    }

    /// Names of the files directly in a folder.
    pub(crate) fn file_names(&self, folder: &str) -> Result<Vec<String>> {
        list(&self.lake.root, &self.path(folder))
    }

    /// Paths of all files in the table's folder.
    pub(crate) fn paths(&self) -> Result<Vec<String>> {
        let own = self.path("");
        let Some(found) = optional(self.lake.root.list_all(&own))? else { return Ok(Vec::new()) };
        Ok(found.iter().filter_map(|file| file.path.strip_prefix(&own)).map(str::to_owned).collect())
    }

    /// Whether a data file of this size is there: its last bytes are those of a Parquet file.
    pub(crate) fn has_data_file(&self, path: &str, size: i64) -> Result<bool> {
        const END: &[u8] = b"PAR1";
        let Ok(size) = u64::try_from(size) else { return Ok(false) };
        let Some(end) = size.checked_sub(END.len() as u64) else { return Ok(false) };
        let found = optional(self.lake.root.get_range(&self.path(path), end, END.len() as u64 + 1))?;
        Ok(found.as_deref() == Some(END))
    }

    /// The newest schema; none if the table is not there.
    pub(crate) fn newest_schema(&self) -> Result<Option<LakeSchema>> {
        let names = self.file_names("schema")?;
        let Some(id) = names.iter().filter_map(|name| LakeSchema::id_of(name)).max() else { return Ok(None) };
        let path = LakeSchema::path(id);
        let Some(bytes) = self.get(&path)? else { return Ok(None) };
        LakeSchema::parse(&bytes).map(Some).map_err(|error| self.broken(&path, &error))
    }

    /// Numbers of all snapshots, ascending.
    pub(crate) fn snapshot_ids(&self) -> Result<Vec<u64>> {
        let names = self.file_names("snapshot")?;
        let mut ids: Vec<_> = names.iter().filter_map(|name| Snapshot::id_of(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// The newest snapshot, given where it was last seen. The files named LATEST and EARLIEST are never trusted.
    pub(crate) fn newest_snapshot(&self, last_seen: Option<u64>) -> Result<Option<Snapshot>> {
        if let Some(id) = last_seen
            && let Some(snapshot) = self.snapshot(id)?
            && self.get(&Snapshot::path(id + 1))?.is_none()
        {
            return Ok(Some(snapshot));
        }
        // A snapshot that vanishes between the list and the look was rolled back: list again.
        const LOOKS: u32 = 5;
        for _ in 0..LOOKS {
            let Some(id) = self.snapshot_ids()?.pop() else { return Ok(None) };
            if let Some(snapshot) = self.snapshot(id)? {
                return Ok(Some(snapshot));
            }
        }
        let message = format!("the newest snapshot of table {} is listed, yet not there", self.id);
        Err(PluginError::remote("snapshot-vanishes", message).with_table(&self.id))
    }

    pub(crate) fn snapshot(&self, id: u64) -> Result<Option<Snapshot>> {
        let path = Snapshot::path(id);
        let Some(bytes) = self.get(&path)? else { return Ok(None) };
        Snapshot::parse(&bytes).map(Some).map_err(|error| self.broken(&path, &error))
    }

    /// Snapshots that a tag keeps.
    pub(crate) fn tags(&self) -> Result<Vec<Snapshot>> {
        let mut tags = Vec::new();
        for name in self.file_names("tag")?.iter().filter(|name| name.starts_with("tag-")) {
            let path = format!("tag/{name}");
            if let Some(bytes) = self.get(&path)? {
                tags.push(Snapshot::parse(&bytes).map_err(|error| self.broken(&path, &error))?);
            }
        }
        Ok(tags)
    }

    /// All manifests of a snapshot: those from before, then those it added.
    pub(crate) fn manifests_of(&self, snapshot: &Snapshot) -> Result<Vec<ManifestFile>> {
        let mut manifests = self.manifest_list(&snapshot.base_manifest_list)?;
        manifests.extend(self.manifest_list(&snapshot.delta_manifest_list)?);
        Ok(manifests)
    }

    pub(crate) fn manifest_list(&self, name: &str) -> Result<Vec<ManifestFile>> {
        let path = format!("manifest/{name}");
        read_manifest_list(&self.expect(&path)?).map_err(|error| self.broken(&path, &error))
    }

    pub(crate) fn manifest(&self, name: &str) -> Result<Vec<ManifestEntry>> {
        let path = format!("manifest/{name}");
        read_manifest(&self.expect(&path)?).map_err(|error| self.broken(&path, &error))
    }

    /// The entries of a manifest that is to be written anew: fails where something would be lost.
    pub(crate) fn whole_manifest(&self, name: &str) -> Result<Vec<ManifestEntry>> {
        let path = format!("manifest/{name}");
        read_whole_manifest(&self.expect(&path)?).map_err(|error| self.broken(&path, &error))
    }

    pub(crate) fn broken(&self, path: &str, error: &dyn std::fmt::Display) -> PluginError {
        let message = format!(
            "{} in store {} cannot be read: {error}; put the file back as it was, or roll table {} back to a snapshot \
             that does not need it",
            self.path(path),
            self.lake.root.name(),
            self.id
        );
        PluginError::remote("table-broken", message).with_retry(Retry::Never).with_table(&self.id)
    }

    fn expect(&self, path: &str) -> Result<Vec<u8>> {
        self.get(path)?.ok_or_else(|| self.broken(path, &"it is not there"))
    }

    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.path)
    }
}

fn optional<T>(found: Result<T, StoreError>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn list(root: &Root, folder: &str) -> Result<Vec<String>> {
    let folder = format!("{folder}/");
    let Some(found) = optional(root.list_all(&folder))? else { return Ok(Vec::new()) };
    let names = found.iter().filter_map(|file| file.path.strip_prefix(&folder));
    Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
}
