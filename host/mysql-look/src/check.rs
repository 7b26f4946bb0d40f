//! What a server and an account must have: everything that is missing at once, each with the SQL that mends it.

use std::collections::BTreeSet;

use cdchost_config::{TablePatterns, Watermark};
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TableId;
use cdchost_mysql_ddl::{Captured, Judgement, Quoting, Statement, judge};
use cdchost_mysql_wire::{Connection, WireError};

use crate::discover::Discovery;
use crate::quoted;
use crate::session::{self, SessionError};

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What: lower case, no full stop.
    pub message: String,
    /// What to do.
    pub instruction: String,
    /// Whose it is: the server's and its account's, or that of the choice of tables in the pipeline file.
    class: StopClass,
}

/// The servers that are read.
pub const SERVERS: &str = "MySQL 8 and 9 and MariaDB from 10.5 on";

/// What is asked of a server's variables: name, what it must be, and the SQL that makes it so.
const VARIABLES: [(&str, &[&str], &str); 4] = [
    ("log_bin", &["ON"], "start the server with log_bin and a server_id"),
    ("binlog_format", &["ROW"], "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", &["FULL"], "SET GLOBAL binlog_row_image = 'FULL'"),
    ("binlog_alter_two_phase", &["OFF"], "SET GLOBAL binlog_alter_two_phase = OFF"),
];

/// What `gtid_mode` must be where reads are placed in the log by GTIDs, and where they are not. No server takes the steps
/// at once: a replica of it would not follow.
const WITH_GTIDS: (&str, &[&str], &str) = (
    "gtid_mode",
    &["ON"],
    "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = \
     ON_PERMISSIVE; SET GLOBAL gtid_mode = ON; or write watermark = \"lock\" in [source]",
);
const WITHOUT_GTIDS: (&str, &[&str], &str) = ("gtid_mode", &["OFF"], "write watermark = \"gtid\" in [source]");

/// Errors that say that a right is missing.
pub const ACCESS_DENIED: [u16; 4] = [1044, 1142, 1143, 1227];
/// Errors that say that there is no such database, column or table, or that its definition has just changed.
const GONE: [u16; 4] = [1049, 1054, 1146, 1412];

/// Facts of a server that its readers need.
#[derive(Clone, Copy, Debug)]
pub struct ServerFacts {
    /// Table names are kept in lower case.
    pub lower_case_names: bool,
    /// Table maps name the labels of ENUM and SET.
    pub labels_are_logged: bool,
}

impl Finding {
    /// What the server or the account lacks.
    fn new(message: impl Into<String>, instruction: impl Into<String>) -> Self {
        Self { message: message.into(), instruction: instruction.into(), class: StopClass::Source }
    }

    /// What cannot be captured as the pipeline file asks for it.
    fn choice(message: impl Into<String>, instruction: impl Into<String>) -> Self {
        Self { class: StopClass::Config, ..Self::new(message, instruction) }
    }

    fn no_right(right: &str, account: &str) -> Self {
        Self::new(format!("the account lacks the right {right}"), format!("GRANT {right} ON *.* TO {account}"))
    }

    pub(crate) fn unreadable(table: &TableId) -> Self {
        Self::new(
            format!("the account sees no columns of table {table}"),
            format!("GRANT SELECT ON {} TO the account", sql_name(table)),
        )
    }

    /// How a table is left out.
    fn left_out(table: &TableId) -> String {
        format!("leave the table out (add {} to `tables`)", TablePatterns::leaving_out(&table.database, &table.table))
    }

    pub(crate) fn column_type(table: &TableId, column: &str, native_type: &str) -> Self {
        Self::choice(
            format!("column `{column}` of table {table} is of type {native_type}, which is not offered yet"),
            format!("{} or change the column's type", Self::left_out(table)),
        )
    }

    pub(crate) fn versioned(table: &TableId) -> Self {
        Self::choice(format!("table {table} is system-versioned, which is not offered yet"), Self::left_out(table))
    }

    pub(crate) fn charset(table: &TableId, column: &str, charset: &str) -> Self {
        Self::choice(
            format!(
                "column `{column}` of table {table} has character set {charset}, whose map the server does not give in a known form"
            ),
            format!("ALTER TABLE {} CONVERT TO CHARACTER SET utf8mb4, or {}", sql_name(table), Self::left_out(table)),
        )
    }

    pub(crate) fn keyless(table: &TableId, engine: &str) -> Self {
        Self::choice(
            format!(
                "table {table} has neither a primary key nor a unique key over columns that are NOT NULL, and its engine \
                 {engine} gives no view of it that stands still"
            ),
            format!(
                "ALTER TABLE {name} ADD PRIMARY KEY (…), or ALTER TABLE {name} ENGINE = InnoDB, or {}",
                Self::left_out(table),
                name = sql_name(table)
            ),
        )
    }

    pub(crate) fn engine(table: &TableId, engine: &str) -> Self {
        Self::choice(
            format!(
                "table {table} is of engine {engine}, which does not keep the rows that the log has of it, or has others"
            ),
            format!("{} or ALTER TABLE {} ENGINE = InnoDB", Self::left_out(table), sql_name(table)),
        )
    }

    fn merged(part: &TableId, whole: &TableId) -> Self {
        Self::choice(
            format!(
                "table {part} is a part of the MERGE table {whole}: rows written to that one are in the log as its own"
            ),
            format!("{} or DROP TABLE {}", Self::left_out(part), sql_name(whole)),
        )
    }

    pub(crate) fn hidden_label(table: &TableId, column: &str) -> Self {
        Self::choice(
            format!(
                "column `{column}` of table {table} has a label with `?`, which is also how the server shows characters above U+FFFF"
            ),
            format!(
                "SET GLOBAL binlog_row_metadata = 'FULL', which suffices where the column is in no key; or {}",
                Self::left_out(table)
            ),
        )
    }

    pub(crate) fn empty_label(table: &TableId, column: &str) -> Self {
        Self::choice(
            format!(
                "the key of table {table} has column `{column}`, an ENUM or SET with an empty label, which cannot be told from the value of none"
            ),
            format!("{} or give it a key of other columns", Self::left_out(table)),
        )
    }

    fn no_select(table: &TableId, account: &str) -> Self {
        Self::new(
            format!("the account may not read table {table}"),
            format!("GRANT SELECT ON {} TO {account}", sql_name(table)),
        )
    }

    fn no_lock(table: &TableId, account: &str) -> Self {
        Self::new(
            format!("the account may not lock rows of table {table}, which watermark = \"lock\" needs"),
            format!("GRANT LOCK TABLES ON {}.* TO {account}", quoted(&table.database)),
        )
    }

    fn no_lock_of_keyless(table: &TableId, account: &str) -> Self {
        Self::new(
            format!(
                "the account may not lock table {table}, which has no key and is read as it is at one place of the log"
            ),
            format!(
                "GRANT LOCK TABLES ON {}.* TO {account}, or ALTER TABLE {} ADD PRIMARY KEY (…)",
                quoted(&table.database),
                sql_name(table)
            ),
        )
    }

    fn no_table(patterns: &[String]) -> Self {
        Self::choice(
            format!("no table that the account can see is matched by tables = {patterns:?}"),
            "correct the patterns, create the tables, or GRANT SELECT on them to the account",
        )
    }
}

/// Looks at the server and the account; what is missing is added to `findings`.
pub async fn check_server(
    connection: &mut Connection,
    watermark: Watermark,
    findings: &mut Vec<Finding>,
) -> Result<ServerFacts, SessionError> {
    check_version(connection, findings);
    let is_mariadb = connection.server().is_mariadb;
    if is_mariadb && watermark != Watermark::Gtid {
        findings.push(Finding::choice(
            "a server of MariaDB has GTIDs, which `watermark` in [source] leaves aside",
            "write watermark = \"gtid\" in [source]",
        ));
    }
    let mode = if watermark == Watermark::Gtid { WITH_GTIDS } else { WITHOUT_GTIDS };
    let variables = VARIABLES.iter().chain([&mode]);
    let names: Vec<String> = variables.clone().map(|(name, ..)| format!("'{name}'")).collect();
    let query = format!(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('lower_case_table_names', 'binlog_row_metadata', {})",
        names.join(", ")
    );
    let result = connection.query(&query).await?;
    let value = |name: &str| {
        let row =
            (0..result.rows.len()).find(|&row| result.text(row, 0).is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
        result.text(row, 1)
    };
    for &(name, wanted, instruction) in variables {
        // A variable that the server does not know turns nothing on.
        if let Some(found) = value(name)
            && !wanted.iter().any(|wanted| found.eq_ignore_ascii_case(wanted))
        {
            findings.push(Finding::new(format!("{name} is {found:?}"), instruction));
        }
    }
    let lower_case_names = value("lower_case_table_names").is_some_and(|value| value != "0");
    let labels_are_logged = value("binlog_row_metadata").is_some_and(|value| value.eq_ignore_ascii_case("FULL"));
    let account = account(connection).await?;
    let status = if is_mariadb { "BINLOG MONITOR" } else { "REPLICATION CLIENT" };
    let ways = ["SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"];
    check_right(connection, &ways, (status, &account), findings).await?;
    if is_mariadb {
        // No statement of MariaDB needs this right and nothing more.
        if !is_granted(connection, "REPLICATION SLAVE").await? {
            findings.push(Finding::no_right("REPLICATION SLAVE", &account));
        }
    } else {
        let ways = ["SHOW SLAVE HOSTS", "SHOW REPLICAS"];
        check_right(connection, &ways, ("REPLICATION SLAVE", &account), findings).await?;
    }
    Ok(ServerFacts { lower_case_names, labels_are_logged })
}

/// Looks at the tables found.
pub async fn check_tables(
    connection: &mut Connection,
    discovery: &mut Discovery,
    patterns: (&TablePatterns, &[String]),
    watermark: Watermark,
) -> Result<(), SessionError> {
    if discovery.tables.is_empty() && discovery.findings.is_empty() {
        discovery.findings.push(Finding::no_table(patterns.1));
    }
    let account = account(connection).await?;
    for (id, found) in &discovery.tables {
        match missing_right(connection, (id, found.layout.is_keyless()), watermark, &account).await {
            Ok(finding) => discovery.findings.extend(finding),
            Err(WireError::Server(error)) if GONE.contains(&error.code) => {
                return Err(SessionError::Changing(id.clone()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    warn_of_key_parts(connection, discovery).await?;
    refuse_merged(connection, discovery).await?;
    warn_of_cascades(connection, discovery).await
}

/// Finds captured tables into which rows come through another one.
async fn refuse_merged(connection: &mut Connection, discovery: &mut Discovery) -> Result<(), SessionError> {
    let query = "SELECT table_schema, table_name FROM information_schema.tables WHERE engine = 'MRG_MyISAM'";
    let merges = connection.query(query).await?;
    for row in 0..merges.rows.len() {
        let (Some(database), Some(table)) = (merges.text(row, 0), merges.text(row, 1)) else { continue };
        let whole = TableId::new(database, table);
        let made = match connection.query(&format!("SHOW CREATE TABLE {}", sql_name(&whole))).await {
            // Gone since, or of parts that do not fit: such a table takes no rows.
            Err(WireError::Server(error)) => {
                tracing::warn!(table = %whole, %error, "what this MERGE table is made of cannot be seen");
                continue;
            }
            made => made?,
        };
        let Some(text) = made.text(0, 1) else { continue };
        let quoting = Quoting { mariadb: connection.server().is_mariadb, ..Quoting::default() };
        let captured = |database: &str, table: &str| match discovery.tables.get(&TableId::new(database, table)) {
            Some(_) => Captured::Yes { by_primary_key: true },
            None => Captured::No,
        };
        if let Judgement::Change { database, table } =
            judge(&Statement { text, database, quoting }, &captured, &|_| None)
        {
            discovery.findings.push(Finding::merged(&TableId::new(database, table), &whole));
        }
    }
    Ok(())
}

/// Says of each captured table without a key that it has one over beginnings of columns, which orders no rows.
async fn warn_of_key_parts(connection: &mut Connection, discovery: &Discovery) -> Result<(), SessionError> {
    let query = "SELECT DISTINCT table_schema, table_name, index_name FROM information_schema.statistics \
                 WHERE non_unique = 0 AND sub_part IS NOT NULL";
    let result = connection.query(query).await?;
    for row in 0..result.rows.len() {
        let (Some(database), Some(table)) = (result.text(row, 0), result.text(row, 1)) else { continue };
        let found = discovery.tables.get(&TableId::new(database, table));
        if found.is_some_and(|found| found.layout.is_keyless()) {
            tracing::warn!(
                table = format!("{database}.{table}"),
                index = result.text(row, 2).unwrap_or_default(),
                "the table's key is over the beginning of a column only: it is taken as a table without a key"
            );
        }
    }
    Ok(())
}

/// Tries what reading a table needs.
async fn missing_right(
    connection: &mut Connection,
    (table, is_keyless): (&TableId, bool),
    watermark: Watermark,
    account: &str,
) -> Result<Option<Finding>, WireError> {
    let is_denied = |answer: Result<(), WireError>| match answer {
        Err(WireError::Server(error)) if ACCESS_DENIED.contains(&error.code) => Ok(true),
        // Another session has it for now, which is no question of rights.
        Err(WireError::Server(error)) if error.code == session::LOCK_WAIT_TIMEOUT => Ok(false),
        answer => answer.map(|()| false),
    };
    // All columns: one that the account may not read is in no catalogue that it sees.
    let query = format!("SELECT * FROM {} LIMIT 0", sql_name(table));
    if is_denied(connection.query(&query).await.map(drop))? {
        return Ok(Some(Finding::no_select(table, account)));
    }
    if is_keyless && !connection.server().is_mariadb {
        if is_denied(session::lock_table(connection, table).await)? {
            return Ok(Some(Finding::no_lock_of_keyless(table, account)));
        }
        session::unlock_tables(connection).await?;
    }
    let locking = format!("SELECT 1 FROM {} LIMIT 0 LOCK IN SHARE MODE", sql_name(table));
    if watermark == Watermark::Lock && is_denied(connection.query(&locking).await.map(drop))? {
        return Ok(Some(Finding::no_lock(table, account)));
    }
    Ok(None)
}

/// Lets nobody change these tables until the transaction ends that this begins. One that the account may not read cannot
/// be held, whoever changes it.
pub async fn hold(connection: &mut Connection, tables: &BTreeSet<TableId>) -> Result<(), SessionError> {
    session::begin_briefly(connection).await?;
    for id in tables {
        match connection.query(&format!("SELECT 1 FROM {} LIMIT 0", sql_name(id))).await {
            Err(WireError::Server(error)) if GONE.contains(&error.code) || error.code == session::LOCK_WAIT_TIMEOUT => {
                return Err(SessionError::Changing(id.clone()));
            }
            Ok(_) | Err(WireError::Server(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until no statement holds any of the tables found for itself alone.
pub async fn touch(connection: &mut Connection, discovery: &Discovery) -> Result<(), SessionError> {
    for id in discovery.tables.keys() {
        match connection.query(&format!("SELECT 1 FROM {} LIMIT 0", sql_name(id))).await {
            // Gone, or not to be read: whoever looks next will say so.
            Ok(_) | Err(WireError::Server(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Says of each captured table that foreign keys change rows of which the log holds nothing.
async fn warn_of_cascades(connection: &mut Connection, discovery: &Discovery) -> Result<(), SessionError> {
    const RULES: &str = "('CASCADE', 'SET NULL', 'SET DEFAULT')";
    let query = format!(
        "SELECT constraint_schema, table_name, constraint_name FROM information_schema.referential_constraints \
         WHERE delete_rule IN {RULES} OR update_rule IN {RULES}"
    );
    let result = connection.query(&query).await?;
    for row in 0..result.rows.len() {
        let (Some(database), Some(table)) = (result.text(row, 0), result.text(row, 1)) else { continue };
        if discovery.tables.contains_key(&TableId::new(database, table)) {
            tracing::warn!(
                table = format!("{database}.{table}"),
                constraint = result.text(row, 2).unwrap_or_default(),
                "the server tells nobody of rows that this foreign key changes: such changes will be missing in the target"
            );
        }
    }
    Ok(())
}

/// All findings as one error, if there are any: a line each, its instruction at the same line. Of two classes the one
/// that the user can mend in the pipeline file counts.
pub fn refuse(findings: &[Finding]) -> Result<(), ConnectorError> {
    let (first, rest) = match findings {
        [] => return Ok(()),
        [first, rest @ ..] => (first, rest),
    };
    let mut message = first.message.clone();
    let mut instruction = first.instruction.clone();
    for finding in rest {
        message.push('\n');
        message.push_str(&finding.message);
        instruction.push('\n');
        instruction.push_str(&finding.instruction);
    }
    let chosen = findings.iter().any(|finding| finding.class == StopClass::Config);
    let class = if chosen { StopClass::Config } else { StopClass::Source };
    Err(ConnectorError::stop(class, "mysql-check", message).with_instruction(instruction))
}

fn check_version(connection: &Connection, findings: &mut Vec<Finding>) {
    let server = connection.server();
    let mut numbers = server.version.split('.').map(|number| number.parse::<u32>().ok());
    let version = numbers.next().flatten().zip(numbers.next().flatten());
    let is_read = |version: (u32, u32)| if server.is_mariadb { version >= (10, 5) } else { matches!(version.0, 8 | 9) };
    if !version.is_some_and(is_read) {
        findings.push(Finding::new(
            format!("the server is of version {}; {SERVERS} are read", server.version),
            format!("use a server of {SERVERS}"),
        ));
    }
}

/// Tries what needs a right: of several ways to say it the first that the server understands.
async fn check_right(
    connection: &mut Connection,
    ways: &[&str],
    (right, account): (&str, &str),
    findings: &mut Vec<Finding>,
) -> Result<(), SessionError> {
    for way in ways {
        match connection.query(way).await {
            Ok(_) => return Ok(()),
            // Another version's words.
            Err(WireError::Server(error)) if error.code == 1064 => {}
            Err(WireError::Server(error)) if ACCESS_DENIED.contains(&error.code) => {
                findings.push(Finding::no_right(right, account));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a right on everything is among those that the server lists.
async fn is_granted(connection: &mut Connection, right: &str) -> Result<bool, SessionError> {
    let result = connection.query("SHOW GRANTS").await?;
    let is_such = |grant: &str| {
        let rights =
            grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON *.* ")).map(|(rights, _)| rights);
        rights.is_some_and(|rights| rights.split(", ").any(|own| own == right || own == "ALL PRIVILEGES"))
    };
    Ok((0..result.rows.len()).any(|row| result.text(row, 0).is_some_and(is_such)))
}

/// The account as SQL names it.
async fn account(connection: &mut Connection) -> Result<String, SessionError> {
    const QUERY: &str = "SELECT CURRENT_USER()";
    let result = connection.query(QUERY).await?;
    let account = result.text(0, 0).ok_or(SessionError::Answer(QUERY))?;
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    Ok(format!("'{user}'@'{host}'"))
}

fn sql_name(table: &TableId) -> String {
    format!("{}.{}", quoted(&table.database), quoted(&table.table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_findings_are_told_at_once() {
        assert!(refuse(&[]).is_ok());
        let table = TableId::new("d", "t");
        let error =
            refuse(&[Finding::keyless(&table, "MyISAM"), Finding::column_type(&table, "g", "point")]).unwrap_err();
        assert_eq!(error.class, StopClass::Config);
        assert_eq!(error.message.lines().count(), 2);
        assert_eq!(error.instruction.lines().count(), 2);
        let missing = refuse(&[Finding::unreadable(&table)]).unwrap_err();
        assert_eq!(missing.class, StopClass::Source);
        assert!(error.message.contains("column `g` of table d.t is of type point"), "{}", error.message);
    }
}
