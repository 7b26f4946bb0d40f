//! One lane: its instances of all transforms and routes, and the way of each of its tables through them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, Router, StopClass, TableRoute, Transform};
use cdchost_model::{ChangeBatch, TableId, TableSchema};
use tokio::sync::mpsc;

use super::{Ground, Job, Part, Routed, Work};
use crate::failure::{Failure, bug};
use crate::metrics::PathMetrics;
use crate::refused::whole;
use crate::retry::Caller;
use crate::setup::PathSetup;

/// Tables that one source table's rows may be spread over.
const TARGETS_MAX: usize = 1_000;

pub(super) struct Lane {
    transforms: Vec<(TablePatterns, Box<dyn Transform>)>,
    routers: Vec<(TablePatterns, Box<dyn Router>)>,
    ways: HashMap<TableId, Way>,
    /// The transform or route that was shown a table last, and its place among those of its kind.
    asked: Option<(&'static str, usize)>,
    caller: Caller,
    metrics: PathMetrics,
}

/// A table's way, at its newest version.
struct Way {
    /// The table as the source has it.
    input: Arc<TableSchema>,
    /// Places of its transforms, and the table as it reaches each.
    transforms: Vec<(usize, Arc<TableSchema>)>,
    /// The table as it comes out.
    output: Arc<TableSchema>,
    routes: Vec<Leg>,
    /// Targets that rows chose so far.
    chosen: HashSet<TableId>,
}

/// One route of a table.
enum Leg {
    To(Vec<TableId>),
    /// The router at this place is asked.
    ByRow(usize),
}

impl Lane {
    pub(super) async fn open(path: &PathSetup, ground: &Ground, (lane, lanes): (u32, u32)) -> Result<Self, Failure> {
        let mut transforms = Vec::new();
        for setup in &path.transforms {
            let opened = setup.transform.open(ground.generation, lane, lanes).await?;
            transforms.push((setup.tables.clone(), opened));
        }
        let mut routers = Vec::new();
        for setup in &path.routes {
            routers.push((setup.tables.clone(), setup.route.open(ground.generation, lane, lanes).await?));
        }
        let (caller, metrics) = (ground.caller(lane), ground.metrics.clone());
        Ok(Self { transforms, routers, ways: HashMap::new(), asked: None, caller, metrics })
    }

    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) -> Result<(), Failure> {
        loop {
            let Job { work, done } = jobs.recv().await.ok_or(Failure::Closed)?;
            let routed = match work {
                Work::Table(schema) => self.table(schema).await?,
                Work::Batch(batch) => self.batch(batch).await?,
            };
            done.send(routed).map_err(|_| Failure::Closed)?;
        }
    }

    /// Shows a table to all that it passes; gives it for each target that is known already.
    pub(super) async fn table(&mut self, input: Arc<TableSchema>) -> Result<Vec<Routed>, Failure> {
        let id = input.table.clone();
        let mut schema = Arc::clone(&input);
        let mut transforms = Vec::new();
        for (place, (tables, transform)) in self.transforms.iter_mut().enumerate() {
            if !tables.matches(&id.database, &id.table) {
                continue;
            }
            self.asked = Some(("transform", place));
            let mut backoff = self.caller.call("transform.on-schema");
            let output = loop {
                match transform.on_schema(&schema).await {
                    Ok(output) => break output,
                    Err(error) => backoff.wait(error).await?,
                }
            };
            transforms.push((place, std::mem::replace(&mut schema, output)));
        }
        let routes = self.routes(&schema).await?;
        let known = routes.iter().flat_map(|route| if let Leg::To(tables) = route { tables.as_slice() } else { &[] });
        let schemas = known.map(|target| Routed {
            source: id.clone(),
            target: target.clone(),
            part: Part::Schema(Arc::clone(&schema)),
        });
        let schemas = schemas.collect();
        let chosen = Default::default();
        self.ways.insert(id, Way { input, transforms, output: schema, routes, chosen });
        Ok(schemas)
    }

    /// The transform or route that was shown a table last: what went wrong then, went wrong there.
    pub(super) fn asked(&self) -> Option<(&'static str, usize)> {
        self.asked
    }

    /// All tables that were shown, as they reach the transform at this place.
    pub(super) fn reaching(&self, transform: usize) -> impl Iterator<Item = &TableSchema> {
        let all = self.ways.values().flat_map(|way| &way.transforms);
        all.filter(move |(place, _)| *place == transform).map(|(_, schema)| schema.as_ref())
    }

    /// The routes by which rows of a table that was shown choose their targets, by their places, and the table as it
    /// reaches them.
    pub(super) fn choosers(&self, table: &TableId) -> impl Iterator<Item = (usize, &TableSchema)> {
        let legs = self.ways.get(table).into_iter().flat_map(|way| way.routes.iter().map(move |leg| (leg, way)));
        legs.filter_map(|(leg, way)| match leg {
            Leg::ByRow(place) => Some((*place, way.output.as_ref())),
            Leg::To(_) => None,
        })
    }

    /// All routes of a table; one that none is meant for goes to a target of its own name.
    async fn routes(&mut self, schema: &Arc<TableSchema>) -> Result<Vec<Leg>, Failure> {
        let id = &schema.table;
        let mut routes = Vec::new();
        let mut meant = false;
        let mut seen = HashSet::new();
        for (place, (tables, router)) in self.routers.iter_mut().enumerate() {
            if !tables.matches(&id.database, &id.table) {
                continue;
            }
            meant = true;
            self.asked = Some(("route", place));
            let mut backoff = self.caller.call("route.on-schema");
            let route = loop {
                match router.on_schema(schema).await {
                    Ok(route) => break route,
                    Err(error) => backoff.wait(error).await?,
                }
            };
            match route {
                // Two routes to one target give each row once.
                TableRoute::To(targets) => {
                    routes.push(Leg::To(targets.into_iter().filter(|target| seen.insert(target.clone())).collect()));
                }
                TableRoute::ByRow => routes.push(Leg::ByRow(place)),
                TableRoute::Drop => {}
            }
        }
        if !meant {
            routes.push(Leg::To(vec![id.clone()]));
        } else if routes.is_empty() {
            tracing::info!(event = "table-dropped", table = %id, "no row of this table goes anywhere");
        }
        Ok(routes)
    }

    async fn batch(&mut self, batch: ChangeBatch) -> Result<Vec<Routed>, Failure> {
        let id = batch.schema().table.clone();
        let way = self.ways.get(&id).filter(|way| way.input.version == batch.schema().version);
        let way = way.ok_or_else(|| bug("rows-before-schema", format!("rows of table {id} came before its schema")))?;
        self.metrics.rows_in.inc_by(batch.rows() as u64);
        let mut rows = batch;
        for &(place, _) in &way.transforms {
            if rows.rows() == 0 {
                return Ok(Vec::new());
            }
            let mut backoff = self.caller.call("transform.process");
            let (_, transform) = &mut self.transforms[place];
            rows = loop {
                match transform.process(&rows).await {
                    Ok(out) => break out,
                    Err(error) => backoff.wait(whole(error, &rows, || vec![id.clone()])).await?,
                }
            };
        }
        let mut routed = self.route(&id, &rows).await?;
        routed.retain(|routed| routed.rows() > 0);
        self.metrics.rows_out.inc_by(routed.iter().map(Routed::rows).sum());
        Ok(routed)
    }

    async fn route(&mut self, id: &TableId, rows: &ChangeBatch) -> Result<Vec<Routed>, Failure> {
        let way = self.ways.get_mut(id).expect("a table has its way before its rows are routed");
        let to = |target: TableId, rows| Routed { source: id.clone(), target, part: Part::Rows(rows) };
        let mut routed = Vec::new();
        for route in &way.routes {
            let place = match route {
                Leg::To(targets) => {
                    routed.extend(targets.iter().map(|target| to(target.clone(), rows.clone())));
                    continue;
                }
                Leg::ByRow(place) => *place,
            };
            let (_, router) = &mut self.routers[place];
            let mut backoff = self.caller.call("route.route-rows");
            let answer = loop {
                match router.route_rows(rows).await {
                    Ok(answer) => break answer,
                    Err(error) => backoff.wait(whole(error, rows, || vec![id.clone()])).await?,
                }
            };
            let parts = parts(rows, &answer.of_row, answer.targets.len());
            way.chosen.extend(answer.targets.iter().cloned());
            routed.extend(answer.targets.into_iter().zip(parts).map(|(target, part)| to(target, part)));
        }
        if way.chosen.len() > TARGETS_MAX { Err(too_many_targets(id)) } else { Ok(routed) }
    }
}

impl Routed {
    fn rows(&self) -> u64 {
        match &self.part {
            Part::Schema(_) => 0,
            Part::Rows(rows) => rows.rows() as u64,
        }
    }
}

/// The rows of each target; halves of an update that go to different ones become a delete and an insert.
fn parts(rows: &ChangeBatch, of_row: &[u32], targets: usize) -> Vec<ChangeBatch> {
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); targets];
    for (row, &target) in (0_u32..).zip(of_row) {
        places[target as usize].push(row);
    }
    places.iter().map(|places| rows.take(places).with_whole_pairs()).collect()
}

fn too_many_targets(table: &TableId) -> Failure {
    let message = format!("rows of table {table} are routed to more than {TARGETS_MAX} tables");
    let error = ConnectorError::stop(StopClass::Config, "too-many-targets", message);
    error.with_instruction("route by a column with few values").with_table(table.clone()).into()
}
