//! Looks at all of a pipeline without starting it: what is wrong, and what would be written where.

use std::path::Path;
use std::sync::Arc;

use cdchost_config::Loaded;
use cdchost_connector::{SourceEnd, SystemClock};
use cdchost_model::TableSchema;
use cdchost_mysql::MysqlSource;

use super::check::{load, open_afresh, state_folder};
use super::plugins::Plugins;
use super::{CheckedSink, Contract, contracts};
use crate::findings::{Blame, Findings};
use crate::state;

/// What was seen.
#[derive(Debug)]
pub(crate) struct Examined {
    /// The file; none where it cannot be read.
    pub(crate) loaded: Option<Loaded>,
    /// All that is wrong.
    pub(crate) findings: Findings,
    /// The tables that the source captures; none where it cannot be asked.
    pub(crate) tables: Option<Vec<Arc<TableSchema>>>,
    /// The write contract of each sink; none where one of them is refused.
    pub(crate) contracts: Option<Vec<Contract>>,
}

/// Looks at everything, as far as it can be reached.
pub(crate) async fn examine(pipeline: &Path, plugins: &Path) -> Examined {
    let (loaded, mut findings) = match load(pipeline) {
        Ok(found) => found,
        Err(findings) => return Examined { loaded: None, findings, tables: None, contracts: None },
    };
    match state_folder(&loaded) {
        Ok(folder) => findings.extend(Blame::Environment, state::inspect(&folder)),
        Err(wrong) => findings.append(wrong),
    }
    let (tables, sinks) = tokio::join!(tables(&loaded), sinks(&loaded, plugins));
    let tables = tables.map_err(|wrong| findings.append(wrong)).ok();
    let contracts = match sinks {
        Ok((plugins, sinks)) => {
            let shown = plugins.show_tables(&sinks, tables.as_deref().unwrap_or_default()).await;
            findings.append(shown);
            Some(contracts(&loaded.config, &sinks))
        }
        Err(wrong) => {
            findings.append(wrong);
            None
        }
    };
    Examined { loaded: Some(loaded), findings, tables, contracts }
}

async fn tables(loaded: &Loaded) -> Result<Vec<Arc<TableSchema>>, Findings> {
    let source = MysqlSource::new(loaded.config.source.clone(), SourceEnd::Never);
    open_afresh(&source, loaded).await.map(|opened| opened.tables)
}

async fn sinks<'a>(loaded: &'a Loaded, folder: &'a Path) -> Result<(Plugins<'a>, Vec<CheckedSink>), Findings> {
    let plugins = Plugins::start(folder, loaded, Arc::new(SystemClock::default()))?;
    let sinks = plugins.sinks().await?;
    Ok((plugins, sinks))
}
