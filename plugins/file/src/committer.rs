//! Makes staged files visible, keeps the marker of progress, cleans up after earlier runs.

use cdchost_sdk::{Committable, Committer, Cut, Outcome, PluginError, Recovered, Result, SchemaChangeRequest, runtime};

use crate::Options;
use crate::client::{Marker, Part, Target};

/// Version of a committable's payload: a JSON list of [`Part`]s.
const PAYLOAD_FORMAT: u32 = 1;

/// Commits of one sink.
#[derive(Debug)]
pub struct FileCommitter {
    target: Target,
    /// The epoch of the newest marker as this run saw or put it, 0 = none; none before the first look.
    reached: Option<u64>,
}

impl FileCommitter {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        Ok(Self { target: Target::new(options)?, reached: None })
    }

    /// The markers in the target, unless a later run is at work there.
    fn markers(&self) -> Result<Vec<Marker>> {
        let (markers, own) = (self.target.markers()?, self.target.context().generation);
        match markers.iter().map(|marker| marker.generation).max().filter(|&newest| newest > own) {
            None => Ok(markers),
            Some(newest) => {
                Err(other_run("later-run", &format!("run {newest} has written to the target, this is run {own}")))
            }
        }
    }

    /// Whether the epoch is wholly visible. A marker of it with another cut, or one that this run neither saw nor put, is
    /// of a process that runs on a copy of the checkpoint store.
    fn is_marked(&mut self, at: &Cut, markers: &[Marker]) -> Result<bool> {
        let newest = markers.last().map_or(0, |marker| marker.epoch);
        let reached = *self.reached.get_or_insert(newest);
        for marker in markers.iter().filter(|marker| marker.epoch == at.epoch) {
            if self.target.read(marker)?.cut != *at {
                return Err(other_run(
                    "fenced",
                    &format!("the marker of epoch {newest} in the target is of another run"),
                ));
            }
        }
        if newest > reached && newest != at.epoch {
            return Err(other_run("fenced", &format!("another run has committed epoch {newest} to the target")));
        }
        Ok(newest >= at.epoch)
    }

    /// Makes the files of these items visible; an item is done when all of its files are.
    fn settle(&self, items: &[Committable]) -> Result<Vec<Outcome>> {
        items.iter().map(|item| self.settle_item(item)).collect()
    }

    fn settle_item(&self, item: &Committable) -> Result<Outcome> {
        let mut all = Outcome::AlreadyCommitted;
        for part in &parts(item)? {
            match self.target.publish(part)? {
                Outcome::AlreadyCommitted => {}
                Outcome::Committed => all = Outcome::Committed,
                not_done => return Ok(not_done),
            }
        }
        Ok(all)
    }

    /// After the last file of an epoch: says so in the target, then removes what the epoch no longer needs.
    fn finish(&mut self, cut: &Cut, items: &[Committable], markers: &[Marker]) -> Result<()> {
        let marker = self.target.mark(cut)?;
        self.reached = Some(cut.epoch);
        self.unstage(items)?;
        self.target.forget(markers, &marker)
    }

    fn unstage(&self, items: &[Committable]) -> Result<()> {
        let parts = items.iter().map(parts).collect::<Result<Vec<_>>>()?;
        self.target.unstage(&parts.iter().flatten().map(|part| part.staged.as_str()).collect::<Vec<_>>())
    }

    /// A folder has one writing pipeline: another's marker stops the start before anything is touched.
    fn check_owner(&self, markers: &[Marker]) -> Result<()> {
        let Some(newest) = markers.last() else { return Ok(()) };
        let (theirs, ours) = (self.target.read(newest)?.pipeline, &self.target.context().pipeline);
        if theirs == *ours {
            return Ok(());
        }
        let message = format!("the target belongs to pipeline {theirs}, this is {ours}: choose another path");
        Err(PluginError::config("other-pipeline", message))
    }

    /// How far the target is, which is at least as far as all that is pending; changes nothing.
    fn only_told(&self, markers: &[Marker], pending: &[Committable]) -> Result<Recovered> {
        let progress = markers.last().map(|newest| self.target.read(newest)).transpose()?;
        Ok(Recovered { outcomes: vec![Outcome::AlreadyCommitted; pending.len()], progress })
    }

    /// Staged files of earlier runs that nobody will commit any more.
    fn clean_up(&self, unsettled: &[Part]) -> Result<()> {
        let staged = self.target.staged_before()?;
        let gone = staged.iter().filter(|path| unsettled.iter().all(|part| part.staged != **path));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if !gone.is_empty() {
            let count = gone.len().to_string();
            runtime::log(runtime::Level::Info, "staged files of earlier runs removed", &[("count", &count)]);
        }
        self.target.unstage(&gone)
    }
}

impl Committer for FileCommitter {
    fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered> {
        self.check_owner(&self.target.markers()?)?;
        let markers = self.markers()?;
        let reached = markers.last().map(|marker| marker.epoch);
        if let Some(cut) = restored.filter(|cut| reached == Some(cut.epoch)) {
            self.is_marked(cut, &markers)?;
        }
        self.reached = Some(reached.unwrap_or(0));
        if reached > restored.map(|cut| cut.epoch) {
            // What lies in a target that is ahead of the record is another run's: the host refuses it untouched.
            return self.only_told(&markers, pending);
        }
        let (seen, open): (Vec<_>, Vec<_>) = pending.iter().cloned().partition(|item| Some(item.epoch) <= reached);
        self.unstage(&seen)?;
        let mut outcomes = vec![Outcome::AlreadyCommitted; seen.len()];
        let settled = self.settle(&open)?;
        let is_done = settled.iter().all(is_visible);
        outcomes.extend(settled);
        if let Some(cut) = restored.filter(|cut| is_done && Some(cut.epoch) > reached) {
            self.finish(cut, &open, &markers)?;
        }
        let unsettled = if is_done { Vec::new() } else { open.iter().map(parts).collect::<Result<Vec<_>>>()? };
        self.clean_up(&unsettled.concat())?;
        let markers = self.target.markers()?;
        let Some(newest) = markers.last() else { return Ok(Recovered { outcomes, progress: None }) };
        self.target.forget(&markers, newest)?;
        Ok(Recovered { outcomes, progress: Some(self.target.read(newest)?) })
    }

    fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<Outcome>> {
        let markers = self.markers()?;
        if self.is_marked(at, &markers)? {
            self.unstage(items)?;
            return Ok(vec![Outcome::AlreadyCommitted; items.len()]);
        }
        let outcomes = self.settle(items)?;
        if outcomes.iter().all(is_visible) {
            self.finish(at, items, &markers)?;
        }
        Ok(outcomes)
    }

    fn abort(&mut self, items: &[Committable]) -> Result<()> {
        self.unstage(items)
    }

    /// Lines name their columns: nothing to do in the target.
    fn apply_schema_change(&mut self, _request: &SchemaChangeRequest) -> Result<()> {
        Ok(())
    }
}

fn other_run(code: &str, what: &str) -> PluginError {
    let advice = "another process runs this pipeline, perhaps on a copy of its state folder: let one of them run, and go \
                  on with the state folder of that one";
    PluginError::remote(code, format!("{what}: {advice}")).with_retry(cdchost_sdk::Retry::Never)
}

fn is_visible(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Committed | Outcome::AlreadyCommitted)
}

fn parts(item: &Committable) -> Result<Vec<Part>> {
    let unreadable = |why: String| PluginError::bug("committable-unreadable", format!("item {}: {why}", item.key));
    if item.format != PAYLOAD_FORMAT {
        return Err(unreadable(format!("format {}, this version reads {PAYLOAD_FORMAT}", item.format)));
    }
    serde_json::from_slice(&item.payload).map_err(|error| unreadable(error.to_string()))
}
