//! Calls from the host, handed to the author's [`Transform`].

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::super::bindings::cdchost::plugin::types;
use super::super::bindings::metadata::exports::cdchost::plugin::metadata;
use super::super::bindings::transform::exports::cdchost::plugin::transform;
use super::super::convert;
use super::{Handles, manifest_out, not_open};
use crate::data::{RawColumn, bitmap};
use crate::{Batch, Edit, OutField, Plan, PluginError, Processed, ReadPlan, Replacement, Transform, runtime};

/// The component's exports for a transform.
#[derive(Debug)]
pub struct TransformExports<T>(PhantomData<T>);

/// The instance, with its type forgotten: a thread-local cannot be generic.
trait Open {
    fn on_schema(&mut self, schema: &Arc<crate::Schema>) -> crate::Result<Plan>;
    fn process(&mut self, batch: Batch) -> crate::Result<Processed>;
}

impl<T: Transform> Open for T {
    fn on_schema(&mut self, schema: &Arc<crate::Schema>) -> crate::Result<Plan> {
        Transform::on_schema(self, schema)
    }

    fn process(&mut self, batch: Batch) -> crate::Result<Processed> {
        Transform::process(self, batch)
    }
}

thread_local! {
    // The contract makes one instance a memory.
    static OPEN: RefCell<Option<(Box<dyn Open>, Handles)>> = const { RefCell::new(None) };
}

fn opened<R>(call: impl FnOnce(&mut dyn Open, &mut Handles) -> crate::Result<R>) -> Result<R, types::PluginError> {
    OPEN.with_borrow_mut(|slot| match slot {
        Some((transform, handles)) => call(transform.as_mut(), handles).map_err(convert::error_out),
        None => Err(convert::error_out(not_open("transform"))),
    })
}

impl<T: Transform> metadata::Guest for TransformExports<T> {
    fn describe() -> metadata::Manifest {
        manifest_out(T::manifest())
    }
}

impl<T: Transform> transform::Guest for TransformExports<T> {
    fn open() -> Result<(), types::PluginError> {
        let transform = runtime::config().and_then(T::open).map_err(convert::error_out)?;
        OPEN.set(Some((Box::new(transform), Handles::new())));
        Ok(())
    }

    fn on_schema(schema: types::Schema) -> Result<transform::Plan, types::PluginError> {
        let handle = schema.handle;
        let schema = Arc::new(convert::schema_in(schema).map_err(convert::error_out)?);
        opened(|transform, handles| {
            let plan = transform.on_schema(&schema)?;
            let reads = ReadPlan { columns: plan.reads.clone(), meta: plan.meta };
            handles.insert(handle, (Arc::clone(&schema), Arc::new(reads)));
            Ok(plan_out(plan))
        })
    }

    fn process(batch: types::Batch) -> Result<transform::Outcome, types::PluginError> {
        opened(|transform, handles| {
            let (schema, plan) = handles.get(&batch.schema).ok_or_else(|| {
                PluginError::bug("schema-not-shown", format!("a batch of schema {}, not shown before", batch.schema))
            })?;
            let (columns, meta) = (convert::columns_in(batch.columns), convert::columns_in(batch.meta));
            let batch = Batch::new(Arc::clone(schema), Arc::clone(plan), batch.ops, columns, meta)?;
            transform.process(batch).map(outcome_out)
        })
    }
}

fn plan_out(plan: Plan) -> transform::Plan {
    let output = plan.output.into_iter().map(|column| match column {
        OutField::Pass(place) => transform::OutField::Pass(place),
        OutField::Renamed(place, name) => transform::OutField::Renamed((place, name)),
        OutField::Computed(field) => transform::OutField::Computed(convert::field_out(field)),
    });
    transform::Plan {
        reads: plan.reads,
        meta: convert::row_meta_out(plan.meta),
        output: output.collect(),
        primary_key: plan.primary_key,
        partition_key: plan.partition_key,
        options: plan.options,
        bypass: plan.bypass,
    }
}

fn outcome_out(outcome: Processed) -> transform::Outcome {
    let ops = |ops: Vec<crate::Op>| ops.into_iter().map(|op| op as u8).collect::<Vec<u8>>();
    match outcome {
        Processed::Unchanged => transform::Outcome::Unchanged,
        Processed::Edited(Edit { keep, ops: others, computed }) => transform::Outcome::Edited(transform::Edit {
            keep: keep.map(|keep| bitmap(&keep)),
            ops: others.map(ops),
            computed: columns_out(computed),
        }),
        Processed::Replaced(Replacement { ops: own, columns, origins }) => {
            let rows = u32::try_from(own.len()).expect("a batch has less than 2^32 rows");
            transform::Outcome::Replaced(transform::Replacement {
                rows,
                ops: ops(own),
                columns: columns_out(columns),
                origins,
            })
        }
    }
}

fn columns_out(columns: Vec<RawColumn>) -> Vec<types::Column> {
    let column =
        |RawColumn { null_count, validity, offsets, data }| types::Column { null_count, validity, offsets, data };
    columns.into_iter().map(column).collect()
}
