//! Where files lie in the store, and how one becomes visible.

use cdchost_sdk::object_store::{Creation, Root};
use cdchost_sdk::runtime::{self, Context};
use cdchost_sdk::{Cut, Outcome, PluginError, Progress, Result, Retry, TableId};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::config::PART_SIZE_MAX;

/// A file that a writer staged, and what it is to become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Where it lies now.
    pub(crate) staged: String,
    /// Where readers will see it.
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// A marker of progress that lies in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
    pub(crate) path: String,
}

/// The folder that the sink writes to.
#[derive(Debug)]
pub(crate) struct Target {
    root: Root,
    /// Empty, or ends with `/`.
    folder: String,
    context: Context,
}

impl Target {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let (root, folder) = options.path.split_once('/').unwrap_or((&options.path, ""));
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        if root.is_empty() || parts.iter().any(|part| matches!(*part, "." | "..")) {
            let message = format!("path {:?} is not STORE or STORE/FOLDER", options.path);
            return Err(PluginError::config("path", message));
        }
        if options.part_size > PART_SIZE_MAX {
            let message = format!("part-size {} is above {PART_SIZE_MAX}", options.part_size);
            return Err(PluginError::config("part-size", message));
        }
        let folder = parts.iter().map(|part| format!("{part}/")).collect();
        Ok(Self { root: Root::new(root), folder, context: runtime::context() })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Puts a file where nobody looks, under the next number that is free; answers its path. One that is there may be
    /// of a process on a copy of the checkpoint store, and to be committed.
    pub(crate) fn stage(&self, next: &mut u64, data: &[u8]) -> Result<String> {
        let Context { generation, subtask, .. } = self.context;
        loop {
            let path = format!("{}{generation:020}/{subtask:05}-{next:010}", self.staging());
            let created = self.root.put_if_absent(&path, data)?;
            *next += 1;
            if created == Creation::Created {
                return Ok(path);
            }
        }
    }

    /// Where readers see a file.
    pub(crate) fn visible_path(&self, table: &TableId, epoch: u64, number: usize) -> String {
        let (database, name) = (segment(&table.database), segment(&table.table));
        let subtask = self.context.subtask;
        format!("{}{database}/{name}/part-{epoch:020}-{subtask:05}-{number:05}.jsonl", self.folder)
    }

    /// Makes a staged file visible under its name, unless it is.
    pub(crate) fn publish(&self, part: &Part) -> Result<Outcome> {
        let staged = match self.root.get(&part.staged) {
            Ok(staged) => staged,
            Err(error) if error.is_not_found() => return self.without_staged(part),
            Err(error) => return Err(error.into()),
        };
        match self.root.put_if_absent(&part.path, &staged)? {
            Creation::Created => Ok(Outcome::Committed),
            Creation::AlreadyExists if self.root.get(&part.path)? == staged => Ok(Outcome::AlreadyCommitted),
            Creation::AlreadyExists => {
                let message =
                    format!("{} is there with other content: does another sink write to this path?", part.path);
                Ok(Outcome::Failed(PluginError::config("part-taken", message)))
            }
        }
    }

    /// Staged files are removed once all of their epoch is visible.
    fn without_staged(&self, part: &Part) -> Result<Outcome> {
        match self.root.get_range(&part.path, 0, 1) {
            Ok(_) => Ok(Outcome::AlreadyCommitted),
            Err(error) if error.is_not_found() => {
                Ok(Outcome::Lost(format!("staged file {} is gone and {} is not there", part.staged, part.path)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// All markers, oldest epoch first.
    pub(crate) fn markers(&self) -> Result<Vec<Marker>> {
        let folder = self.progress();
        let found = self.root.list_all(&folder)?;
        let marker = |path: String| {
            let (epoch, generation) = path.strip_prefix(&folder)?.strip_suffix(".json")?.split_once('-')?;
            Some(Marker { epoch: epoch.parse().ok()?, generation: generation.parse().ok()?, path })
        };
        let mut markers: Vec<Marker> = found.into_iter().filter_map(|object| marker(object.path)).collect();
        markers.sort_by_key(|marker| (marker.epoch, marker.generation));
        Ok(markers)
    }

    /// What a marker says.
    pub(crate) fn read(&self, marker: &Marker) -> Result<Progress> {
        let data = self.root.get(&marker.path)?;
        serde_json::from_slice(&data).map_err(|error| {
            let message = format!("{} cannot be read: {error}; put the file back as it was", marker.path);
            PluginError::remote("marker-unreadable", message).with_retry(Retry::Never)
        })
    }

    /// Says in the target that all up to this cut is visible.
    pub(crate) fn mark(&self, cut: &Cut) -> Result<Marker> {
        let (epoch, generation) = (cut.epoch, cut.generation);
        let path = format!("{}{epoch:020}-{generation:020}.json", self.progress());
        let progress = Progress { pipeline: self.context.pipeline.clone(), cut: cut.clone() };
        let data = serde_json::to_vec(&progress)
            .map_err(|error| PluginError::bug("marker-unwritable", format!("progress marker: {error}")))?;
        // There already: written by a commit of the same cut.
        self.root.put_if_absent(&path, &data)?;
        Ok(Marker { epoch, generation, path })
    }

    /// Removes markers of earlier epochs.
    pub(crate) fn forget(&self, markers: &[Marker], before: &Marker) -> Result<()> {
        let older = markers.iter().filter(|marker| marker.epoch < before.epoch);
        Ok(self.root.delete(&older.map(|marker| marker.path.as_str()).collect::<Vec<_>>())?)
    }

    /// Removes staged files by name.
    pub(crate) fn unstage(&self, paths: &[&str]) -> Result<()> {
        Ok(self.root.delete(paths)?)
    }

    /// Staged files of this sink's earlier runs.
    pub(crate) fn staged_before(&self) -> Result<Vec<String>> {
        let folder = self.staging();
        let of_earlier_run = |path: &String| {
            let generation = path.strip_prefix(&folder).and_then(|rest| rest.split_once('/')).map(|(name, _)| name);
            let generation = generation.and_then(|generation| generation.parse::<u64>().ok());
            generation.is_some_and(|generation| generation < self.context.generation)
        };
        let found = self.root.list_all(&folder)?;
        Ok(found.into_iter().map(|object| object.path).filter(of_earlier_run).collect())
    }

    fn staging(&self) -> String {
        format!("{}_staging/{}/{}/", self.folder, segment(&self.context.pipeline), segment(&self.context.operator))
    }

    fn progress(&self) -> String {
        format!("{}_progress/", self.folder)
    }
}

/// A name as one part of a path: what a path cannot hold is written as `%XX`, and so is a leading `_` or `.`, which our
/// own folders and special names begin with. Other letters stay, so that the longest names still fit.
fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        let is_special = matches!(character, '/' | '\\' | '%') || character.is_control();
        if is_special || (at == 0 && matches!(character, '_' | '.')) {
            let mut bytes = [0; 4];
            character.encode_utf8(&mut bytes).bytes().for_each(|byte| segment.push_str(&format!("%{byte:02X}")));
        } else {
            segment.push(character);
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_one_part_of_a_path_and_stay_apart() {
        for (name, expect) in [
            ("shop", "shop"),
            ("Order_Items-2.old", "Order_Items-2.old"),
            ("_staging", "%5Fstaging"),
            ("..", "%2E."),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("a\\b\u{85}", "a%5Cb%C2%85"),
            ("größe", "größe"),
        ] {
            assert_eq!(segment(name), expect);
        }
    }
}
