//! Export `route` as a [`Router`].

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_connector::{ConnectorError, RouteConnector, Router, RowTargets, TableRoute};
use cdchost_model::{ChangeBatch, Generation, TableId, TableSchema};

use super::fault::Given;
use super::plans::{Plans, handed};
use super::{Instance, Site};
use crate::bindings::v0_1::cdchost::plugin::types::TableIdResult;
use crate::bindings::v0_1::exports::cdchost::plugin::route::TableRoute as Told;
use crate::convert::{SchemaParts, TablePlan};
use crate::imports::Place;
use crate::limits::{NAME_BYTES_MAX, TARGETS_MAX};

/// See [`crate::Plugin::route`].
#[derive(Debug)]
pub(crate) struct PluginRouteConnector(Arc<Site>);

impl PluginRouteConnector {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self(site)
    }
}

#[async_trait]
impl RouteConnector for PluginRouteConnector {
    fn id(&self) -> &str {
        self.0.id()
    }

    async fn open(&self, generation: Generation, lane: u32, lanes: u32) -> Result<Box<dyn Router>, ConnectorError> {
        let place = Place { subtask: lane, parallelism: lanes, generation: generation.0 };
        let mut instance = Instance::start(Arc::clone(&self.0), place).await?;
        let opened = instance.call("route.open", |live| Box::pin(live.guest.route().call_open(&mut live.store)));
        opened.await?;
        Ok(Box::new(PluginRouter { instance, plans: Plans::default() }))
    }
}

/// One instance, and what it wants to see of each table that it routes by row.
struct PluginRouter {
    instance: Instance,
    plans: Plans<TablePlan>,
}

#[async_trait]
impl Router for PluginRouter {
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<TableRoute, ConnectorError> {
        const FUNCTION: &str = "route.on-schema";
        let (owned, handle) = (Arc::clone(schema), self.plans.next_handle());
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let parts = SchemaParts::new(&owned);
                live.guest.route().call_on_schema(&mut live.store, parts.wit(handle)).await
            })
        });
        let route = match called.await? {
            Told::Drop => Ok(TableRoute::Drop),
            Told::To(tables) if tables.is_empty() => Err("routes a table to no table, which is drop".to_owned()),
            Told::To(tables) => targets(tables).map(TableRoute::To),
            Told::ByRow((columns, meta)) => TablePlan::new(handle, columns, meta, schema).map(|plan| {
                self.plans.put(schema, plan);
                TableRoute::ByRow
            }),
        };
        route.map_err(|how| self.instance.broke(FUNCTION, &how).with_table(schema.table.clone()))
    }

    async fn route_rows(&mut self, batch: &ChangeBatch) -> Result<RowTargets, ConnectorError> {
        const FUNCTION: &str = "route.route-rows";
        let schema = batch.schema();
        let faults = &self.instance.faults;
        let handed = handed(batch, self.plans.of(schema, faults)?, faults)?;
        let given = Given::of(batch, handed.bytes());
        let called = self.instance.call_for_rows(FUNCTION, handed.rows(), move |live| {
            Box::pin(async move {
                let (columns, meta) = handed.columns();
                live.guest.route().call_route_rows(&mut live.store, handed.wit(&columns, &meta)).await
            })
        });
        let (tables, of_row) = called.await.map_err(|error| given.named_in(error))?;
        let checked = row_targets(tables, of_row, batch.rows());
        checked.map_err(|how| self.instance.broke(FUNCTION, &how).with_table(schema.table.clone()))
    }
}

/// One known target a row.
fn row_targets(tables: Vec<TableIdResult>, of_row: Vec<u32>, rows: usize) -> Result<RowTargets, String> {
    if of_row.len() != rows {
        return Err(format!("gives {} targets for {rows} rows", of_row.len()));
    }
    if let Some(beyond) = of_row.iter().find(|&&place| place as usize >= tables.len()) {
        return Err(format!("routes a row to target {beyond} of {}", tables.len()));
    }
    Ok(RowTargets { targets: targets(tables)?, of_row })
}

/// Names that can be those of tables, none twice.
fn targets(tables: Vec<TableIdResult>) -> Result<Vec<TableId>, String> {
    if tables.len() > TARGETS_MAX {
        return Err(format!("names {} targets at once, at most {TARGETS_MAX} are taken", tables.len()));
    }
    let mut targets = Vec::with_capacity(tables.len());
    for TableIdResult { database, table } in tables {
        let fits = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
        if !fits(&database) || !fits(&table) {
            return Err("names a target that can be no table".into());
        }
        let target = TableId::new(database, table);
        if targets.contains(&target) {
            return Err(format!("names the target {target} twice"));
        }
        targets.push(target);
    }
    Ok(targets)
}
