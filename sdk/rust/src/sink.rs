//! The contract of a sink: who calls what, when, and what may be repeated.

mod capabilities;
mod change;
mod cut;
mod nothing;

pub use capabilities::{Abilities, Capabilities, Delivery, Ordering};
pub use change::{ColumnPlace, SchemaChange, SchemaChangeRequest};
pub use cut::{Blob, Committable, Cut, Outcome, Progress, Recovered};
pub use nothing::NothingToCommit;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Batch, Manifest, PluginError, ReadPlan, Result, Schema, TableId};

/// A sink: its options and its two halves.
///
/// ```text
/// committer:  committer → [roll_back] → recover → ( apply_schema_change | commit | abort | on_savepoint )* → close     once per sink
/// writer i:   writer → on_schema → ( write* → flush? → prepare_commit → save_state )* → close                        once per subtask
/// ```
///
/// Each instance lives in a memory of its own: committer and writers share nothing but the target and what goes
/// through [`Committable`]s. One call at a time. What an instance keeps in memory is gone after a restart, which may
/// come at any moment; then all begins again from the last durable checkpoint.
pub trait Sink: Sized + 'static {
    /// What stands in the pipeline file for this sink. Make it strict: `#[serde(deny_unknown_fields, rename_all =
    /// "kebab-case")]`; doc comments become the documentation of the options.
    type Options: DeserializeOwned + JsonSchema;
    /// Tables and commits.
    type Committer: Committer;
    /// Data.
    type Writer: Writer;

    /// What the plugin says of itself. Made by [`manifest!`](crate::manifest!).
    fn manifest() -> Manifest;

    /// Makes the committer and says what the sink can do. Nothing in the target changes: this is also called to check
    /// a pipeline file.
    fn committer(options: Self::Options) -> Result<(Self::Committer, Capabilities)>;

    /// Makes a writer, with what writers of this sink saved at the checkpoint that the run starts from, as far as it
    /// falls to this one ([`runtime::context`](crate::runtime::context) says which it is).
    fn writer(options: Self::Options, restored: Vec<Blob>) -> Result<Self::Writer>;
}

/// Tables and commits of one sink; one instance a sink.
pub trait Committer: 'static {
    /// Before any writer opens: settles `pending` as [`Committer::commit`] does (items of several epochs come in epoch
    /// order), removes what this pipeline left of generations **below** the own one beyond `restored`, and says how
    /// far the target is: the newest epoch that is **wholly** visible. May be called again after a failure, also by
    /// another process, with the same items.
    ///
    /// A target that is ahead of `restored` is another run's, on a newer copy of the state, which counts its generations
    /// alike: nothing is removed from it. The host refuses such a run by the progress that is answered.
    fn recover(&mut self, restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered>;

    /// Makes one epoch visible. Called only with items that a durable checkpoint holds, in epoch order, one epoch a
    /// call. Must be repeatable: with the same items, after a crash in its midst, in another process, and by two
    /// processes at once. One outcome an item, in order. An epoch without items is announced too, so that the marker
    /// of progress moves on.
    fn commit(&mut self, at: &Cut, items: &[Committable]) -> Result<Vec<Outcome>>;

    /// Throws prepared work away that no checkpoint holds.
    fn abort(&mut self, items: &[Committable]) -> Result<()>;

    /// Applies a change to the target's table. `request.id` is the same at every replay: keep it in the target, or
    /// make the change such that applying it again does nothing. The writers have been flushed before.
    fn apply_schema_change(&mut self, request: &SchemaChangeRequest) -> Result<()>;

    /// Rows of this table with a change-seq below the given one were not renewed: removes them. Only for sinks that
    /// declare [`Abilities::purges_older`].
    fn purge_older(&mut self, table: &Schema, below: i64) -> Result<()> {
        Err(not_offered(&format!("purge-older, rows below change-seq {below} stay")).with_table(&table.table))
    }

    /// After the commit of an epoch that a savepoint was made of: pins the target's state to it.
    fn on_savepoint(&mut self, _id: &str, _at: &Cut) -> Result<()> {
        Ok(())
    }

    /// Takes the target back to a savepoint, before [`Committer::recover`]. Only for sinks that declare
    /// [`Abilities::rolls_back`].
    fn roll_back(&mut self, id: &str) -> Result<()> {
        Err(not_offered(&format!("roll-back, asked for savepoint {id}")))
    }

    /// Compaction, expiry, clean-up, in an instance of its own, beside commits. Answers whether there is more to do.
    fn maintain(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// The last call.
    fn close(&mut self) {}
}

/// Data of one subtask of a sink; `parallelism` instances a sink.
pub trait Writer: 'static {
    /// Rows of this table and version follow: says which columns and metadata to hand over.
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan>;

    /// Takes rows. On an error nothing of the batch counts as taken, and it may come again: with rows named in the
    /// error, without those.
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// A schema change of this table follows: its rows so far keep the schema that they were written with.
    fn flush(&mut self, _table: &TableId) -> Result<()> {
        Ok(())
    }

    /// Makes all since the last call durable and invisible. Nothing written = no committables. Not repeated: after a
    /// failure the run restarts, and what was half prepared is left to [`Committer::recover`] of a later generation.
    fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>>;

    /// The writer's own state at the cut just prepared; nothing is written between the two.
    fn save_state(&mut self) -> Result<Blob> {
        Ok(Blob::default())
    }

    /// The last call. With `discard`, what is not prepared is thrown away.
    fn close(&mut self, _discard: bool) {}
}

fn not_offered(ability: &str) -> PluginError {
    PluginError::config("ability-not-offered", format!("this sink does not offer {ability}"))
}
