//! Dates that no calendar has, under each rule for them.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cdchost_config::{MysqlConfig, ZeroDate};
use cdchost_connector::SourceEnd;
use cdchost_tests::origin;
use cdchost_tests::server::Server;
use libtest_mimic::Trial;

use super::observed::Shared;
use super::taken::Running;
use super::{Origin, config, database, run_in, trial};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, d DATE NOT NULL, dt DATETIME NOT NULL, dt3 DATETIME(3) NOT NULL, \
                     ts TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00', ts6 TIMESTAMP(6) NULL, y YEAR NOT NULL)";
/// Rows from a number on; the first has real dates only.
const ROWS: &str = "INSERT INTO t VALUES \
    ({}, '2024-02-29', '2024-02-29 01:02:03', '2024-02-29 01:02:03.456', '2024-02-29 01:02:03', '2024-02-29 01:02:03.000001', 2024), \
    ({} + 1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', 0), \
    ({} + 2, '2024-00-10', '2024-02-00 01:02:03', '0000-01-00 23:59:59.999', '1970-01-01 00:00:01', NULL, 1970), \
    ({} + 3, '0000-00-01', '0000-12-31 00:00:00', '2024-00-00 00:00:00.001', '2038-01-19 03:14:07', '1970-01-01 00:00:01', 2155)";

/// A test for each rule.
pub(crate) fn trials(origin: Origin, server: &Arc<Shared<Server>>) -> Vec<Trial> {
    let test = |(name, zero_date): (&'static str, ZeroDate)| {
        let server = Arc::clone(server);
        trial(format!("{}: zero-date = {name}", origin.name), move || async move {
            match zero_date {
                ZeroDate::Error => stops(server.get()?).await,
                _ => carried(server.get()?, name, zero_date).await,
            }
        })
    };
    [("error", ZeroDate::Error), ("null", ZeroDate::Null), ("text", ZeroDate::Text)].into_iter().map(test).collect()
}

fn rows_from(first: i64) -> String {
    ROWS.replace("{}", &first.to_string())
}

/// Read by the snapshot, inserted and updated by the log.
async fn carried(server: &Server, name: &str, zero_date: ZeroDate) -> Result<()> {
    let database_name = format!("zero_{name}");
    database(server, &database_name, &[TABLE.to_owned(), rows_from(0)]).await?;
    let config = MysqlConfig { zero_date, ..config(server, &database_name) };
    let mut running = Running::start(&config, SourceEnd::Never).await?;
    running.until_events(4).await?;
    let update = "UPDATE t AS a JOIN t AS b ON b.id = 23 - a.id SET a.d = b.d, a.dt = b.dt, a.dt3 = b.dt3, a.ts = b.ts, \
                  a.ts6 = b.ts6, a.y = b.y WHERE a.id >= 20";
    run_in(server, &database_name, &[rows_from(10), rows_from(20), update.to_owned()]).await?;
    running.until_events(4 + 8 + 4).await?;
    let taken = running.stop().await?;
    let mut connection = server.connect().await?;
    let mut table = origin::describe(&mut connection, &database_name, "t").await?;
    if zero_date == ZeroDate::Text {
        origin::dates_as_text(&mut table);
    } else {
        // What is expected lies in a table of its own, which has NULL in place of zeros.
        run_in(server, &database_name, &nulled()).await?;
        table.name = "expected".to_owned();
    }
    let expected = origin::rows(&mut connection, &table).await?;
    ensure!(expected.len() == 12, "the server has all rows");
    table.name = "t".to_owned();
    taken.same(&table, &expected)
}

/// Statements that make the table again, with NULL for every date that has a zero.
fn nulled() -> [String; 3] {
    let columns =
        ["d", "dt", "dt3", "ts", "ts6"].map(|name| format!("IF(MONTH({name}) * DAY({name}) > 0, {name}, NULL)"));
    let create = "CREATE TABLE expected (id INT PRIMARY KEY, d DATE, dt DATETIME, dt3 DATETIME(3), ts TIMESTAMP NULL, \
                  ts6 TIMESTAMP(6) NULL, y YEAR)";
    [
        "DROP TABLE IF EXISTS expected".to_owned(),
        create.to_owned(),
        format!("INSERT INTO expected SELECT id, {}, y FROM t", columns.join(", ")),
    ]
}

/// The error names table, column and option, and not the value.
async fn stops(server: &Server) -> Result<()> {
    database(server, "zero_error", &[TABLE.to_owned(), rows_from(0)]).await?;
    let error = Running::start(&config(server, "zero_error"), SourceEnd::Never).await?.until_its_error().await?;
    let said = format!("{} | {}", error.message, error.instruction);
    for part in ["zero_error.t", "`d`", "zero-date = \"null\"", "zero-date = \"text\""] {
        ensure!(said.contains(part), "{part} is not in: {said}");
    }
    ensure!(!said.contains("0000"), "a value is in: {said}");
    Ok(())
}
