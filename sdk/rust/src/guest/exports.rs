//! Calls from the host, handed to the author's [`Sink`].

mod route;
mod transform;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use super::bindings::cdchost::plugin::{sink_types as terms, types};
use super::bindings::exports::cdchost::plugin::{sink_committer, sink_writer};
use super::bindings::metadata::exports::cdchost::plugin::metadata;
use super::convert;
use crate::{Batch, Committer, PluginError, ReadPlan, Schema, Sink, Writer, runtime};

fn manifest_out(manifest: crate::Manifest) -> metadata::Manifest {
    let crate::Manifest { name, version, description, config_schema, secrets, wants, state_version, reads_state_from } =
        manifest;
    metadata::Manifest { name, version, description, config_schema, secrets, wants, state_version, reads_state_from }
}

pub use route::RouteExports;
pub use transform::TransformExports;

/// The component's exports for a sink.
#[derive(Debug)]
pub struct Exports<S>(PhantomData<S>);

/// Schema and plan of each handle that the host has named.
type Handles = BTreeMap<u32, (Arc<Schema>, Arc<ReadPlan>)>;

thread_local! {
    // The contract makes one instance a memory: a committer or a writer, never two of a kind.
    static COMMITTER: RefCell<Option<Box<dyn Committer>>> = const { RefCell::new(None) };
    static WRITER: RefCell<Option<(Box<dyn Writer>, Handles)>> = const { RefCell::new(None) };
}

fn committer<T>(call: impl FnOnce(&mut dyn Committer) -> crate::Result<T>) -> Result<T, types::PluginError> {
    COMMITTER.with_borrow_mut(|slot| match slot {
        Some(committer) => call(committer.as_mut()).map_err(convert::error_out),
        None => Err(convert::error_out(not_open("committer"))),
    })
}

fn writer<T>(call: impl FnOnce(&mut dyn Writer, &mut Handles) -> crate::Result<T>) -> Result<T, types::PluginError> {
    WRITER.with_borrow_mut(|slot| match slot {
        Some((writer, handles)) => call(writer.as_mut(), handles).map_err(convert::error_out),
        None => Err(convert::error_out(not_open("writer"))),
    })
}

fn not_open(half: &str) -> PluginError {
    PluginError::bug("not-open", format!("the {half} was called before it was opened"))
}

impl<S: Sink> metadata::Guest for Exports<S> {
    fn describe() -> metadata::Manifest {
        manifest_out(S::manifest())
    }
}

impl<S: Sink> sink_committer::Guest for Exports<S> {
    fn open() -> Result<terms::Capabilities, types::PluginError> {
        let (committer, capabilities) = runtime::config().and_then(S::committer).map_err(convert::error_out)?;
        COMMITTER.set(Some(Box::new(committer)));
        Ok(convert::capabilities_out(capabilities))
    }

    fn recover(
        restored: Option<terms::Cut>,
        pending: Vec<terms::Committable>,
    ) -> Result<(Vec<terms::Outcome>, Option<terms::Progress>), types::PluginError> {
        let (restored, pending) = (restored.map(convert::cut_in), convert::committables_in(pending));
        let recovered = committer(|committer| committer.recover(restored.as_ref(), &pending))?;
        let outcomes = recovered.outcomes.into_iter().map(convert::outcome_out).collect();
        Ok((outcomes, recovered.progress.map(convert::progress_out)))
    }

    fn apply_schema_change(
        id: String,
        at: terms::Cut,
        before: Option<types::Schema>,
        change: types::SchemaChange,
        after: Option<types::Schema>,
    ) -> Result<(), types::PluginError> {
        let request = convert::request_in(id, at, before, change, after).map_err(convert::error_out)?;
        committer(|committer| committer.apply_schema_change(&request))
    }

    fn purge_older(table: types::Schema, below: i64) -> Result<(), types::PluginError> {
        let table = convert::schema_in(table).map_err(convert::error_out)?;
        committer(|committer| committer.purge_older(&table, below))
    }

    fn commit(at: terms::Cut, items: Vec<terms::Committable>) -> Result<Vec<terms::Outcome>, types::PluginError> {
        let (at, items) = (convert::cut_in(at), convert::committables_in(items));
        let outcomes = committer(|committer| committer.commit(&at, &items))?;
        Ok(outcomes.into_iter().map(convert::outcome_out).collect())
    }

    fn abort(items: Vec<terms::Committable>) -> Result<(), types::PluginError> {
        let items = convert::committables_in(items);
        committer(|committer| committer.abort(&items))
    }

    fn on_savepoint(id: String, at: terms::Cut) -> Result<(), types::PluginError> {
        let at = convert::cut_in(at);
        committer(|committer| committer.on_savepoint(&id, &at))
    }

    fn roll_back(id: String) -> Result<(), types::PluginError> {
        committer(|committer| committer.roll_back(&id))
    }

    fn maintain() -> Result<bool, types::PluginError> {
        committer(|committer| committer.maintain())
    }

    fn close() {
        if let Some(mut committer) = COMMITTER.take() {
            committer.close();
        }
    }
}

impl<S: Sink> sink_writer::Guest for Exports<S> {
    fn open(restored: Vec<terms::Blob>) -> Result<(), types::PluginError> {
        let restored = restored.into_iter().map(convert::blob_in).collect();
        let options = runtime::config().map_err(convert::error_out)?;
        let writer = S::writer(options, restored).map_err(convert::error_out)?;
        WRITER.set(Some((Box::new(writer), Handles::new())));
        Ok(())
    }

    fn on_schema(schema: types::Schema) -> Result<(Vec<u32>, types::RowMeta), types::PluginError> {
        let handle = schema.handle;
        let schema = Arc::new(convert::schema_in(schema).map_err(convert::error_out)?);
        writer(|writer, handles| {
            let plan = writer.on_schema(&schema)?;
            let answer = (plan.columns.clone(), convert::row_meta_out(plan.meta));
            handles.insert(handle, (Arc::clone(&schema), Arc::new(plan)));
            Ok(answer)
        })
    }

    fn write(batch: types::Batch) -> Result<(), types::PluginError> {
        writer(|writer, handles| {
            let (schema, plan) = handles.get(&batch.schema).ok_or_else(|| {
                PluginError::bug("schema-not-shown", format!("a batch of schema {}, not shown before", batch.schema))
            })?;
            let (columns, meta) = (convert::columns_in(batch.columns), convert::columns_in(batch.meta));
            writer.write(Batch::new(Arc::clone(schema), Arc::clone(plan), batch.ops, columns, meta)?)
        })
    }

    fn flush(table: types::TableId) -> Result<(), types::PluginError> {
        let table = convert::table_in(table);
        writer(|writer, _| writer.flush(&table))
    }

    fn prepare_commit(at: terms::Cut) -> Result<Vec<terms::Committable>, types::PluginError> {
        let at = convert::cut_in(at);
        let items = writer(|writer, _| writer.prepare_commit(&at))?;
        Ok(items.into_iter().map(convert::committable_out).collect())
    }

    fn save_state() -> Result<terms::Blob, types::PluginError> {
        writer(|writer, _| writer.save_state()).map(convert::blob_out)
    }

    fn close(discard: bool) {
        if let Some((mut writer, _)) = WRITER.take() {
            writer.close(discard);
        }
    }
}
