//! MariaDB: its GTIDs by domain, its log without BEGIN, and reads placed in it by consistent views.

use std::sync::OnceLock;

use anyhow::{Result, ensure};
use cdchost_config::{MysqlConfig, Secret, Watermark};
use cdchost_connector::{Containment, SourceConnector, SourceEnd, StopClass, Verdict};
use cdchost_model::Op;
use cdchost_mysql::{Fault, MysqlSource};
use cdchost_tests::server::{Flavor, Server, ServerOptions};

use super::collector::{replays_alike, start};
use super::folding::differences_from;
use super::load::{Load, ended_runs, is_found_out, read_under_load};
use super::refusing::refused;
use super::{config_of, database, database_on, server};

pub(crate) fn start_server() -> Result<Server> {
    Server::with(ServerOptions { flavor: Flavor::Mariadb, ..ServerOptions::default() })
}

/// One server for all tests here.
pub(crate) fn mariadb() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| start_server().expect("a server starts"))
}

/// The account with the least rights.
pub(crate) fn config(database: &str) -> MysqlConfig {
    config_of(&mariadb().address(), database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_place_reads_under_load() -> Result<()> {
    for round in 0..2 {
        let name = format!("maria_load_{round}");
        let (target, found) = read_under_load(mariadb(), &config(""), &name, Fault::None).await?;
        assert_eq!(found, Vec::<String>::new());
        let reads = target.log.iter().filter(|(_, _, op)| *op == Op::Read).count();
        ensure!(reads > 300 && target.log.len() - reads > 40, "reads and changes met: {reads} reads");
    }
    for fault in [Fault::NoWait, Fault::LateCollector] {
        ensure!(is_found_out(mariadb(), &config(""), fault).await, "{fault:?} was not noticed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_in_every_domain() -> Result<()> {
    let name = "maria_restart";
    let load = Load::begin(mariadb(), name, 4).await?;
    let mut config = config(name);
    (config.readers, config.chunk.rows) = (5, 25);
    let from = ended_runs(mariadb(), &config, (7, 6)).await?;
    load.end().await?;
    let mut running = start(&config, SourceEnd::Never, from.as_ref()).await?;
    running.until_done(name).await?;
    running.until_caught_up(mariadb()).await?;
    let before = running.cut().await?;
    assert_eq!(differences_from(mariadb(), name, &before.target).await?, Vec::<String>::new());
    mariadb()
        .run(&[
            "SET SESSION gtid_domain_id = 7",
            "UPDATE maria_restart.numbers SET n = 7 WHERE id < 5",
            "SET SESSION gtid_domain_id = 1",
            "BEGIN",
            "DELETE FROM maria_restart.texts",
            "INSERT INTO maria_restart.numbers VALUES (100000, 1, 'x')",
            "COMMIT",
        ])
        .await?;
    running.until_caught_up(mariadb()).await?;
    let after = running.cut().await?;
    running.kill().await;
    assert_eq!(differences_from(mariadb(), name, &after.target).await?, Vec::<String>::new());
    // The same changes again, from the cut before them.
    replays_alike(mariadb(), &config, &before, &after).await?;
    let source = MysqlSource::new(config, SourceEnd::Never);
    let shown = source.describe(&after.barrier.offset);
    ensure!(shown.contains(",7-") && shown.contains("(binlog."), "{shown}");
    let compared = source.compare(&after.barrier.offset, &before.barrier.offset)?;
    assert_eq!(compared, Containment::Contains, "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_followed_and_judged() -> Result<()> {
    let name = "maria_statements";
    database_on(mariadb(), name, &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) DEFAULT 'x', w INT)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    mariadb()
        .run(&[
            "USE maria_statements",
            "ALTER TABLE t COMMENT 'no row notices'",
            "CREATE TEMPORARY TABLE tmp (a INT)",
            "INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 2)",
            "UPDATE t SET id = 3 WHERE id = 2",
            "ANALYZE TABLE t",
            "DELETE FROM t WHERE id = 1",
        ])
        .await?;
    running.until("all changes", |taken| (taken.target.log.len() == 5).then_some(())).await?;
    assert_eq!(running.taken.lock().expect("no panic").target.rows(name, "t"), [["3", "'b", "2"]]);
    mariadb().run(&["ALTER TABLE maria_statements.t ADD c INT"]).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Schema), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_and_rights_are_checked() -> Result<()> {
    let name = "maria_refused";
    let own = start_server()?;
    database_on(&own, name, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    own.run(&[
        "SET GLOBAL binlog_alter_two_phase = ON",
        "SET GLOBAL binlog_row_image = 'MINIMAL'",
        "CREATE USER poor IDENTIFIED BY 'x'",
        "GRANT SELECT ON maria_refused.* TO poor",
    ])
    .await?;
    let least = config_of(&own.address(), name);
    let poor = MysqlConfig { username: "poor".into(), password: Secret::new("x"), ..least.clone() };
    let error = refused(&MysqlConfig { watermark: Watermark::Lock, ..poor }).await;
    for part in
        ["BINLOG MONITOR", "REPLICATION SLAVE", "binlog_alter_two_phase is", "binlog_row_image is", "`watermark`"]
    {
        assert!(error.message.contains(part), "{part}: {error:?}");
    }
    let error = refused(&least).await;
    assert_eq!(error.message.lines().count(), 2, "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_no_longer_has_is_a_gap() -> Result<()> {
    let name = "maria_gap";
    let own = start_server()?;
    let table = ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"];
    database_on(&own, name, &table).await?;
    database(name, &table).await?;
    let config = config_of(&own.address(), name);
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let cut = running.cut().await?;
    running.kill().await;
    let mysql = config_of(&server().address(), name);
    let error = start(&mysql, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.class, error.code.as_str()), (StopClass::SourceGap, "mysql-other-server"), "{error:?}");
    own.run(&["INSERT INTO maria_gap.t VALUES (2)", "FLUSH BINARY LOGS"]).await?;
    own.purge_logs().await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    own.run(&["RESET MASTER"]).await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    Ok(())
}

/// The server counts geometry among the columns that have a collation where it tells collations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn geometry_beside_text_is_read_whatever_the_log_tells_of_columns() -> Result<()> {
    let own = start_server()?;
    for told in ["NO_LOG", "MINIMAL", "FULL"] {
        let name = format!("shapes_{}", told.to_lowercase());
        own.run(&[&format!("SET GLOBAL binlog_row_metadata = {told}")]).await?;
        let columns = "code VARCHAR(10) PRIMARY KEY, a POINT, b POINT, v LONGTEXT, lb LONGBLOB, u INT UNSIGNED";
        database_on(&own, &name, &[&format!("CREATE TABLE t ({columns})")]).await?;
        let mut running = start(&config_of(&own.address(), &name), SourceEnd::Never, None).await?;
        running.until_done(&name).await?;
        let insert = format!("INSERT INTO {name}.t VALUES ('a', NULL, POINT(1, 2), 'x', 'y', 4000000000)");
        own.run(&[insert.as_str()]).await?;
        running.until_caught_up(&own).await?;
        let cut = running.cut().await?;
        assert_eq!(differences_from(&own, &name, &cut.target).await?, Vec::<String>::new(), "{told}");
        running.kill().await;
    }
    Ok(())
}
