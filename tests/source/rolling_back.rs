//! Transactions that a server rolled back in its log, wholly or in part: only MariaDB logs rows of such.

use anyhow::Result;
use cdchost_connector::SourceEnd;

use super::collector::start;
use super::database_on;
use super::folding::differences_from;
use super::mariadb::{config, mariadb};

/// Transactions that the server must log though they are rolled back: a temporary table is not undone.
const TRANSACTIONS: &[&[&str]] = &[
    &[
        "INSERT INTO t VALUES (1, 'kept')",
        "SAVEPOINT s",
        "INSERT INTO t SELECT 2, UUID()",
        "TEMPORARY",
        "ROLLBACK TO s",
    ],
    &["INSERT INTO t VALUES (10, 'gone')", "UPDATE t SET v = 'gone' WHERE id = 1", "TEMPORARY", "ROLLBACK"],
    &["SAVEPOINT s", "DELETE FROM t", "TEMPORARY", "ROLLBACK TO SAVEPOINT s", "INSERT INTO t VALUES (20, 'kept')"],
    &[
        "INSERT INTO t VALUES (30, 'kept')",
        "SAVEPOINT `A ``b`",
        "INSERT INTO t VALUES (31, 'gone')",
        "TEMPORARY",
        "ROLLBACK WORK TO SAVEPOINT `a ``B`",
        "INSERT INTO t VALUES (32, 'kept')",
    ],
    &[
        "INSERT INTO t VALUES (40, 'kept')",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (41, 'kept')",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (42, 'gone')",
        "TEMPORARY",
        "ROLLBACK TO s",
        "RELEASE SAVEPOINT s",
        "SAVEPOINT s",
        "UPDATE t SET v = 'gone'",
        "TEMPORARY",
        "ROLLBACK TO s",
    ],
    // Rows of tables without transactions stay.
    &[
        "INSERT INTO t VALUES (50, 'gone')",
        "INSERT INTO plain VALUES (50, 'kept')",
        "INSERT INTO aria VALUES (50, 'kept')",
        "TEMPORARY",
        "UPDATE plain SET v = 'changed'",
        "INSERT INTO plain VALUES (51, 'kept')",
        "ROLLBACK",
    ],
    // A trigger writes such a table beside the row.
    &[
        "INSERT INTO t VALUES (60, 'kept')",
        "SAVEPOINT s",
        "INSERT INTO watched VALUES (60), (61)",
        "TEMPORARY",
        "INSERT INTO watched VALUES (62)",
        "INSERT INTO t VALUES (63, 'gone')",
        "ROLLBACK TO s",
    ],
    &["INSERT INTO watched VALUES (70), (71)", "TEMPORARY", "INSERT INTO watched VALUES (72)", "ROLLBACK"],
    // One statement in it fails.
    &[
        "INSERT INTO t VALUES (80, 'kept')",
        "INSERT IGNORE INTO t VALUES (81, 'kept'), (80, 'not again')",
        "TEMPORARY",
        "SAVEPOINT s",
        "DELETE FROM t WHERE id = 80",
        "TEMPORARY",
        "ROLLBACK TO s",
    ],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rolled_back_in_the_log_is_not_handed_on() -> Result<()> {
    let name = "rolled_back";
    let tables = [
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(50))",
        "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(50)) ENGINE = MyISAM",
        "CREATE TABLE aria (id INT PRIMARY KEY, v VARCHAR(50)) ENGINE = Aria TRANSACTIONAL = 1",
        "CREATE TABLE watched (id INT PRIMARY KEY)",
        "CREATE TRIGGER g AFTER INSERT ON watched FOR EACH ROW INSERT INTO plain VALUES (NEW.id, 'by trigger')",
    ];
    database_on(mariadb(), name, &tables).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let mut temporary = 0;
    for transaction in TRANSACTIONS {
        let mut statements = vec![format!("USE {name}"), "BEGIN".to_owned()];
        for statement in *transaction {
            temporary += 1;
            statements.push(match *statement {
                "TEMPORARY" => format!("CREATE TEMPORARY TABLE tmp{temporary} (a INT)"),
                statement => statement.to_owned(),
            });
        }
        statements.push("COMMIT".to_owned());
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        mariadb().run(&statements).await?;
        running.until_caught_up(mariadb()).await?;
        let cut = running.cut().await?;
        let found = differences_from(mariadb(), name, &cut.target).await?;
        assert_eq!(found, Vec::<String>::new(), "{transaction:?}");
    }
    running.stop().await?;
    Ok(())
}
