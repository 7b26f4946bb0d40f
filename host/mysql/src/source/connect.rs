//! The log's connection: on the first host that has all that comes next.

use std::sync::Arc;
use std::time::Duration;

use cdchost_config::MysqlConfig;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_mysql_look::session::{self, Login, ServerState, SessionError};
use cdchost_mysql_position::{BinlogPosition, DomainGtids, GtidSet, Reached, ServerUuid};
use cdchost_mysql_wire::{BinlogStream, DumpRequest, DumpStart, Remedy};

use super::refusal::{self, chain};
use crate::binlog::log_reset;
use crate::remedy::ANEW;

/// Heartbeats while a table is read: a window on an idle server is passed by one.
pub(super) const HEARTBEAT_IN_SNAPSHOT: Duration = Duration::from_millis(500);

/// How this replica is known to servers.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) server_id: u32,
    uuid: String,
}

impl Identity {
    /// The id that is configured, or one drawn at random; the uuid is always drawn.
    pub(super) fn draw(config: &MysqlConfig) -> Self {
        // 0 is no id, and small ones are those that people give.
        let drawn = || rand::random::<u32>() | 0x4000_0000;
        Self { server_id: config.server_id.unwrap_or_else(drawn), uuid: ServerUuid(rand::random()).to_string() }
    }
}

/// A connection that gives the log.
#[derive(Debug)]
pub(super) struct LogConnection {
    pub(super) stream: BinlogStream,
    /// Place of its host in the configuration.
    pub(super) host: usize,
    pub(super) login: Arc<Login>,
    pub(super) server: ServerUuid,
    /// Where the server's log ended when it was asked.
    pub(super) end: BinlogPosition,
    /// How often the server gives a sign of life.
    pub(super) heartbeat: Duration,
}

/// Why no host gives the log.
#[derive(Debug)]
pub(super) enum NoLog {
    /// It may be otherwise a little later.
    Again {
        /// Why.
        reason: String,
        /// The final error if it is not.
        error: ConnectorError,
    },
    /// It will not be otherwise.
    Final(ConnectorError),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct LogRequest {
    pub(super) config: Arc<MysqlConfig>,
    /// Place of the host that is tried first.
    pub(super) first_host: usize,
    pub(super) identity: Identity,
    /// Transactions that are not to come.
    pub(super) executed: Reached,
    /// The server that they came from last, and where its log stood behind them.
    pub(super) last: (ServerUuid, BinlogPosition),
    pub(super) heartbeat: Duration,
}

/// Tries all hosts, the one that served last first.
pub(super) async fn connect_log(request: LogRequest) -> Result<LogConnection, NoLog> {
    let count = request.config.hosts.len();
    let mut worst: Option<NoLog> = None;
    for turn in 0..count {
        let host = (request.first_host + turn) % count;
        match connect_host(&request, host).await {
            Ok(log) => return Ok(log),
            // What may be otherwise later outweighs what is final: another host may come back.
            Err(again @ NoLog::Again { .. }) => worst = Some(again),
            Err(last) => worst = Some(worst.unwrap_or(last)),
        }
    }
    Err(worst.unwrap_or_else(|| NoLog::Final(ConnectorError::stop(StopClass::Config, "mysql-no-host", "no host"))))
}

async fn connect_host(request: &LogRequest, host: usize) -> Result<LogConnection, NoLog> {
    let name = &request.config.hosts[host];
    let failed = |error: SessionError| {
        let passing = matches!(&error, SessionError::Wire(wire) if wire.remedy() == Remedy::Reconnect);
        let reason = chain(&error);
        let mut error = refusal::session_error(name, error);
        // The password may be changed at the server first and in its file a moment later.
        let may_be_mended = error.code == refusal::LOGIN && request.config.password.is_in_file();
        if !passing && !may_be_mended {
            return NoLog::Final(error);
        }
        error.verdict = cdchost_connector::Verdict::Stop;
        NoLog::Again { reason, error }
    };
    let login = Arc::new(Login::new(&request.config, name));
    let mut connection = login.connect().await.map_err(|error| failed(error.into()))?;
    let is_of_mariadb = matches!(request.executed, Reached::Domains(_));
    if connection.server().is_mariadb != is_of_mariadb {
        return Err(NoLog::Final(refusal::other_kind(name, is_of_mariadb)));
    }
    let state = session::state(&mut connection).await.map_err(failed)?;
    let end = session::position(&mut connection).await.map_err(failed)?;
    let (last_server, last_position) = &request.last;
    if *last_server == state.uuid && *last_position > end {
        return Err(NoLog::Final(log_was_reset(name, last_position, &end)));
    }
    let start = match &request.executed {
        Reached::Gtids(executed) => start_by_gtids(name, executed, &state)?,
        Reached::Place(place) if *last_server == state.uuid => start_at_place(place)?,
        Reached::Domains(domains) => {
            let has = session::domains(&mut connection).await.map_err(failed)?;
            start_by_domains(name, domains, &has, *last_server == state.uuid)?
        }
        Reached::Place(_) => return Err(NoLog::Final(refusal::other_server(name, *last_server, state.uuid))),
    };
    let dump = DumpRequest {
        server_id: request.identity.server_id,
        uuid: Some(request.identity.uuid.clone()),
        start,
        heartbeat: request.heartbeat,
    };
    let stream = connection.dump(&dump).await.map_err(|error| failed(error.into()))?;
    Ok(LogConnection { stream, host, login, server: state.uuid, end, heartbeat: request.heartbeat })
}

/// A server's log only grows. One that ends before what was read from it was begun anew, or lost its end in a crash.
pub(super) fn log_was_reset(host: &str, read: &BinlogPosition, end: &BinlogPosition) -> ConnectorError {
    let message = format!("the log of {host} ends at {end}, but was read up to {read}: it was reset or lost its end");
    log_reset(message)
}

/// All that the server has and we have not, if it has all that we have and its log all that we have not.
fn start_by_gtids(name: &str, executed: &GtidSet, state: &ServerState) -> Result<DumpStart, NoLog> {
    let gone = state.purged.subtract(executed);
    if !gone.is_empty() {
        return Err(NoLog::Final(refusal::purged(&format!("{name} has purged {gone}"))));
    }
    let missing = executed.subtract(&state.executed);
    if !missing.is_empty() {
        let reason = format!("{name} lacks transactions that were handed on: {missing}");
        return Err(NoLog::Again { error: refusal::lost_transactions(reason.clone()), reason });
    }
    let mut set = Vec::new();
    executed.encode(&mut set);
    Ok(DumpStart::Gtid(set))
}

/// All that follows in each domain. A server that does not know a domain would wait for it in silence. Numbers may go back
/// within a domain, so they say nothing of the server that they come from.
fn start_by_domains(
    name: &str,
    executed: &DomainGtids,
    server: &DomainGtids,
    is_same: bool,
) -> Result<DumpStart, NoLog> {
    if !(server.contains(executed) || is_same && server.knows_domains_of(executed)) {
        let reason = format!("{name} lacks transactions that were handed on: it has {server}, and {executed} were");
        return Err(NoLog::Again { error: refusal::lost_transactions(reason.clone()), reason });
    }
    Ok(DumpStart::Domains(executed.to_string()))
}

/// All that follows a place. Without GTIDs the protocol has 32 bits for it.
fn start_at_place(place: &BinlogPosition) -> Result<DumpStart, NoLog> {
    let position = u32::try_from(place.offset).map_err(|_| {
        let message = format!("a log without GTIDs cannot be read from a place behind 4 GiB of a file: {place}");
        let error = ConnectorError::stop(StopClass::Source, "mysql-place-behind-4-gib", message);
        NoLog::Final(error.with_instruction(format!(
            "SET GLOBAL max_binlog_size = 1073741824 and keep transactions below it, or turn GTIDs on; then {ANEW}"
        )))
    })?;
    Ok(DumpStart::Position { file: place.file.to_string(), position })
}
