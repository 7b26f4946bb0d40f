//! The host's side of a sink's life, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::rows::{Rows, Table};
use super::world::{Instance, World};
use crate::runtime::Context;
use crate::{
    Blob, Capabilities, Committable, Committer, Cut, Outcome, PluginError, Progress, ReadPlan, Recovered, Result,
    Schema, SchemaChange, SchemaChangeRequest, Sink, TableId, Writer,
};

/// What the host stores of an epoch before it commits it.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where the epoch ends.
    pub cut: Cut,
    /// What all writers handed over.
    pub items: Vec<Committable>,
    /// What all writers saved.
    pub states: Vec<Blob>,
}

/// What the sink said at the start of a run.
#[derive(Clone, Debug)]
pub struct Started {
    /// What it can do.
    pub capabilities: Capabilities,
    /// One outcome an item of the checkpoint that the run started from.
    pub outcomes: Vec<Outcome>,
    /// How far the target is.
    pub progress: Option<Progress>,
}

/// Drives one sink. What is durable (the world, and the last stored checkpoint) outlives its crashes.
///
/// ```
/// # use cdchost_sdk::harness::{Harness, Table, World};
/// # use cdchost_sdk::{LogicalType, Sink, row};
/// # fn test<MySink: Sink>() -> cdchost_sdk::Result<()> {
/// let orders = Table::new("shop.orders").key("id", LogicalType::Int64);
/// let mut sink = Harness::<MySink>::new(World::new(&["out"]), serde_json::json!({ "store": "out" }));
/// sink.start()?;
/// sink.write(0, orders.rows(1).insert(row![1]))?;
/// let prepared = sink.prepare()?;
/// assert!(sink.world().paths("out").iter().all(|path| !path.contains("part-")));
/// sink.store(&prepared);
/// sink.crash();
/// sink.start()?; // commits what was stored
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Harness<S: Sink> {
    world: World,
    config: Value,
    context: Context,
    secrets: BTreeMap<String, Vec<u8>>,
    stored: Option<Checkpoint>,
    last_epoch: u64,
    running: Option<Running<S>>,
}

struct Running<S: Sink> {
    committer: S::Committer,
    capabilities: Capabilities,
    writers: Vec<OpenWriter<S>>,
    tables: BTreeMap<TableId, Arc<Schema>>,
    change_seq: i64,
}

struct OpenWriter<S: Sink> {
    instance: Instance,
    writer: S::Writer,
    plans: BTreeMap<TableId, (u64, Arc<ReadPlan>)>,
}

impl<S: Sink> std::fmt::Debug for Running<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("writers", &self.writers.len()).finish_non_exhaustive()
    }
}

impl<S: Sink> Harness<S> {
    /// A sink with these options, with one writer, not yet started.
    pub fn new(world: World, config: Value) -> Self {
        let context = Instance::new(Value::Null).context;
        let context = Context { generation: 0, ..context };
        Self { world, config, context, secrets: BTreeMap::new(), stored: None, last_epoch: 0, running: None }
    }

    /// With so many writers from the next start on.
    pub fn with_parallelism(mut self, writers: u32) -> Self {
        self.context.parallelism = writers;
        self
    }

    /// Of this pipeline, from the next start on.
    pub fn with_pipeline(mut self, name: &str) -> Self {
        self.context.pipeline = name.into();
        self
    }

    /// With this secret.
    pub fn with_secret(mut self, option: &str, secret: &[u8]) -> Self {
        self.secrets.insert(option.into(), secret.into());
        self
    }

    /// What it runs in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The run's number; 0 before the first start.
    pub fn generation(&self) -> u64 {
        self.context.generation
    }

    /// The checkpoint that the next run starts from.
    pub fn stored(&self) -> Option<&Checkpoint> {
        self.stored.as_ref()
    }

    /// Starts a run from the last stored checkpoint: a committer that settles what is pending, then the writers.
    /// Ends the run before as a crash does.
    pub fn start(&mut self) -> Result<Started> {
        self.crash();
        self.context.generation += 1;
        let (mut committer, capabilities) = self.committer(self.context.generation)?;
        let restored = self.stored.clone();
        let recovered = self.recover(&mut committer, self.context.generation, restored.as_ref())?;
        let Recovered { outcomes, progress } = recovered;
        require_committed(&outcomes)?;
        let reached = restored.as_ref().map(|stored| stored.cut.epoch).max(progress.as_ref().map(|at| at.cut.epoch));
        self.last_epoch = reached.unwrap_or(0);
        let states = restored.map(|stored| stored.states).unwrap_or_default();
        let writers = (0..self.context.parallelism).map(|subtask| self.open_writer(subtask, &states));
        let writers = writers.collect::<Result<_>>()?;
        let started = Started { capabilities: capabilities.clone(), outcomes, progress };
        let (tables, change_seq) = (BTreeMap::new(), 0);
        self.running = Some(Running { committer, capabilities, writers, tables, change_seq });
        Ok(started)
    }

    /// Hands rows to a writer. A table that was not seen in this run is created first, if the sink creates tables.
    pub fn write(&mut self, subtask: usize, rows: Rows) -> Result<()> {
        self.show(subtask, rows.schema())?;
        let world = self.world.clone();
        let Running { capabilities, writers, change_seq, .. } = self.running();
        let rows = if capabilities.wants_update_before { rows } else { rows.without_before() };
        let writer = &mut writers[subtask];
        let (_, plan) = &writer.plans[&rows.schema().table];
        let batch = rows.batch(plan)?;
        *change_seq = rows.last_change_seq().max(*change_seq);
        let OpenWriter { instance, writer, .. } = writer;
        world.run(instance, || writer.write(batch))
    }

    /// Changes a table: flushes the writers, then tells the committer.
    pub fn change_table(&mut self, before: Option<&Table>, change: SchemaChange, after: Option<&Table>) -> Result<()> {
        let schema = |table: Option<&Table>| table.map(|table| Arc::clone(table.schema()));
        let (before, after) = (schema(before), schema(after));
        if let Some(before) = &before {
            let world = self.world.clone();
            for open in &mut self.running().writers {
                world.run(&open.instance, || open.writer.flush(&before.table))?;
            }
        }
        self.apply(before, change, after)
    }

    /// Prepares the next epoch at all writers. It is durable in the target and invisible.
    pub fn prepare(&mut self) -> Result<Checkpoint> {
        let cut = self.next_cut();
        let world = self.world.clone();
        let mut checkpoint = Checkpoint { cut, items: Vec::new(), states: Vec::new() };
        for open in &mut self.running().writers {
            let items = world.run(&open.instance, || open.writer.prepare_commit(&checkpoint.cut))?;
            for item in &items {
                if (item.epoch, item.generation) != (checkpoint.cut.epoch, checkpoint.cut.generation) {
                    return Err(broken(format!("item {} is not of the epoch and generation prepared", item.key)));
                }
            }
            checkpoint.items.extend(items);
            checkpoint.states.push(world.run(&open.instance, || open.writer.save_state())?);
        }
        Ok(checkpoint)
    }

    /// Makes a prepared epoch durable at the host: from now on it will be committed, whatever happens.
    pub fn store(&mut self, checkpoint: &Checkpoint) {
        self.last_epoch = checkpoint.cut.epoch;
        self.stored = Some(checkpoint.clone());
    }

    /// Commits a stored epoch; fails unless every item is committed.
    pub fn commit(&mut self, checkpoint: &Checkpoint) -> Result<Vec<Outcome>> {
        let (world, instance) = (self.world.clone(), self.instance(self.context.generation, 0));
        let committer = &mut self.running().committer;
        let outcomes = world.run(&instance, || committer.commit(&checkpoint.cut, &checkpoint.items))?;
        require_one_each(&outcomes, checkpoint)?;
        require_committed(&outcomes)?;
        Ok(outcomes)
    }

    /// Commits in a process of its own, as one that was fenced or one that restored might: opened and recovered with
    /// the same items, as run `generation`.
    pub fn commit_elsewhere(&self, generation: u64, checkpoint: &Checkpoint) -> Result<Vec<Outcome>> {
        let (mut committer, _) = self.committer(generation)?;
        self.recover(&mut committer, generation, Some(checkpoint))?;
        let instance = self.instance(generation, 0);
        let outcomes = self.world.run(&instance, || committer.commit(&checkpoint.cut, &checkpoint.items))?;
        require_one_each(&outcomes, checkpoint)?;
        require_committed(&outcomes)?;
        Ok(outcomes)
    }

    /// Prepares, stores and commits.
    pub fn checkpoint(&mut self) -> Result<Checkpoint> {
        let checkpoint = self.prepare()?;
        self.store(&checkpoint);
        self.commit(&checkpoint)?;
        Ok(checkpoint)
    }

    /// Throws a prepared epoch away that was not stored.
    pub fn abort(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let (world, instance) = (self.world.clone(), self.instance(self.context.generation, 0));
        let committer = &mut self.running().committer;
        world.run(&instance, || committer.abort(&checkpoint.items))
    }

    /// One step of maintenance, in an instance of its own; answers whether there is more to do.
    pub fn maintain(&self) -> Result<bool> {
        let (mut committer, _) = self.committer(self.context.generation)?;
        self.world.run(&self.instance(self.context.generation, 0), || committer.maintain())
    }

    /// Ends the run in order: what is not prepared is discarded.
    pub fn close(&mut self) {
        let committer = self.instance(self.context.generation, 0);
        let Some(mut running) = self.running.take() else { return };
        for open in &mut running.writers {
            self.world.run(&open.instance, || open.writer.close(true));
        }
        self.world.run(&committer, || running.committer.close());
    }

    /// Ends the run as a killed process does: nothing is called any more.
    pub fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            // Uploads under way end with the process, in its world.
            let instance = self.instance(self.context.generation, 0);
            self.world.run(&instance, || drop(running));
        }
    }

    /// Starts next from what the other host stored, as a run after its last.
    pub fn resume_from(&mut self, other: &Self) {
        self.crash();
        self.stored = other.stored.clone();
        self.context = other.context.clone();
    }

    fn running(&mut self) -> &mut Running<S> {
        self.running.as_mut().expect("start comes before everything else")
    }

    fn instance(&self, generation: u64, subtask: u32) -> Instance {
        let context = Context { generation, subtask, ..self.context.clone() };
        Instance { context, config: self.config.clone(), secrets: self.secrets.clone() }
    }

    fn committer(&self, generation: u64) -> Result<(S::Committer, Capabilities)> {
        self.world.run(&self.instance(generation, 0), || crate::runtime::config().and_then(S::committer))
    }

    fn recover(
        &self,
        committer: &mut S::Committer,
        generation: u64,
        restored: Option<&Checkpoint>,
    ) -> Result<Recovered> {
        let (cut, items) = match restored {
            Some(checkpoint) => (Some(&checkpoint.cut), checkpoint.items.as_slice()),
            None => (None, [].as_slice()),
        };
        let recovered = self.world.run(&self.instance(generation, 0), || committer.recover(cut, items))?;
        match recovered.outcomes.len() == items.len() {
            true => Ok(recovered),
            false => Err(broken(format!("{} outcomes for {} items", recovered.outcomes.len(), items.len()))),
        }
    }

    fn open_writer(&self, subtask: u32, states: &[Blob]) -> Result<OpenWriter<S>> {
        let instance = self.instance(self.context.generation, subtask);
        let (first, step) = (subtask as usize, self.context.parallelism as usize);
        let restored = states.iter().skip(first).step_by(step).cloned().collect();
        let options = || crate::runtime::config().and_then(|options| S::writer(options, restored));
        let writer = self.world.run(&instance, options)?;
        Ok(OpenWriter { instance, writer, plans: BTreeMap::new() })
    }

    fn show(&mut self, subtask: usize, schema: &Arc<Schema>) -> Result<()> {
        let running = self.running();
        let creates = running.capabilities.schema_changes.iter().any(|tag| tag == SchemaChange::CreateTable.tag());
        if creates && !running.tables.contains_key(&schema.table) {
            self.apply(None, SchemaChange::CreateTable, Some(Arc::clone(schema)))?;
        }
        let world = self.world.clone();
        let open = &mut self.running().writers[subtask];
        if open.plans.get(&schema.table).is_none_or(|(version, _)| *version != schema.version) {
            let plan = world.run(&open.instance, || open.writer.on_schema(schema))?;
            open.plans.insert(schema.table.clone(), (schema.version, Arc::new(plan)));
        }
        Ok(())
    }

    fn apply(&mut self, before: Option<Arc<Schema>>, change: SchemaChange, after: Option<Arc<Schema>>) -> Result<()> {
        let table = after.as_ref().or(before.as_ref()).map(|schema| (schema.table.clone(), schema.version));
        let (table, version) = table.expect("a change has a schema before or after it");
        let id = format!("{table}-{version}-{}", change.tag());
        let (world, instance) = (self.world.clone(), self.instance(self.context.generation, 0));
        let request = SchemaChangeRequest { id, at: self.next_cut(), before, change, after };
        let Running { committer, tables, .. } = self.running();
        world.run(&instance, || committer.apply_schema_change(&request))?;
        match request.after {
            Some(after) => tables.insert(table, after),
            None => tables.remove(&table),
        };
        Ok(())
    }

    fn next_cut(&mut self) -> Cut {
        let (epoch, generation) = (self.last_epoch + 1, self.context.generation);
        let before = self.stored.as_ref().map_or(0, |stored| stored.cut.change_seq);
        Cut {
            epoch,
            generation,
            lineage: "test".into(),
            offset: epoch.to_be_bytes().into(),
            change_seq: self.running().change_seq.max(before),
            path_digest: vec![1; 32],
            tables_digest: vec![2; 32],
            end_of_input: false,
        }
    }
}

fn require_one_each(outcomes: &[Outcome], checkpoint: &Checkpoint) -> Result<()> {
    let (found, items) = (outcomes.len(), checkpoint.items.len());
    if found == items { Ok(()) } else { Err(broken(format!("{found} outcomes for {items} items"))) }
}

/// What the host would retry, or take to a person, ends a test.
fn require_committed(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        match outcome {
            Outcome::Committed | Outcome::AlreadyCommitted => {}
            Outcome::RetryAfter(pause) => {
                return Err(PluginError::remote("retry-after", format!("not yet, again after {pause} ms")));
            }
            Outcome::Lost(what) => return Err(PluginError::remote("lost", format!("lost: {what}"))),
            Outcome::Failed(error) => return Err(error.clone()),
        }
    }
    Ok(())
}

fn broken(what: String) -> PluginError {
    PluginError::bug("contract-broken", what)
}
