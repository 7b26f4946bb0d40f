//! Tables and commits: each epoch becomes one snapshot of each table that it touched, then a marker.

mod clean;
mod expire;
mod manifests;
mod progress;
mod publish;
mod rival;
mod tables;

use std::collections::BTreeMap;

use cdchost_sdk::runtime::{Context, context, counter_add, histogram_record, now_micros};
use cdchost_sdk::{
    Committable, Committer, Cut, Outcome, PluginError, Progress, Recovered, Result, SchemaChange, SchemaChangeRequest,
    TableId,
};

use crate::client::{Lake, Names, TableFolder};
use crate::config::{Options, Settings};
use crate::encode::lake_columns;
use crate::handover::Handover;
#[cfg(test)]
pub(crate) use manifests::merge as merge_entries;
pub(crate) use progress::Ledger;
use publish::{Published, Run, TableCommitter};

/// Makes tables and commits epochs.
#[derive(Debug)]
pub struct PaimonCommitter {
    settings: Settings,
    context: Context,
    lake: Lake,
    ledger: Ledger,
    names: Names,
    run: Run,
    tables: BTreeMap<TableId, TableCommitter>,
}

/// How long the host waits before it commits a table again that others commit to all the time, in milliseconds.
const BUSY_PAUSE_MS: u32 = 200;

impl PaimonCommitter {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let (settings, context) = (options.settings()?, context());
        let lake = Lake::new(&settings);
        let names = Names::new(&context, "c")?;
        let ledger = Ledger::new(lake.clone(), &context);
        let run = Run { generation: context.generation, newest_generation: context.generation };
        Ok(Self { settings, context, lake, ledger, names, run, tables: BTreeMap::new() })
    }

    /// Makes the items of one epoch visible, table by table; one outcome an item, in order.
    fn settle(&mut self, epoch: u64, lineage: &str, items: &[(Committable, Handover)]) -> Vec<Outcome> {
        let mut by_table: BTreeMap<&TableId, Vec<&Handover>> = BTreeMap::new();
        items.iter().for_each(|(_, handover)| by_table.entry(&handover.table).or_default().push(handover));
        let mut outcomes: BTreeMap<&TableId, Outcome> = BTreeMap::new();
        for (table, handovers) in by_table {
            let published = self.publish(table, epoch, lineage, &handovers);
            outcomes.insert(table, outcome_of(published));
        }
        items.iter().map(|(_, handover)| outcomes[&handover.table].clone()).collect()
    }

    fn publish(&mut self, id: &TableId, epoch: u64, lineage: &str, handovers: &[&Handover]) -> Result<Published> {
        let Self { settings, context, lake, ledger, names, run, tables } = self;
        let table = match tables.get_mut(id) {
            Some(table) => table,
            None => {
                let table = TableCommitter::new(lake.table(id)?, context);
                tables.entry(id.clone()).or_insert(table)
            }
        };
        let published = table.publish(&publish::Epoch { epoch, lineage, run, context, ledger }, handovers, names)?;
        if published == Published::Now {
            table.expire_now_and_then(settings);
        }
        Ok(published)
    }

    /// Settles what a checkpoint holds, epoch by epoch; the marker follows each that is whole.
    fn settle_pending(
        &mut self,
        restored: Option<&Cut>,
        pending: &[Committable],
        progress: &mut Option<Progress>,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; pending.len()];
        let mut epochs: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        pending.iter().enumerate().for_each(|(place, item)| epochs.entry(item.epoch).or_default().push(place));
        for (epoch, places) in epochs {
            let items = places.iter().map(|&place| Ok((pending[place].clone(), Handover::of(&pending[place])?)));
            let items: Vec<_> = items.collect::<Result<_>>()?;
            let cut = restored.filter(|cut| cut.epoch == epoch);
            let cut = cut.or_else(|| items.iter().find_map(|(_, handover)| handover.cut.as_ref())).cloned();
            if progress.as_ref().is_some_and(|progress| progress.cut.epoch >= epoch) {
                cut.as_ref().map_or(Ok(()), |cut| self.ledger.require(cut))?;
                places.iter().for_each(|&place| outcomes[place] = Some(Outcome::AlreadyCommitted));
                continue;
            }
            let lineage = cut.as_ref().map_or("", |cut| cut.lineage.as_str());
            let settled = self.settle(epoch, lineage, &items);
            if let Some(cut) = cut.filter(|_| settled.iter().all(is_visible)) {
                self.advance(&cut, progress)?;
            }
            places.iter().zip(settled).for_each(|(&place, outcome)| outcomes[place] = Some(outcome));
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Looks at a table that is to be written in this run: one that had rows must have them still.
    fn meet(&mut self, folder: &TableFolder) -> Result<()> {
        let new = || TableCommitter::new(folder.clone(), &self.context);
        let table = self.tables.entry(folder.id.clone()).or_insert_with(new);
        if table.shown.is_some_and(|shown| shown > 0) {
            return Ok(());
        }
        let history = table.look()?;
        table.require_rows(&history, &self.ledger)
    }

    fn advance(&mut self, cut: &Cut, progress: &mut Option<Progress>) -> Result<()> {
        self.ledger.put(cut)?;
        *progress = Some(Progress { pipeline: self.context.pipeline.clone(), cut: cut.clone() });
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn expire_for_tests(&mut self, table: &TableId, settings: &Settings) -> Result<()> {
        let mut table = TableCommitter::new(self.lake.table(table)?, &self.context);
        let partitioning = table.partitioning()?;
        expire::expire(&table.folder, &partitioning, table.commit_user(), settings)
    }

    /// Looks at every table: none may show an epoch beyond the marker. Removes what earlier runs left; answers the
    /// highest sequence number of all.
    fn inspect(&mut self, marker_before: u64, progress: u64) -> Result<i64> {
        let mut max_sequence = 0;
        for id in self.ledger.tables()? {
            let mut table = match self.tables.remove(&id) {
                Some(table) => table,
                None => TableCommitter::new(self.lake.table(&id)?, &self.context),
            };
            let history = table.look()?;
            max_sequence = max_sequence.max(history.max_sequence);
            let shown = table.shown.and_then(|shown| u64::try_from(shown).ok());
            if let Some(shown) = shown.filter(|&shown| shown > progress) {
                let message = format!(
                    "table {id} shows epoch {shown} of this pipeline, but the newest whole epoch of the warehouse {} is \
                     {progress} and no checkpoint holds a later one: start from the checkpoint that made it, or roll the \
                     table back",
                    self.lake.name()
                );
                return Err(rival::final_stop("partly-visible", message).with_table(&id));
            }
            let removed = clean::remove_orphans(
                &mut table,
                history.newest.as_ref(),
                &self.names,
                &clean::Bounds { generation: self.run.generation, marker_before, progress },
            )?;
            counter_add("paimon_orphans_removed_total", removed as u64);
            self.tables.insert(id, table);
        }
        Ok(max_sequence)
    }
}

impl Committer for PaimonCommitter {
    fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered> {
        let mut progress = self.ledger.newest()?;
        if let Some(marker) = &progress {
            let found = marker.cut.generation;
            if restored.is_some() && found > self.run.generation {
                return Err(rival::taken_over(self.run.generation, found));
            }
            // Without a record the host decides whether to start over a target that has a marker.
            self.run.newest_generation = self.run.newest_generation.max(found);
        }
        let marker_before = progress.as_ref().map_or(0, |progress| progress.cut.epoch);
        let is_known = progress.as_ref().is_none_or(|marker| {
            restored.is_some_and(|restored| marker.cut.epoch < restored.epoch || marker.cut == *restored)
        });
        let outcomes = self.settle_pending(restored, pending, &mut progress)?;
        // What lies in a lake that is ahead of the record may be another process's: the host refuses it untouched.
        if is_known && outcomes.iter().all(is_visible) {
            let epoch = progress.as_ref().map_or(0, |progress| progress.cut.epoch);
            let max_sequence = self.inspect(marker_before, epoch)?;
            if let Some(progress) = &mut progress {
                progress.cut.change_seq = progress.cut.change_seq.max(max_sequence);
            }
            self.ledger.prune()?;
        }
        Ok(Recovered { outcomes, progress })
    }

    fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<Outcome>> {
        let started = now_micros();
        if let Some(other) = items.iter().find(|item| item.epoch != at.epoch) {
            let message = format!("epoch {} to be committed with what was prepared in {}", at.epoch, other.epoch);
            return Err(PluginError::bug("mixed-epochs", message));
        }
        let items = items.iter().map(|item| Ok((item.clone(), Handover::of(item)?)));
        let items: Vec<_> = items.collect::<Result<_>>()?;
        let outcomes = self.settle(at.epoch, &at.lineage, &items);
        if outcomes.iter().all(is_visible) {
            self.ledger.put(at)?;
        }
        histogram_record("paimon_commit_seconds", (now_micros() - started) as f64 / 1e6);
        Ok(outcomes)
    }

    fn abort(&mut self, items: &[Committable]) -> Result<()> {
        for item in items {
            let handover = Handover::of(item)?;
            let folder = self.lake.table(&handover.table)?;
            folder.delete_data(&folder.partitioning()?, &handover.entries)?;
        }
        Ok(())
    }

    fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<()> {
        let (SchemaChange::CreateTable, Some(schema)) = (&request.change, &request.after) else {
            let table = request.after.as_ref().or(request.before.as_ref()).map(|schema| schema.table.to_string());
            let (table, change) = (table.unwrap_or_default(), request.change.tag());
            let message = format!("the change {change} of table {table} is not offered by this sink yet");
            return Err(PluginError::config("schema-change", message));
        };
        lake_columns(schema, self.settings.time)?;
        let folder = self.lake.table(&schema.table)?;
        self.meet(&folder)?;
        tables::create(&folder, schema, &self.settings, &self.context)?;
        if let Some(table) = self.tables.get_mut(&schema.table) {
            table.look_anew();
        }
        self.ledger.note_table(&schema.table)
    }
}

fn is_visible(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Committed | Outcome::AlreadyCommitted)
}

fn outcome_of(published: Result<Published>) -> Outcome {
    match published {
        Ok(Published::Now) => Outcome::Committed,
        Ok(Published::Before) => Outcome::AlreadyCommitted,
        Ok(Published::Busy) => Outcome::RetryAfter(BUSY_PAUSE_MS),
        Ok(Published::Lost(what)) => Outcome::Lost(what),
        Err(error) => Outcome::Failed(error),
    }
}
