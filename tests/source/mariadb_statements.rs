//! Statements as only MariaDB writes them: whatever changes a captured table by them stops the run.

use anyhow::{Context, Result};
use cdchost_connector::{SourceEnd, Verdict};

use super::collector::start;
use super::mariadb::start_server;
use super::{config_of, database_on};

const BY_STATEMENT: &str = "SET SESSION binlog_format = 'STATEMENT'";

/// Each: what is done to a captured table `t` from another database, and the stop that it leads to.
const CASES: &[(&[&str], &str)] = &[
    (&["SET STATEMENT max_statement_time = 60 FOR TRUNCATE DB.t"], "mysql-table-changed"),
    (&["SET STATEMENT max_statement_time = 60 FOR ALTER TABLE DB.t ADD c INT"], "mysql-table-changed"),
    (&["RENAME TABLE IF EXISTS DB.t TO DB.gone"], "mysql-table-changed"),
    (&["RENAME TABLE DB.t WAIT 5 TO DB.gone"], "mysql-table-changed"),
    (&["ALTER TABLE DB.t NOWAIT RENAME TO DB.gone"], "mysql-table-changed"),
    (&["ALTER ONLINE TABLE DB.t ADD c INT"], "mysql-table-changed"),
    (&["ALTER IGNORE TABLE DB.t ADD UNIQUE (v)"], "mysql-table-changed"),
    (&["DROP INDEX IF EXISTS `PRIMARY` ON DB.t"], "mysql-table-changed"),
    (&["ALTER TABLE DB.t DROP INDEX IF EXISTS `PRIMARY`"], "mysql-table-changed"),
    (&["ALTER TABLE DB.t DROP CONSTRAINT `PRIMARY`"], "mysql-table-changed"),
    (&["CREATE OR REPLACE DATABASE DB"], "mysql-table-changed"),
    (&["CREATE OR REPLACE SEQUENCE DB.t"], "mysql-table-changed"),
    (&["ALTER TABLE DB.t ENGINE = 'BLACKHOLE'"], "mysql-table-changed"),
    (&["CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE = MERGE UNION = (DB.plain)"], "mysql-table-changed"),
    (&["ALTER TABLE parted CONVERT TABLE DB.t TO PARTITION p9 VALUES LESS THAN (900)"], "mysql-table-changed"),
    (&["ALTER TABLE parted CONVERT PARTITION p0 TO TABLE DB.born"], "mysql-table-created"),
    (&[BY_STATEMENT, "SET STATEMENT max_statement_time = 60 FOR UPDATE DB.t SET v = 7"], "mysql-statement-format"),
    (&[BY_STATEMENT, "ANALYZE UPDATE DB.t SET v = 7"], "mysql-statement-format"),
    (&[BY_STATEMENT, "ANALYZE FORMAT = JSON DELETE FROM DB.t"], "mysql-statement-format"),
    (&[BY_STATEMENT, "SELECT f()"], "mysql-statement-format"),
    (&[BY_STATEMENT, "SELECT * FROM calling"], "mysql-statement-format"),
    (&[BY_STATEMENT, "SET @x = f()"], "mysql-statement-format"),
    (&[BY_STATEMENT, "DO f()"], "mysql-statement-format"),
    (&[BY_STATEMENT, "CALL p()"], "mysql-statement-format"),
];

/// Some of them stop every pipeline of their server, so it has none beside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_in_mariadbs_words_stop_the_run() -> Result<()> {
    let own = start_server()?;
    own.run(&["SET GLOBAL log_bin_trust_function_creators = ON"]).await?;
    for (place, (statements, code)) in CASES.iter().enumerate() {
        let (name, other) = (format!("maria_words_{place}"), format!("maria_others_{place}"));
        let captured = [
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE plain (id INT PRIMARY KEY, v INT) ENGINE = MyISAM",
            "INSERT INTO t VALUES (500, 1), (501, 1)",
        ];
        database_on(&own, &name, &captured).await?;
        let elsewhere = [
            "CREATE TABLE parted (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN \
             (100), PARTITION p1 VALUES LESS THAN (400))",
            &format!("CREATE FUNCTION f() RETURNS INT BEGIN UPDATE {name}.t SET v = 8; RETURN 1; END"),
            &format!("CREATE PROCEDURE p() UPDATE {name}.t SET v = 9"),
            "CREATE VIEW calling AS SELECT f() AS x",
        ];
        database_on(&own, &other, &elsewhere).await?;
        let mut running = start(&config_of(&own.address(), &name), SourceEnd::Never, None).await?;
        running.until_done(&name).await?;
        let mut all = vec![format!("USE {other}")];
        all.extend(statements.iter().map(|statement| statement.replace("DB", &name)));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        own.run(&all).await.with_context(|| format!("{statements:?}"))?;
        let error = running.until_its_error().await.with_context(|| format!("{statements:?}"))?;
        let verdict = if *code == "mysql-table-created" { Verdict::Reopen } else { Verdict::Stop };
        assert_eq!((error.code.as_str(), error.verdict), (*code, verdict), "{statements:?}: {error:?}");
    }
    Ok(())
}
