//! Export `transform` as a [`Transform`].

use std::sync::Arc;

use async_trait::async_trait;
use cdchost_connector::{ConnectorError, Transform, TransformConnector};
use cdchost_model::{BatchError, ChangeBatch, Edit, Generation, TableSchema};

use super::fault::Given;
use super::plans::{Plans, handed};
use super::{Instance, Site};
use crate::bindings::v0_1::exports::cdchost::plugin::transform::Outcome;
use crate::convert::{self, SchemaParts, TransformPlan};
use crate::imports::Place;

/// See [`crate::Plugin::transform`].
#[derive(Debug)]
pub(crate) struct PluginTransformConnector(Arc<Site>);

impl PluginTransformConnector {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self(site)
    }
}

#[async_trait]
impl TransformConnector for PluginTransformConnector {
    fn id(&self) -> &str {
        self.0.id()
    }

    async fn open(&self, generation: Generation, lane: u32, lanes: u32) -> Result<Box<dyn Transform>, ConnectorError> {
        let place = Place { subtask: lane, parallelism: lanes, generation: generation.0 };
        let mut instance = Instance::start(Arc::clone(&self.0), place).await?;
        let opened =
            instance.call("transform.open", |live| Box::pin(live.guest.transform().call_open(&mut live.store)));
        opened.await?;
        Ok(Box::new(PluginTransform { instance, plans: Plans::default() }))
    }
}

/// One instance, and what it plans with each table at the version that it was last told.
struct PluginTransform {
    instance: Instance,
    plans: Plans<TransformPlan>,
}

const PROCESS: &str = "transform.process";

#[async_trait]
impl Transform for PluginTransform {
    async fn on_schema(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<TableSchema>, ConnectorError> {
        const FUNCTION: &str = "transform.on-schema";
        let (owned, handle) = (Arc::clone(schema), self.plans.next_handle());
        let called = self.instance.call(FUNCTION, move |live| {
            Box::pin(async move {
                let parts = SchemaParts::new(&owned);
                live.guest.transform().call_on_schema(&mut live.store, parts.wit(handle)).await
            })
        });
        let told = called.await?;
        let plan = TransformPlan::new(handle, told, schema);
        let plan = plan.map_err(|how| self.instance.broke(FUNCTION, &how).with_table(schema.table.clone()))?;
        let output = Arc::clone(plan.projection.output());
        self.plans.put(schema, plan);
        Ok(output)
    }

    async fn process(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch, ConnectorError> {
        let schema = batch.schema();
        let faults = &self.instance.faults;
        let plan = self.plans.of(schema, faults)?;
        if plan.bypass {
            let passed = plan.projection.edit(batch, Edit::default());
            return passed.map_err(|error| faults.unhandable(&schema.table, &error.to_string()));
        }
        let handed = handed(batch, &plan.table, faults)?;
        let given = Given::of(batch, handed.bytes());
        let called = self.instance.call_for_rows(PROCESS, handed.rows(), move |live| {
            Box::pin(async move {
                let (columns, meta) = handed.columns();
                live.guest.transform().call_process(&mut live.store, handed.wit(&columns, &meta)).await
            })
        });
        let outcome = called.await.map_err(|error| given.named_in(error))?;
        let plan = self.plans.of(schema, &self.instance.faults)?;
        let edited = made(plan, batch, outcome);
        edited.map_err(|how| self.instance.broke(PROCESS, &how).with_table(schema.table.clone()))
    }
}

/// The batch that an outcome makes of another; an error says what the plugin does, as in "it ...".
fn made(plan: &TransformPlan, batch: &ChangeBatch, outcome: Outcome) -> Result<ChangeBatch, String> {
    let gives = |error: BatchError| format!("gives what does not fit: {error}");
    match outcome {
        Outcome::Unchanged => plan.projection.edit(batch, Edit::default()).map_err(gives),
        Outcome::Edited(edit) => {
            let edit = convert::edit(edit, &plan.computed(), batch.rows())?;
            plan.projection.edit(batch, edit).map_err(gives)
        }
        Outcome::Replaced(with) => {
            let with = convert::replacement(with, plan.projection.output())?;
            plan.projection.replace(batch, with).map_err(gives)
        }
    }
}
