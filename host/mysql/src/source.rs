//! The source as the engine sees it: opened, checked, its tables known; its offsets compared and shown.

mod connect;
mod offset;
mod refusal;
mod run;
mod tables;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use cdchost_config::{MysqlConfig, StartupMode, TablePatterns, Watermark};
use cdchost_connector::{
    ConnectorError, Containment, OpenedSource, SourceConnector, SourceEnd, SourceRestore, StopClass,
};
use cdchost_model::{SourceOffset, TableId};
use cdchost_mysql_look::charsets;
use cdchost_mysql_look::check::{Finding, check_server, check_tables, hold, refuse, touch};
use cdchost_mysql_look::discover::{Discovery, Search, discover};
use cdchost_mysql_look::session::{self, Login, ServerState, SessionError};
use cdchost_mysql_position::{Reached, ServerUuid, SetOrder};
use cdchost_mysql_row::{Charsets, TextRules, ValueRules, ZeroDate};
use cdchost_mysql_wire::Connection;

use crate::snapshot::Fault;
use offset::{Offset, State};
use run::{MysqlRun, RunSetup};
use tables::{Tables, tables_digest};

/// A discovery counts when the one after it finds the same; a server whose tables never hold still is given up on.
const DISCOVERIES_MAX: u32 = 5;

/// A configured MySQL source.
#[derive(Debug)]
pub struct MysqlSource {
    config: Arc<MysqlConfig>,
    end: SourceEnd,
    fault: Fault,
}

impl MysqlSource {
    /// A source for this configuration. `end` says how a bounded run ends; `startup.mode = "snapshot"` ends at the
    /// snapshot where `end` is [`SourceEnd::Never`].
    pub fn new(config: MysqlConfig, end: SourceEnd) -> Self {
        let ends_at_snapshot = config.startup == StartupMode::Snapshot && end == SourceEnd::Never;
        let end = if ends_at_snapshot { SourceEnd::Snapshot } else { end };
        Self { config: Arc::new(config), end, fault: Fault::None }
    }

    /// With a fault, so that a test can show that it would find it.
    #[cfg(feature = "planted-faults")]
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    fn patterns(&self) -> Result<TablePatterns, ConnectorError> {
        TablePatterns::parse(&self.config.tables).map_err(|error| {
            ConnectorError::stop(StopClass::Config, "mysql-table-pattern", error.to_string())
                .with_instruction(error.instruction())
        })
    }
}

/// What was seen of a server when the source was opened.
struct Look {
    server: ServerUuid,
    /// What the tables were looked at after.
    known: Reached,
    discovery: Discovery,
    lower_case_names: bool,
    rules: ValueRules,
}

#[async_trait]
impl SourceConnector for MysqlSource {
    async fn open(&self, restore: Option<SourceRestore>) -> Result<OpenedSource, ConnectorError> {
        let patterns = self.patterns()?;
        let restored = match &restore {
            Some(restore) => Some((Offset::decode(&restore.offset)?, State::decode(&restore.state)?)),
            None => None,
        };
        if let Some((offset, _)) = &restored {
            refusal::check_kind(offset, self.config.watermark)?;
        }
        let known = restored.as_ref().map_or_else(State::default, |(_, state)| state.clone());
        let mut failure = None;
        for (host, name) in self.config.hosts.iter().enumerate() {
            match self.look(name, &patterns, &known).await {
                Ok(look) => {
                    refuse(&look.discovery.findings)?;
                    return self.opened(host, look, patterns, restored);
                }
                Err(error) => {
                    tracing::warn!(host = name, error = refusal::chain(&error), "host not usable");
                    // The first host's reason is shown: it is the one that is meant to serve.
                    failure.get_or_insert_with(|| refusal::session_error(name, error));
                }
            }
        }
        Err(failure.unwrap_or_else(|| {
            ConnectorError::stop(StopClass::Config, "mysql-no-host", "[source] names no host")
                .with_instruction("give hosts = [\"host:3306\"]")
        }))
    }

    fn compare(&self, one: &SourceOffset, other: &SourceOffset) -> Result<Containment, ConnectorError> {
        let (one, other) = (Offset::decode(one)?, Offset::decode(other)?);
        // Places are comparable in one server's log only.
        if matches!(one.executed, Reached::Place(_)) && one.server != other.server {
            return Ok(Containment::Incomparable);
        }
        Ok(match one.executed.compare(&other.executed) {
            SetOrder::Equal => Containment::Equal,
            SetOrder::Contains => Containment::Contains,
            SetOrder::ContainedIn => Containment::ContainedIn,
            SetOrder::Incomparable => Containment::Incomparable,
        })
    }

    fn describe(&self, offset: &SourceOffset) -> String {
        match Offset::decode(offset) {
            Ok(offset) => format!("{} ({})", offset.executed, offset.position),
            Err(error) => error.message,
        }
    }
}

impl MysqlSource {
    /// Connects to a host and looks at it. The server's set is read before the tables, so that the tables are as they
    /// are after it.
    async fn look(&self, host: &str, patterns: &TablePatterns, known: &State) -> Result<Look, SessionError> {
        let mut connection = Login::new(&self.config, host).connect().await?;
        let mut findings = Vec::new();
        let facts = check_server(&mut connection, self.config.watermark, &mut findings).await?;
        let is_known = |id: &TableId| known.tables.iter().any(|table| table.schema.table == *id);
        let (server, mut reached) = self.reached(&mut connection).await?;
        let mut rules = ValueRules { charsets: Charsets::default(), zero_date: zero_date(self.config.zero_date) };
        let fields = known.tables.iter().flat_map(|table| &table.schema.fields);
        let sets = fields.filter_map(|field| TextRules::of(&field.native_type)).map(|text| text.charset.to_owned());
        charsets::load(&mut connection, sets.collect::<BTreeSet<_>>(), &mut rules.charsets).await?;
        let search = Search { patterns, known: &is_known, facts };
        let mut discovery = discover(&mut connection, &search, &mut rules).await?;
        let mut looks = 1;
        loop {
            if looks == DISCOVERIES_MAX {
                return Err(SessionError::NeverStill);
            }
            looks += 1;
            let (_, next_reached) = self.reached(&mut connection).await?;
            // A statement may stand in the log and not be done yet; its table is locked until it is.
            if !matches!(reached, Reached::Gtids(_)) {
                touch(&mut connection, &discovery).await?;
            } else if next_reached == reached && discovery.findings.is_empty() {
                break;
            }
            reached = next_reached;
            let next = discover(&mut connection, &search, &mut rules).await?;
            let same = next.has_same_tables(&discovery);
            discovery = next;
            if same {
                break;
            }
        }
        if !discovery.findings.is_empty() {
            discovery.findings = confirm(&mut connection, &search, &mut rules, &discovery.refused).await?;
        }
        if known.tables.is_empty() {
            check_tables(&mut connection, &mut discovery, (patterns, &self.config.tables), self.config.watermark)
                .await?;
        }
        let found =
            discovery.tables.keys().chain(&discovery.refused).map(|id| (id.database.as_str(), id.table.as_str()));
        let found: Vec<_> = found.collect();
        // Where nothing is found at all, that is the finding.
        for pattern in patterns.unmet(&found).filter(|_| !found.is_empty()) {
            tracing::warn!(
                event = "pattern-unmet",
                pattern,
                "this pattern of `tables` matches no table that the account can see"
            );
        }
        findings.append(&mut discovery.findings);
        discovery.findings = findings;
        Ok(Look { server, known: reached, discovery, lower_case_names: facts.lower_case_names, rules })
    }

    /// The server, and the transactions that its tables are looked at after.
    async fn reached(&self, connection: &mut Connection) -> Result<(ServerUuid, Reached), SessionError> {
        let ServerState { uuid, executed, .. } = session::state(connection).await?;
        if connection.server().is_mariadb {
            return Ok((uuid, Reached::Domains(session::domains(connection).await?)));
        }
        match self.config.watermark {
            Watermark::Gtid => Ok((uuid, Reached::Gtids(executed))),
            Watermark::Lock | Watermark::Lag(_) => Ok((uuid, Reached::Place(session::position(connection).await?))),
        }
    }

    fn opened(
        &self,
        host: usize,
        look: Look,
        patterns: TablePatterns,
        restored: Option<(Offset, State)>,
    ) -> Result<OpenedSource, ConnectorError> {
        let reads_rows = self.config.startup != StartupMode::Latest;
        let tables = match &restored {
            Some((_, state)) => Tables::restored(state, look.discovery, &look.rules, &patterns)?,
            None => Tables::found(look.discovery, reads_rows),
        };
        let schemas = tables.schemas();
        let tables_digest = tables_digest(&schemas);
        let run = MysqlRun::new(RunSetup {
            config: Arc::clone(&self.config),
            end: self.end,
            host,
            patterns,
            lower_case_names: look.lower_case_names,
            server: look.server,
            known: look.known,
            prepared: restored.as_ref().map(|(_, state)| state.prepared.clone()).unwrap_or_default(),
            restored: restored.map(|(offset, _)| offset),
            tables,
            fault: self.fault,
        });
        Ok(OpenedSource { source: Box::new(run), tables: schemas, tables_digest })
    }
}

/// Two looks may catch a table that comes and goes at the same moment of its life: what is refused for good is looked at
/// while nobody can change it.
async fn confirm(
    connection: &mut Connection,
    search: &Search<'_>,
    rules: &mut ValueRules,
    refused: &BTreeSet<TableId>,
) -> Result<Vec<Finding>, SessionError> {
    hold(connection, refused).await?;
    let held = discover(connection, search, rules).await?;
    session::end_transaction(connection).await?;
    match refused.difference(&held.refused).next() {
        Some(table) => Err(SessionError::Changing(table.clone())),
        None => Ok(held.findings),
    }
}

fn zero_date(configured: cdchost_config::ZeroDate) -> ZeroDate {
    match configured {
        cdchost_config::ZeroDate::Error => ZeroDate::Error,
        cdchost_config::ZeroDate::Null => ZeroDate::Null,
        cdchost_config::ZeroDate::Text => ZeroDate::Text,
    }
}
