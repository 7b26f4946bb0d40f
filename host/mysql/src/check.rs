//! What a server and an account must have: everything that is missing at once, each with the SQL that mends it.

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TableId;
use cdchost_mysql_wire::{Connection, WireError};

use crate::discover::Discovery;
use crate::session::SessionError;
use crate::snapshot::quoted;

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What: lower case, no full stop.
    pub(crate) message: String,
    /// What to do.
    pub(crate) instruction: String,
    /// Whose it is: the server's and its account's, or that of the choice of tables in the pipeline file.
    class: StopClass,
}

/// What is asked of a server's variables: name, what it must be, and the SQL that makes it so.
const VARIABLES: [(&str, &[&str], &str); 6] = [
    ("log_bin", &["ON"], "start the server with log_bin and a server_id"),
    ("gtid_mode", &["ON"], GTID_MODE),
    ("binlog_format", &["ROW"], "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", &["FULL"], "SET GLOBAL binlog_row_image = 'FULL'"),
    ("binlog_row_value_options", &["", "OFF"], "SET GLOBAL binlog_row_value_options = ''"),
    ("binlog_transaction_compression", &["OFF"], "SET GLOBAL binlog_transaction_compression = OFF"),
];

/// Steps that no server takes at once: a replica of it would not follow.
const GTID_MODE: &str = "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; \
    SET GLOBAL gtid_mode = ON_PERMISSIVE; SET GLOBAL gtid_mode = ON";

/// Errors that say that a right is missing.
const ACCESS_DENIED: [u16; 4] = [1044, 1142, 1143, 1227];

/// Facts of a server that its readers need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerFacts {
    /// Table names are kept in lower case.
    pub(crate) lower_case_names: bool,
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

    pub(crate) fn unreadable(table: &TableId) -> Self {
        Self::new(
            format!("the account sees no columns of table {table}"),
            format!("GRANT SELECT ON {} TO the account", sql_name(table)),
        )
    }

    pub(crate) fn column_type(table: &TableId, column: &str, native_type: &str) -> Self {
        Self::choice(
            format!("column `{column}` of table {table} is of type {native_type}, which is not offered yet"),
            format!("leave the table out (add \"!{table}\" to `tables`) or change the column's type"),
        )
    }

    pub(crate) fn charset(table: &TableId, column: &str, charset: &str) -> Self {
        Self::choice(
            format!(
                "column `{column}` of table {table} has character set {charset}; only utf8mb4, utf8mb3 and ascii are offered yet"
            ),
            format!(
                "ALTER TABLE {} CONVERT TO CHARACTER SET utf8mb4, or leave the table out (add \"!{table}\" to `tables`)",
                sql_name(table)
            ),
        )
    }

    pub(crate) fn keyless(table: &TableId) -> Self {
        Self::choice(
            format!("table {table} has neither a primary key nor a unique key over columns that are NOT NULL"),
            format!(
                "ALTER TABLE {} ADD PRIMARY KEY (…), or leave the table out (add \"!{table}\" to `tables`)",
                sql_name(table)
            ),
        )
    }

    pub(crate) fn label_key(table: &TableId, column: &str) -> Self {
        Self::choice(
            format!("the key of table {table} has column `{column}`, an ENUM or SET, which is not offered yet"),
            format!("leave the table out (add \"!{table}\" to `tables`) or give it a key of other columns"),
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
pub(crate) async fn check_server(
    connection: &mut Connection,
    findings: &mut Vec<Finding>,
) -> Result<ServerFacts, SessionError> {
    check_version(connection, findings);
    let names: Vec<String> = VARIABLES.iter().map(|(name, ..)| format!("'{name}'")).collect();
    let query =
        format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('lower_case_table_names', {})", names.join(", "));
    let result = connection.query(&query).await?;
    let value = |name: &str| {
        let row =
            (0..result.rows.len()).find(|&row| result.text(row, 0).is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
        result.text(row, 1)
    };
    for (name, wanted, instruction) in VARIABLES {
        // A variable that the server does not know turns nothing on.
        if let Some(found) = value(name)
            && !wanted.iter().any(|wanted| found.eq_ignore_ascii_case(wanted))
        {
            findings.push(Finding::new(format!("{name} is {found:?}"), instruction));
        }
    }
    let lower_case_names = value("lower_case_table_names").is_some_and(|value| value != "0");
    let account = account(connection).await?;
    check_right(
        connection,
        &["SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"],
        ("REPLICATION CLIENT", &account),
        findings,
    )
    .await?;
    check_right(connection, &["SHOW SLAVE HOSTS", "SHOW REPLICAS"], ("REPLICATION SLAVE", &account), findings).await?;
    Ok(ServerFacts { lower_case_names })
}

/// Looks at the tables found.
pub(crate) async fn check_tables(
    connection: &mut Connection,
    discovery: &mut Discovery,
    patterns: (&TablePatterns, &[String]),
) -> Result<(), SessionError> {
    if discovery.tables.is_empty() && discovery.findings.is_empty() {
        discovery.findings.push(Finding::no_table(patterns.1));
    }
    let account = account(connection).await?;
    for id in discovery.tables.keys() {
        // All columns: one that the account may not read is in no catalogue that it sees.
        let query = format!("SELECT * FROM {} LIMIT 0", sql_name(id));
        match connection.query(&query).await {
            Ok(_) => {}
            Err(WireError::Server(error)) if ACCESS_DENIED.contains(&error.code) => {
                let instruction = format!("GRANT SELECT ON {} TO {account}", sql_name(id));
                discovery.findings.push(Finding::new(format!("the account may not read table {id}"), instruction));
            }
            Err(error) => return Err(error.into()),
        }
    }
    warn_of_cascades(connection, discovery).await
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
pub(crate) fn refuse(findings: &[Finding]) -> Result<(), ConnectorError> {
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
    let major: Option<u32> = server.version.split('.').next().and_then(|major| major.parse().ok());
    if server.is_mariadb || major != Some(8) {
        findings.push(Finding::new(
            format!("the server is of version {}; only MySQL 8 is offered yet", server.version),
            "use a server of MySQL 8.0",
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
                findings.push(Finding::new(
                    format!("the account lacks the right {right}"),
                    format!("GRANT {right} ON *.* TO {account}"),
                ));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
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
        let error = refuse(&[Finding::keyless(&table), Finding::column_type(&table, "g", "point")]).unwrap_err();
        assert_eq!(error.class, StopClass::Config);
        assert_eq!(error.message.lines().count(), 2);
        assert_eq!(error.instruction.lines().count(), 2);
        let missing = refuse(&[Finding::unreadable(&table)]).unwrap_err();
        assert_eq!(missing.class, StopClass::Source);
        assert!(error.message.contains("column `g` of table d.t is of type point"), "{}", error.message);
    }
}
