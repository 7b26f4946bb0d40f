//! Looks at all of a pipeline without starting it: what is wrong, and what would be written where.

use std::path::Path;
use std::sync::Arc;

use cdchost_config::{Finding, Loaded};
use cdchost_connector::{Clock, SourceEnd, SystemClock};
use cdchost_model::TableSchema;
use cdchost_mysql::MysqlSource;
use cdchost_pipeline::{Plan, PlannedTable, RefusedPlan, Unmet, plan_tables};

use super::check::{load, open_afresh, state_folder};
use super::plugins::Plugins;
use super::{CheckedPath, CheckedSink, Contract, contracts};
use crate::findings::{Blame, Findings, of_port};
use crate::state;

/// What was seen.
#[derive(Debug)]
pub(crate) struct Examined {
    /// The file; none where it cannot be read.
    pub(crate) loaded: Option<Loaded>,
    /// All that is wrong.
    pub(crate) findings: Findings,
    /// Where the rows of each captured table go; none where source or plugins cannot be asked.
    pub(crate) tables: Option<Vec<PlannedTable>>,
    /// Transforms and routes, a line each.
    pub(crate) steps: Vec<String>,
    /// The write contract of each sink; none where one of them is refused.
    pub(crate) contracts: Option<Vec<Contract>>,
}

/// Looks at everything, as far as it can be reached.
pub(crate) async fn examine(pipeline: &Path, plugins: &Path) -> Examined {
    let (loaded, mut findings) = match load(pipeline) {
        Ok(found) => found,
        Err(findings) => return Examined { loaded: None, findings, tables: None, steps: Vec::new(), contracts: None },
    };
    match state_folder(&loaded) {
        Ok(folder) => findings.extend(Blame::Environment, state::inspect(&folder)),
        Err(wrong) => findings.append(wrong),
    }
    let (tables, plugins) =
        tokio::join!(tables(&loaded), plugins_of(&loaded, plugins, Arc::new(SystemClock::default())));
    let tables = tables.map_err(|wrong| findings.append(wrong)).ok();
    let (mut planned, mut steps, mut promised) = (None, Vec::new(), None);
    match plugins {
        Ok((plugins, path, sinks)) => {
            if let Some(tables) = tables {
                let plan = plan(&loaded, &path, &tables, &mut findings).await;
                findings.append(plugins.show_tables(&sinks, &plan).await);
                planned = Some(plan);
            }
            promised = Some(contracts(&loaded.config, &sinks));
            steps = path.steps;
        }
        Err(wrong) => findings.append(wrong),
    }
    Examined { loaded: Some(loaded), findings, tables: planned, steps, contracts: promised }
}

/// Where rows go, table by table; what is refused is a finding.
pub(super) async fn plan(
    loaded: &Loaded,
    path: &CheckedPath,
    tables: &[Arc<TableSchema>],
    findings: &mut Findings,
) -> Vec<PlannedTable> {
    let mut refuse = |RefusedPlan { error, step }: &RefusedPlan| {
        let place = step.and_then(|(kind, place)| loaded.places.find(&format!("{kind}.{place}")));
        let (blame, found) = of_port(error, "transforms and routes", place.as_ref());
        findings.append(Findings::of(blame, found));
    };
    match plan_tables(&path.setup, tables, Arc::new(SystemClock::default())).await {
        Ok(Plan { tables, unmet }) => {
            let planned =
                tables.into_iter().filter_map(|table| table.map_err(|refused| refuse(&refused)).ok()).collect();
            findings.extend(Blame::Config, unmet.iter().map(|unmet| name_unmet(loaded, unmet)));
            planned
        }
        Err(refused) => {
            refuse(&refused);
            Vec::new()
        }
    }
}

fn name_unmet(loaded: &Loaded, unmet: &Unmet) -> Finding {
    let key = unmet.option.as_deref().unwrap_or("table");
    let place = loaded.places.find(&format!("{}.{}.{key}", unmet.kind, unmet.place));
    Finding::error(&unmet.message, unmet.instruction()).at(place)
}

async fn tables(loaded: &Loaded) -> Result<Vec<Arc<TableSchema>>, Findings> {
    let source = MysqlSource::new(loaded.config.source.clone(), SourceEnd::Never);
    open_afresh(&source, loaded).await.map(|opened| opened.tables)
}

/// The plugins, and what was made of them; none is granted anything yet.
pub(super) async fn plugins_of<'a>(
    loaded: &'a Loaded,
    folder: &'a Path,
    clock: Arc<dyn Clock>,
) -> Result<(Plugins<'a>, CheckedPath, Vec<CheckedSink>), Findings> {
    let plugins = Plugins::start(folder, loaded, clock)?;
    let (path, sinks) = plugins.all().await?;
    Ok((plugins, path, sinks))
}
