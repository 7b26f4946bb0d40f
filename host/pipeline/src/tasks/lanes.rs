//! Between source and dispatcher: transforms and routes, in lanes.
//!
//! A table is always in the same lane, so its rows keep their order; what the lanes give is handed on in the order in
//! which the source gave it, whichever lane is done first. So a barrier passes after all that came before it, and rows
//! that several tables send to one target do not overtake each other either.

mod lane;
mod targets;
mod unmet;

use std::sync::Arc;

use cdchost_connector::{Clock, ConnectorError, SourceEvent, TableEvent};
use cdchost_model::{ChangeBatch, Generation, SchemaChange, TableId, TableSchema, key_group};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::lane::Lane;
use self::targets::Targets;
pub use self::unmet::Unmet;
use crate::channel::{Receiver, Sender};
use crate::failure::Failure;
use crate::metrics::PathMetrics;
use crate::retry::Caller;
use crate::setup::PathSetup;
use crate::status::PipelineStatus;

/// Pieces of work that wait for one lane.
const LANE_QUEUE: usize = 16;
/// Events on their way through the lanes, all together.
const ORDER_QUEUE: usize = 64;

/// What a run's lanes stand on.
pub(crate) struct Ground {
    pub(crate) generation: Generation,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: PathMetrics,
    pub(crate) status: watch::Sender<PipelineStatus>,
}

impl Ground {
    fn caller(&self, lane: u32) -> Caller {
        let (clock, retries, status) = (Arc::clone(&self.clock), self.metrics.retries.clone(), self.status.clone());
        Caller { name: format!("transforms and routes, lane {lane}"), clock, retries, status }
    }
}

/// Something for a lane, and where its answer goes.
struct Job {
    work: Work,
    done: oneshot::Sender<Vec<Routed>>,
}

enum Work {
    Table(Arc<TableSchema>),
    Batch(ChangeBatch),
}

/// What a lane gives: for one target, as that of `source`.
struct Routed {
    source: TableId,
    target: TableId,
    part: Part,
}

enum Part {
    /// The table as it comes out, under the source's name.
    Schema(Arc<TableSchema>),
    /// Its rows.
    Rows(ChangeBatch),
}

/// What the order is kept of.
enum Pending {
    /// Passes as it is.
    Event(Box<SourceEvent>),
    /// Comes from a lane.
    Lane(oneshot::Receiver<Vec<Routed>>),
}

/// With the credit of the source's queue, held until what became of it is handed on.
type Ordered = (Pending, Option<OwnedSemaphorePermit>);

/// Opens all transforms and routes, and starts the lanes.
pub(crate) async fn start(
    path: &PathSetup,
    ground: Ground,
    (events, out): (Receiver<SourceEvent>, Sender<SourceEvent>),
    tasks: &mut JoinSet<Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut lanes = Vec::new();
    let count = path.lanes.max(1);
    for number in 0..count {
        let (to, jobs) = mpsc::channel(LANE_QUEUE);
        let lane = Lane::open(path, &ground, (number, count)).await?;
        tasks.spawn(lane.run(jobs));
        lanes.push(to);
    }
    let (order, in_order) = mpsc::channel(ORDER_QUEUE);
    tasks.spawn(spread(events, lanes, order));
    tasks.spawn(gather(in_order, out, Targets::new(ground.status)));
    Ok(())
}

/// Where a table's rows go, as a look at it tells.
#[derive(Clone, Debug)]
pub struct PlannedTable {
    /// The table as the source has it.
    pub source: TableId,
    /// The tables that they go to, as they come out.
    pub targets: Vec<Arc<TableSchema>>,
    /// Rows choose among further tables.
    pub by_row: bool,
    /// Some of these, as far as the options of the routes name them.
    pub choices: Vec<Arc<TableSchema>>,
}

/// What a look at all tables tells.
#[derive(Debug)]
pub struct Plan {
    /// One answer a table.
    pub tables: Vec<Result<PlannedTable, RefusedPlan>>,
    /// What transforms and routes name and no table has.
    pub unmet: Vec<Unmet>,
}

/// A transform or a route that refuses a table, or what becomes of it.
#[derive(Debug)]
pub struct RefusedPlan {
    /// Why.
    pub error: ConnectorError,
    /// `transform` or `route`, and its place among those of its kind; none where none was asked yet.
    pub step: Option<(&'static str, usize)>,
}

/// Shows tables to transforms and routes without moving a row.
pub async fn plan_tables(
    path: &PathSetup,
    tables: &[Arc<TableSchema>],
    clock: Arc<dyn Clock>,
) -> Result<Plan, RefusedPlan> {
    let (status, _) = watch::channel(PipelineStatus::default());
    let (generation, metrics) = (Generation(0), PathMetrics::default());
    let ground = Ground { generation, clock, metrics, status };
    let lane = Lane::open(path, &ground, (0, 1)).await;
    let mut lane = lane.map_err(|failure| RefusedPlan { error: failure.into_error(), step: None })?;
    let mut targets = Targets::new(ground.status);
    let mut planned = Vec::with_capacity(tables.len());
    for table in tables {
        let plan = plan_table(path, &mut lane, &mut targets, table).await;
        planned.push(plan.map_err(|failure| RefusedPlan { error: failure.into_error(), step: lane.asked() }));
    }
    let unmet = unmet::all(path, tables, &lane, planned.iter().all(Result::is_ok));
    Ok(Plan { tables: planned, unmet })
}

/// Refuses transforms and routes that name what no table has. What else is wrong with them shows as they run.
pub(crate) async fn require_met(
    path: &PathSetup,
    tables: &[Arc<TableSchema>],
    clock: &Arc<dyn Clock>,
) -> Result<(), Failure> {
    if path.is_plain() || tables.is_empty() {
        return Ok(());
    }
    let plan = plan_tables(path, tables, Arc::clone(clock)).await.map_err(|refused| refused.error)?;
    if plan.unmet.is_empty() { Ok(()) } else { Err(unmet::refusal(&plan.unmet).into()) }
}

async fn plan_table(
    path: &PathSetup,
    lane: &mut Lane,
    targets: &mut Targets,
    table: &Arc<TableSchema>,
) -> Result<PlannedTable, Failure> {
    let mut schemas = Vec::new();
    for Routed { source, target, part } in lane.table(Arc::clone(table)).await? {
        let Part::Schema(schema) = part else { continue };
        targets.admit(&source, &target, &schema)?;
        schemas.extend(targets.schema(&target).cloned());
    }
    let (mut by_row, mut choices) = (false, Vec::new());
    for (place, schema) in lane.choosers(&table.table) {
        by_row = true;
        let named = path.routes.get(place).map_or(&[][..], |route| &route.targets);
        choices.extend(named.iter().map(|target| Arc::new(TableSchema { table: target.clone(), ..schema.clone() })));
    }
    Ok(PlannedTable { source: table.table.clone(), targets: schemas, by_row, choices })
}

/// Hands each event to its lane.
async fn spread(
    mut events: Receiver<SourceEvent>,
    lanes: Vec<mpsc::Sender<Job>>,
    order: mpsc::Sender<Ordered>,
) -> Result<(), Failure> {
    loop {
        let held = events.recv().await.ok_or(Failure::Closed)?;
        let work = match held.message {
            SourceEvent::Batch(batch) => Ok(Work::Batch(batch)),
            SourceEvent::Table(TableEvent { change: SchemaChange::CreateTable, after: Some(schema), .. }) => {
                Ok(Work::Table(schema))
            }
            other => Err(other),
        };
        let pending = match work {
            Ok(work) => {
                let (done, answer) = oneshot::channel();
                let lane = lane_of(work.table(), lanes.len());
                lanes[lane].send(Job { work, done }).await.map_err(|_| Failure::Closed)?;
                Pending::Lane(answer)
            }
            Err(event) => Pending::Event(Box::new(event)),
        };
        order.send((pending, held.credit)).await.map_err(|_| Failure::Closed)?;
    }
}

/// Hands on what the lanes give, in order.
async fn gather(
    mut in_order: mpsc::Receiver<Ordered>,
    out: Sender<SourceEvent>,
    mut targets: Targets,
) -> Result<(), Failure> {
    loop {
        let (pending, _credit) = in_order.recv().await.ok_or(Failure::Closed)?;
        let routed = match pending {
            Pending::Event(event) => {
                out.send_control(*event).await?;
                continue;
            }
            Pending::Lane(answer) => answer.await.map_err(|_| Failure::Closed)?,
        };
        for Routed { source, target, part } in routed {
            let (schema, rows) = match part {
                Part::Schema(schema) => (schema, None),
                Part::Rows(rows) => (Arc::clone(rows.schema()), Some(rows)),
            };
            if let Some(event) = targets.admit(&source, &target, &schema)? {
                out.send_control(SourceEvent::Table(event)).await?;
            }
            if let Some(rows) = rows {
                let rows = targets.rows(&target, rows)?;
                let bytes = rows.bytes();
                out.send_rows(SourceEvent::Batch(rows), bytes).await?;
            }
        }
    }
}

impl Work {
    fn table(&self) -> &TableId {
        match self {
            Self::Table(schema) => &schema.table,
            Self::Batch(batch) => &batch.schema().table,
        }
    }
}

/// Which of so many lanes a table is in.
fn lane_of(table: &TableId, lanes: usize) -> usize {
    key_group(format!("{}\0{}", table.database, table.table).as_bytes()) as usize % lanes
}

#[cfg(test)]
mod tests;
