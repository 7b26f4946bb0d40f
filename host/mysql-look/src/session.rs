//! Connections to a server: who connects where, what a session sets, and what is asked of the server.

use std::time::Duration;

use cdchost_config::{MysqlConfig, Secret, TlsMode as ConfigTlsMode};
use cdchost_model::TableId;
use cdchost_mysql_position::{BinlogPosition, DomainGtids, GtidSet, ServerUuid};
use cdchost_mysql_wire::{ConnectOptions, Connection, TlsMode, TlsOptions, WireError};

use crate::digest::digest;
use crate::quoted;

/// Largest time that a server takes for its network timeouts, in seconds; above a year it complains.
const NET_TIMEOUT: u32 = 31_536_000;
const PORT_DEFAULT: u16 = 3306;

/// The longest time that a lock of a table is waited for.
const LOCK_WAIT_SECONDS: u32 = 2;
/// A lock was not to be had in time.
pub const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// What every session sets, whatever the server's defaults are: raw bytes in results, one time zone, snapshot reads
/// of one statement, no limits that cut a result short, and patience while we are slow.
const SETTINGS: &str = "SET NAMES utf8mb4, character_set_results = NULL, sql_mode = '', time_zone = '+00:00', \
                        autocommit = 1, sql_select_limit = 18446744073709551615, sql_big_selects = 1";
/// The same two things under the names that each of the two has for them.
const SETTINGS_OF_MYSQL: &str = "SET SESSION transaction_isolation = 'REPEATABLE-READ', max_execution_time = 0";
const SETTINGS_OF_MARIADB: &str = "SET SESSION tx_isolation = 'REPEATABLE-READ', max_statement_time = 0";

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// By which it is told from others.
    pub uuid: ServerUuid,
    /// Transactions that are visible.
    pub executed: GtidSet,
    /// Transactions that its log no longer has.
    pub purged: GtidSet,
}

/// Why a server's answer is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The connection.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The answer.
    #[error("the server's answer to `{0}` is not understood")]
    Answer(&'static str),
    /// A table is not what it was a moment before.
    #[error("table {0} was changed while it was looked at")]
    Changing(TableId),
    /// No two looks at the tables found the same.
    #[error("tables were changed again and again while they were looked at")]
    NeverStill,
}

/// One of the configured hosts, and how to connect to it.
#[derive(Clone, Debug)]
pub struct Login {
    /// All but the password.
    options: ConnectOptions,
    password: Secret,
}

impl Login {
    /// How to connect to this host.
    pub fn new(config: &MysqlConfig, host: &str) -> Self {
        Self { options: options(config, host), password: config.password.clone() }
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.options.host
    }

    /// Whether both are of the same host.
    pub fn is_to_the_host_of(&self, other: &Self) -> bool {
        self.options.host == other.options.host && self.options.port == other.options.port
    }

    /// Connects and sets the session up. A password that stands in a file of its own may have changed.
    pub async fn connect(&self) -> Result<Connection, WireError> {
        let mut connection =
            Connection::connect(&ConnectOptions { password: self.password.current(), ..self.options.clone() }).await?;
        set_up(&mut connection).await?;
        Ok(connection)
    }
}

fn options(config: &MysqlConfig, host: &str) -> ConnectOptions {
    let (name, port) = match host.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((name, port)) if !port.contains(']') => (name, port.parse().unwrap_or(PORT_DEFAULT)),
        _ => (host, PORT_DEFAULT),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let mut options = ConnectOptions::new(name, port, config.username.clone(), "");
    options.tls = TlsOptions {
        mode: match config.tls.mode_for(is_loopback) {
            ConfigTlsMode::Disabled => TlsMode::Disabled,
            ConfigTlsMode::Preferred => TlsMode::Preferred,
            ConfigTlsMode::Required => TlsMode::Required,
            ConfigTlsMode::VerifyCa => TlsMode::VerifyCa,
            ConfigTlsMode::VerifyIdentity => TlsMode::VerifyIdentity,
        },
        ca: config.tls.ca.clone(),
        cert: config.tls.cert.clone(),
        key: config.tls.key.clone(),
    };
    options.allow_public_key_retrieval = config.tls.allow_public_key_retrieval.unwrap_or(is_loopback);
    options.connect_timeout = config.connect_timeout;
    options
}

async fn set_up(connection: &mut Connection) -> Result<(), WireError> {
    connection.query(SETTINGS).await?;
    let named = if connection.server().is_mariadb { SETTINGS_OF_MARIADB } else { SETTINGS_OF_MYSQL };
    connection.query(named).await?;
    let patience = format!(
        "SET net_write_timeout = {NET_TIMEOUT}, net_read_timeout = {NET_TIMEOUT}, wait_timeout = {NET_TIMEOUT}"
    );
    connection.query(&patience).await.map(|_| ())
}

/// MariaDB has no uuid: what it says of itself that another server does not say stands in for it.
async fn identity_of_mariadb(connection: &mut Connection) -> Result<ServerUuid, SessionError> {
    const QUERY: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                         ('server_uid', 'server_id', 'hostname', 'port', 'datadir')";
    let result = connection.query(QUERY).await?;
    let mut facts = Vec::new();
    for row in 0..result.rows.len() {
        for column in 0..2 {
            facts.extend_from_slice(result.text(row, column).ok_or(SessionError::Answer(QUERY))?.as_bytes());
            facts.push(0);
        }
    }
    Ok(ServerUuid(digest(&facts)))
}

/// MariaDB's last transaction of each domain.
pub async fn domains(connection: &mut Connection) -> Result<DomainGtids, SessionError> {
    const QUERY: &str = "SELECT @@GLOBAL.gtid_binlog_pos";
    let result = connection.query(QUERY).await?;
    result.text(0, 0).and_then(DomainGtids::parse).ok_or(SessionError::Answer(QUERY))
}

/// Begins a transaction of MariaDB that sees a consistent state, and says which place of the log it is.
pub async fn consistent_place(connection: &mut Connection) -> Result<BinlogPosition, SessionError> {
    const QUERY: &str = "SHOW SESSION STATUS LIKE 'binlog_snapshot_%'";
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let result = connection.query(QUERY).await?;
    let value = |name: &str| {
        let row =
            (0..result.rows.len()).find(|&row| result.text(row, 0).is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
        result.text(row, 1)
    };
    let offset = value("binlog_snapshot_position").and_then(|text| text.parse().ok());
    let (file, offset) = value("binlog_snapshot_file").zip(offset).ok_or(SessionError::Answer(QUERY))?;
    Ok(BinlogPosition::new(file, offset))
}

/// Begins a transaction of MySQL that sees a table as it is at one place of the log, and says which. `locking` is a
/// second session, which lets nobody change the table meanwhile; its lock ends before this returns.
pub async fn view_of_table(
    connection: &mut Connection,
    locking: &mut Connection,
    table: &TableId,
) -> Result<BinlogPosition, SessionError> {
    lock_table(locking, table).await?;
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let place = position(locking).await?;
    unlock_tables(locking).await?;
    Ok(place)
}

/// Keeps others from changing a table. Whoever changed it holds a lock of it until the change is visible and in the log,
/// so nothing is under way when this one is had. Others wait behind it while it waits: not for long.
pub(crate) async fn lock_table(connection: &mut Connection, table: &TableId) -> Result<(), WireError> {
    connection.query(&format!("SET lock_wait_timeout = {LOCK_WAIT_SECONDS}")).await?;
    let lock = format!("LOCK TABLES {}.{} READ", quoted(&table.database), quoted(&table.table));
    let answer = connection.query(&lock).await.map(drop);
    connection.query("SET lock_wait_timeout = DEFAULT").await?;
    answer
}

/// Lets others change tables again.
pub(crate) async fn unlock_tables(connection: &mut Connection) -> Result<(), WireError> {
    connection.query("UNLOCK TABLES").await.map(|_| ())
}

/// Begins a transaction in which no lock is waited for long.
pub(crate) async fn begin_briefly(connection: &mut Connection) -> Result<(), WireError> {
    connection.query(&format!("SET lock_wait_timeout = {LOCK_WAIT_SECONDS}")).await?;
    connection.query("BEGIN").await.map(|_| ())
}

/// Ends the transaction.
pub async fn end_transaction(connection: &mut Connection) -> Result<(), WireError> {
    connection.query("COMMIT").await.map(|_| ())
}

/// From now on all reads of the session are of one view, which the first of them opens. Call it as often as you like.
pub async fn keep_view(connection: &mut Connection) -> Result<(), WireError> {
    connection.query("SET autocommit = 0").await.map(|_| ())
}

/// The server's uuid and sets.
pub async fn state(connection: &mut Connection) -> Result<ServerState, SessionError> {
    const QUERY: &str = "SELECT @@GLOBAL.server_uuid, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged";
    if connection.server().is_mariadb {
        let uuid = identity_of_mariadb(connection).await?;
        return Ok(ServerState { uuid, executed: GtidSet::default(), purged: GtidSet::default() });
    }
    let result = connection.query(QUERY).await?;
    let text = |column| result.text(0, column).ok_or(SessionError::Answer(QUERY));
    let set = |column| GtidSet::parse(text(column)?).map_err(|_| SessionError::Answer(QUERY));
    let uuid = ServerUuid::parse(text(0)?).map_err(|_| SessionError::Answer(QUERY))?;
    Ok(ServerState { uuid, executed: set(1)?, purged: set(2)? })
}

/// Where the server's log ends.
pub async fn position(connection: &mut Connection) -> Result<BinlogPosition, SessionError> {
    const QUERY: &str = "SHOW MASTER STATUS";
    const NEW_QUERY: &str = "SHOW BINARY LOG STATUS";
    // 8.4 took the old words away.
    let result = match connection.query(QUERY).await {
        Err(WireError::Server(error)) if error.code == 1064 => connection.query(NEW_QUERY).await?,
        other => other?,
    };
    let place = result.text(0, 0).zip(result.text(0, 1).and_then(|offset| offset.parse().ok()));
    let (file, offset) = place.ok_or(SessionError::Answer(QUERY))?;
    Ok(BinlogPosition::new(file, offset))
}

/// Whether the session sees all of these transactions, waiting up to `wait` for it; and the server's uuid.
pub async fn sees(connection: &mut Connection, set: &str, wait: Duration) -> Result<(ServerUuid, bool), SessionError> {
    const QUERY: &str = "SELECT @@GLOBAL.server_uuid, WAIT_FOR_EXECUTED_GTID_SET(…)";
    let seconds = wait.as_secs_f32();
    let query = format!("SELECT @@GLOBAL.server_uuid, WAIT_FOR_EXECUTED_GTID_SET('{set}', {seconds})");
    let result = connection.query(&query).await?;
    let uuid = result.text(0, 0).and_then(|text| ServerUuid::parse(text).ok());
    let reached = match result.text(0, 1) {
        Some("0") => Some(true),
        Some("1") => Some(false),
        _ => None,
    };
    uuid.zip(reached).ok_or(SessionError::Answer(QUERY))
}
