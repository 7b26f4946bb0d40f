//! Calls from the host, handed to the author's [`Route`].

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::super::bindings::cdchost::plugin::types;
use super::super::bindings::metadata::exports::cdchost::plugin::metadata;
use super::super::bindings::route::exports::cdchost::plugin::route;
use super::super::convert;
use super::{Handles, manifest_out, not_open};
use crate::{Batch, PluginError, Route, RowTargets, TableId, TableRoute, runtime};

/// The component's exports for a route.
#[derive(Debug)]
pub struct RouteExports<R>(PhantomData<R>);

/// The instance, with its type forgotten: a thread-local cannot be generic.
trait Open {
    fn on_schema(&mut self, schema: &Arc<crate::Schema>) -> crate::Result<TableRoute>;
    fn route_rows(&mut self, batch: Batch) -> crate::Result<RowTargets>;
}

impl<R: Route> Open for R {
    fn on_schema(&mut self, schema: &Arc<crate::Schema>) -> crate::Result<TableRoute> {
        Route::on_schema(self, schema)
    }

    fn route_rows(&mut self, batch: Batch) -> crate::Result<RowTargets> {
        Route::route_rows(self, batch)
    }
}

thread_local! {
    // The contract makes one instance a memory.
    static OPEN: RefCell<Option<(Box<dyn Open>, Handles)>> = const { RefCell::new(None) };
}

fn opened<T>(call: impl FnOnce(&mut dyn Open, &mut Handles) -> crate::Result<T>) -> Result<T, types::PluginError> {
    OPEN.with_borrow_mut(|slot| match slot {
        Some((route, handles)) => call(route.as_mut(), handles).map_err(convert::error_out),
        None => Err(convert::error_out(not_open("route"))),
    })
}

impl<R: Route> metadata::Guest for RouteExports<R> {
    fn describe() -> metadata::Manifest {
        manifest_out(R::manifest())
    }
}

impl<R: Route> route::Guest for RouteExports<R> {
    fn open() -> Result<(), types::PluginError> {
        let route = runtime::config().and_then(R::open).map_err(convert::error_out)?;
        OPEN.set(Some((Box::new(route), Handles::new())));
        Ok(())
    }

    fn on_schema(schema: types::Schema) -> Result<route::TableRoute, types::PluginError> {
        let handle = schema.handle;
        let schema = Arc::new(convert::schema_in(schema).map_err(convert::error_out)?);
        opened(|route, handles| {
            Ok(match route.on_schema(&schema)? {
                TableRoute::To(targets) => route::TableRoute::To(targets.into_iter().map(table_out).collect()),
                TableRoute::ByRow(reads) => {
                    let told = (reads.columns.clone(), convert::row_meta_out(reads.meta));
                    handles.insert(handle, (Arc::clone(&schema), Arc::new(reads)));
                    route::TableRoute::ByRow(told)
                }
                TableRoute::Drop => route::TableRoute::Drop,
            })
        })
    }

    fn route_rows(batch: types::Batch) -> Result<(Vec<types::TableId>, Vec<u32>), types::PluginError> {
        opened(|route, handles| {
            let (schema, plan) = handles.get(&batch.schema).ok_or_else(|| {
                PluginError::bug("schema-not-shown", format!("a batch of schema {}, not shown before", batch.schema))
            })?;
            let (columns, meta) = (convert::columns_in(batch.columns), convert::columns_in(batch.meta));
            let batch = Batch::new(Arc::clone(schema), Arc::clone(plan), batch.ops, columns, meta)?;
            let RowTargets { targets, of_row } = route.route_rows(batch)?;
            Ok((targets.into_iter().map(table_out).collect(), of_row))
        })
    }
}

fn table_out(table: TableId) -> types::TableId {
    types::TableId { database: table.database, table: table.table }
}
