//! The host's side of transforms and routes, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::rows::{Rows, Table};
use super::world::{Instance, World};
use crate::data::RawColumn;
use crate::{
    Batch, Edit, Field, Op, OutField, Plan, PluginError, Processed, ReadPlan, Replacement, Result, Route, RowTargets,
    Schema, TableId, TableRoute, Transform, json_lines,
};

/// Drives one instance of a transform.
#[derive(Debug)]
pub struct TransformHarness<T> {
    transform: T,
    world: World,
    instance: Instance,
    plans: BTreeMap<TableId, Planned>,
}

#[derive(Clone, Debug)]
struct Planned {
    plan: Plan,
    reads: Arc<ReadPlan>,
    output: Arc<Schema>,
}

impl<T: Transform> TransformHarness<T> {
    /// An instance with these options.
    pub fn open(config: Value) -> Result<Self> {
        let (world, instance) = (World::new(&[]), Instance::new(config));
        let transform = world.run(&instance, || crate::runtime::config().and_then(T::open))?;
        Ok(Self { transform, world, instance, plans: BTreeMap::new() })
    }

    /// Shows it a table; gives the table as it comes out.
    pub fn output(&mut self, table: &Table) -> Result<Schema> {
        let schema = Arc::clone(table.schema());
        let plan = self.world.run(&self.instance, || self.transform.on_schema(&schema))?;
        let output = output(&schema, &plan)?;
        let reads = Arc::new(ReadPlan { columns: plan.reads.clone(), meta: plan.meta });
        let planned = Planned { plan, reads, output: Arc::new(output.clone()) };
        self.plans.insert(schema.table.clone(), planned);
        Ok(output)
    }

    /// Hands it rows of a table that it was shown, and gives what comes out, each row as a JSON line. Halves of updates
    /// are as the transform leaves them: the host mends pairs afterwards.
    pub fn process(&mut self, rows: Rows) -> Result<Vec<String>> {
        let planned = self.plans.get(&rows.schema().table).expect("output comes before process").clone();
        let (ops, all) = (rows.ops(), rows.raw_columns());
        let unchanged = Processed::Edited(Edit::default());
        let processed = if planned.plan.bypass {
            unchanged
        } else {
            let batch = rows.batch(&planned.reads)?;
            match self.world.run(&self.instance, || self.transform.process(batch))? {
                Processed::Unchanged => unchanged,
                other => other,
            }
        };
        match processed {
            Processed::Replaced(Replacement { ops: own, columns, origins }) => {
                let known = origins.iter().all(|&origin| (origin as usize) < ops.len());
                if origins.len() != own.len() || !known || !origins.is_sorted() {
                    return Err(broken("its origins are not rows of the batch, in order".into()));
                }
                lines(&planned.output, &own, columns, None)
            }
            Processed::Edited(Edit { keep, ops: others, computed }) => {
                let columns = columns(&planned.plan, all, computed)?;
                lines(&planned.output, &others.unwrap_or(ops), columns, keep)
            }
            Processed::Unchanged => unreachable!("it was made an empty edit"),
        }
    }
}

/// Drives one instance of a route.
#[derive(Debug)]
pub struct RouteHarness<R> {
    route: R,
    world: World,
    instance: Instance,
    reads: BTreeMap<TableId, Arc<ReadPlan>>,
}

impl<R: Route> RouteHarness<R> {
    /// An instance with these options.
    pub fn open(config: Value) -> Result<Self> {
        let (world, instance) = (World::new(&[]), Instance::new(config));
        let route = world.run(&instance, || crate::runtime::config().and_then(R::open))?;
        Ok(Self { route, world, instance, reads: BTreeMap::new() })
    }

    /// Shows it a table.
    pub fn table(&mut self, table: &Table) -> Result<TableRoute> {
        let told = self.world.run(&self.instance, || self.route.on_schema(table.schema()))?;
        if let TableRoute::ByRow(reads) = &told {
            self.reads.insert(table.schema().table.clone(), Arc::new(reads.clone()));
        }
        Ok(told)
    }

    /// Hands it rows of a table that it routes by row; one target a row.
    pub fn rows(&mut self, rows: Rows) -> Result<Vec<TableId>> {
        let reads = self.reads.get(&rows.schema().table).expect("the table is routed by row");
        let batch = rows.batch(reads)?;
        let count = batch.rows();
        let RowTargets { targets, of_row } = self.world.run(&self.instance, || self.route.route_rows(batch))?;
        let found: Option<Vec<_>> = of_row.iter().map(|&place| targets.get(place as usize).cloned()).collect();
        let found = found.ok_or_else(|| broken("a row goes to a target that is not named".into()))?;
        if found.len() == count { Ok(found) } else { Err(broken(format!("{} targets for {count} rows", found.len()))) }
    }
}

/// The table as it comes out.
fn output(schema: &Schema, plan: &Plan) -> Result<Schema> {
    let place =
        |place: u32| schema.fields.get(place as usize).cloned().ok_or_else(|| broken(format!("column {place}")));
    let field = |column: &OutField| -> Result<Field> {
        Ok(match column {
            OutField::Pass(from) => place(*from)?,
            OutField::Renamed(from, name) => Field { name: name.clone(), ..place(*from)? },
            OutField::Computed(field) => field.clone(),
        })
    };
    let fields: Vec<Field> = plan.output.iter().map(field).collect::<Result<_>>()?;
    let key = |named: &Option<Vec<String>>, of_input: &[u32]| -> Result<Vec<u32>> {
        let at = |found: Option<usize>, what: &str| {
            let found = found.and_then(|place| u32::try_from(place).ok());
            found.ok_or_else(|| broken(format!("key column {what} does not come out")))
        };
        match named {
            Some(names) => names.iter().map(|name| at(fields.iter().position(|f| f.name == *name), name)).collect(),
            None => {
                let passes = |key: u32| {
                    move |column: &OutField| match column {
                        OutField::Pass(from) | OutField::Renamed(from, _) => *from == key,
                        OutField::Computed(_) => false,
                    }
                };
                of_input.iter().map(|&key| at(plan.output.iter().position(passes(key)), &key.to_string())).collect()
            }
        }
    };
    let primary_key = key(&plan.primary_key, &schema.primary_key)?;
    let partition_key = key(&plan.partition_key, &schema.partition_key)?;
    let mut options = schema.options.clone();
    options.retain(|(name, _)| plan.options.iter().all(|(other, _)| other != name));
    options.extend(plan.options.iter().cloned());
    Ok(Schema { table: schema.table.clone(), version: schema.version, fields, primary_key, partition_key, options })
}

/// All columns of the output.
fn columns(plan: &Plan, input: Vec<RawColumn>, computed: Vec<RawColumn>) -> Result<Vec<RawColumn>> {
    let mut computed = computed.into_iter();
    let columns = plan.output.iter().map(|column| match column {
        OutField::Pass(from) | OutField::Renamed(from, _) => input.get(*from as usize).cloned(),
        OutField::Computed(_) => computed.next(),
    });
    let columns = columns.collect::<Option<Vec<_>>>().ok_or_else(|| broken("a computed column is missing".into()))?;
    if computed.next().is_some() { Err(broken("a computed column was not planned".into())) } else { Ok(columns) }
}

/// The rows that are kept, as JSON lines.
fn lines(output: &Arc<Schema>, ops: &[Op], columns: Vec<RawColumn>, keep: Option<Vec<bool>>) -> Result<Vec<String>> {
    if keep.as_ref().is_some_and(|keep| keep.len() != ops.len()) {
        return Err(broken("keep has another length than the batch".into()));
    }
    let ops: Vec<u8> = ops.iter().map(|&op| op as u8).collect();
    let batch = Batch::new(Arc::clone(output), Arc::new(ReadPlan::all(output)), ops, columns, Vec::new())?;
    let mut text = Vec::new();
    json_lines::encode(&batch, &[], &mut text)?;
    let text = String::from_utf8(text).map_err(|_| broken("lines that are no text".into()))?;
    let kept = |row: usize| keep.as_ref().is_none_or(|keep| keep[row]);
    Ok(text.lines().enumerate().filter(|(row, _)| kept(*row)).map(|(_, line)| line.to_owned()).collect())
}

fn broken(what: String) -> PluginError {
    PluginError::bug("contract-broken", what)
}
