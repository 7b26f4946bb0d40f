//! Logs that servers pack: transactions that MySQL 9 compresses, some of them under tags, and events that MariaDB does.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use cdchost_config::{ByteSize, MysqlConfig};
use cdchost_connector::{Containment, SourceConnector, SourceEnd, StopClass, Verdict};
use cdchost_model::Op;
use cdchost_mysql::{Fault, MysqlSource};
use cdchost_tests::server::{Flavor, Server, ServerOptions};
use mysql_async::prelude::Queryable;

use super::collector::{replays_alike, start};
use super::folding::differences_from;
use super::load::{Load, ended_runs, read_under_load};
use super::{config_of, database_on};

/// MySQL 9 with all transactions compressed, for all tests here.
fn newer() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| started(Flavor::Mysql9, &["--binlog-transaction-compression=ON"]))
}

/// MariaDB with all that it can compressed.
fn mariadb() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| started(Flavor::Mariadb, &["--log-bin-compress=ON", "--log-bin-compress-min-len=10"]))
}

fn started(flavor: Flavor, extra: &[&str]) -> Server {
    let extra = extra.iter().map(ToString::to_string).collect();
    Server::with(ServerOptions { flavor, extra, port: None }).expect("a server starts")
}

/// Kinds of events in a server's log, as it names them.
async fn kinds_in_log(server: &Server) -> Result<BTreeSet<String>> {
    let mut connection = server.connect().await?;
    let files: Vec<mysql_async::Row> = connection.query("SHOW BINARY LOGS").await?;
    let mut kinds = BTreeSet::new();
    for file in files {
        let file: String = file.get(0).context("a file's name")?;
        let events: Vec<mysql_async::Row> = connection.query(format!("SHOW BINLOG EVENTS IN '{file}'")).await?;
        kinds.extend(events.iter().filter_map(|event| event.get::<String, _>(2)));
    }
    Ok(kinds)
}

/// Reads under load, and sees that the log held what it was to hold.
async fn under_load(server: &'static Server, name: &str, expected: &[&str]) -> Result<()> {
    let (target, found) = read_under_load(server, &config_of(&server.address(), ""), name, Fault::None).await?;
    assert_eq!(found, Vec::<String>::new());
    let reads = target.log.iter().filter(|(_, _, op)| *op == Op::Read).count();
    ensure!(reads > 300 && target.log.len() - reads > 40, "reads and changes met: {reads} reads");
    let kinds = kinds_in_log(server).await?;
    for kind in expected {
        ensure!(kinds.contains(*kind), "no {kind} in the log: {kinds:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_transactions_are_read_under_load() -> Result<()> {
    under_load(newer(), "packed_load", &["Transaction_payload", "Gtid_tagged_log_event", "Gtid"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_events_of_mariadb_are_read_under_load() -> Result<()> {
    let rows = ["Write_rows_compressed_v1", "Update_rows_compressed_v1", "Delete_rows_compressed_v1"];
    under_load(mariadb(), "packed_load", &[&rows[..], &["Query_compressed"]].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_from_sets_with_tags() -> Result<()> {
    let name = "packed_restart";
    let load = Load::begin(newer(), name, 4).await?;
    let mut config = config_of(&newer().address(), name);
    (config.readers, config.chunk.rows) = (5, 25);
    let from = ended_runs(newer(), &config, (5, 8)).await?;
    load.end().await?;
    let mut running = start(&config, SourceEnd::Never, from.as_ref()).await?;
    running.until_done(name).await?;
    running.until_caught_up(newer()).await?;
    let before = running.cut().await?;
    newer()
        .run(&[
            "SET SESSION gtid_next = 'AUTOMATIC:late'",
            "UPDATE packed_restart.numbers SET n = 7 WHERE id < 50",
            "SET SESSION binlog_transaction_compression = OFF",
            "DELETE FROM packed_restart.texts WHERE n > 1000",
        ])
        .await?;
    running.until_caught_up(newer()).await?;
    let after = running.cut().await?;
    running.kill().await;
    assert_eq!(differences_from(newer(), name, &after.target).await?, Vec::<String>::new());
    // The same changes again, from the cut before them.
    replays_alike(newer(), &config, &before, &after).await?;
    let source = MysqlSource::new(config, SourceEnd::Never);
    let shown = source.describe(&after.barrier.offset);
    ensure!(shown.contains(":late:1-2") && shown.contains(":tag_1:1-"), "{shown}");
    let compared = source.compare(&after.barrier.offset, &before.barrier.offset)?;
    assert_eq!(compared, Containment::Contains, "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_compressed_transaction_is_one_step() -> Result<()> {
    let name = "packed_large";
    database_on(newer(), name, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))"]).await?;
    let config = MysqlConfig { transaction_max_buffer: ByteSize(1 << 20), ..config_of(&newer().address(), name) };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let double = "INSERT INTO t (v) SELECT v FROM t";
    let mut statements = vec!["USE packed_large", "BEGIN", "INSERT INTO t (v) VALUES (REPEAT('x',200))"];
    statements.extend([double; 15]);
    statements.push("COMMIT");
    newer().run(&statements).await?;
    let mut counts = Vec::new();
    while counts.last() != Some(&(1 << 15)) {
        counts.push(running.cut().await?.target.rows(name, "t").len());
    }
    assert!(counts.iter().all(|&count| count == 0 || count == 1 << 15), "a cut inside of a transaction: {counts:?}");
    let target = running.stop().await?;
    assert!(target.batches > 4, "it came in parts");
    assert_eq!(differences_from(newer(), name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_on_tables_are_judged_as_before() -> Result<()> {
    let name = "packed_statements";
    database_on(newer(), name, &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))"]).await?;
    let config = config_of(&newer().address(), name);
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    newer().run(&["ALTER TABLE packed_statements.t ADD INDEX (v)"]).await?;
    newer().run(&["INSERT INTO packed_statements.t VALUES (1, 'a'), (2, 'b')"]).await?;
    running.until("the rows", |taken| (taken.target.rows(name, "t").len() == 2).then_some(())).await?;
    newer().run(&["ALTER TABLE packed_statements.t ADD c INT"]).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Schema), "{error:?}");
    Ok(())
}
