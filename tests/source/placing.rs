//! Servers without GTIDs: places in one log, and reads placed in it by locks.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, ensure};
use cdchost_config::{MysqlConfig, Secret, Watermark};
use cdchost_connector::{Containment, SourceConnector, SourceEnd, StopClass, Verdict};
use cdchost_model::Op;
use cdchost_mysql::{Fault, MysqlSource};
use cdchost_tests::server::{PASSWORD, Server, ServerOptions};

use super::collector::{replays_alike, start};
use super::folding::differences_from;
use super::load::{Load, ended_runs, is_found_out, read_under_load};
use super::refusing::refused;
use super::{config, config_of, database, database_on};

pub(crate) fn options() -> ServerOptions {
    let extra = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];
    ServerOptions { extra: extra.map(str::to_owned).to_vec(), ..ServerOptions::default() }
}

/// One server without GTIDs for all tests here.
pub(crate) fn plain() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::with(options()).expect("a server starts"))
}

/// An account that may lock rows, and no more than that beside the usual rights.
pub(crate) async fn locking(server: &Server, database: &str) -> Result<MysqlConfig> {
    server
        .run(&[
            "CREATE USER IF NOT EXISTS locking IDENTIFIED WITH mysql_native_password BY 'cdc_pw'",
            "GRANT SELECT, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO locking",
        ])
        .await?;
    let config = config_of(&server.address(), database);
    let account = ("locking".to_owned(), Secret::new(PASSWORD));
    Ok(MysqlConfig { username: account.0, password: account.1, watermark: Watermark::Lock, ..config })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_place_reads_under_load() -> Result<()> {
    let config = locking(plain(), "").await?;
    for round in 0..2 {
        let name = format!("place_load_{round}");
        let (target, found) = read_under_load(plain(), &config, &name, Fault::None).await?;
        assert_eq!(found, Vec::<String>::new());
        let reads = target.log.iter().filter(|(_, _, op)| *op == Op::Read).count();
        ensure!(reads > 300 && target.log.len() - reads > 40, "reads and changes met: {reads} reads");
    }
    for fault in [Fault::NoWait, Fault::LateCollector] {
        ensure!(is_found_out(plain(), &config, fault).await, "{fault:?} was not noticed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_from_their_places() -> Result<()> {
    let name = "place_restart";
    let load = Load::begin(plain(), name, 4).await?;
    let mut config = locking(plain(), name).await?;
    (config.readers, config.chunk.rows) = (5, 25);
    let from = ended_runs(plain(), &config, (7, 6)).await?;
    load.end().await?;
    let mut running = start(&config, SourceEnd::Never, from.as_ref()).await?;
    running.until_done(name).await?;
    running.until_caught_up(plain()).await?;
    let before = running.cut().await?;
    assert_eq!(differences_from(plain(), name, &before.target).await?, Vec::<String>::new());
    plain().run(&["UPDATE place_restart.numbers SET n = 7 WHERE id < 5", "DELETE FROM place_restart.texts"]).await?;
    running.until_caught_up(plain()).await?;
    let after = running.cut().await?;
    running.kill().await;
    // The same changes again, from the place before them.
    replays_alike(plain(), &config, &before, &after).await?;
    let source = MysqlSource::new(config, SourceEnd::Never);
    let compared = source.compare(&after.barrier.offset, &before.barrier.offset)?;
    assert_eq!(compared, Containment::Contains, "{}", source.describe(&after.barrier.offset));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lag_is_waited_for() -> Result<()> {
    let name = "place_lag";
    database_on(plain(), name, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"]).await?;
    let lag = Duration::from_millis(300);
    let config = MysqlConfig { watermark: Watermark::Lag(lag), ..config_of(&plain().address(), name) };
    let began = std::time::Instant::now();
    let target = start(&config, SourceEnd::Snapshot, None).await?.until_the_end().await?;
    ensure!(began.elapsed() >= lag, "{:?}", began.elapsed());
    assert_eq!(target.rows(name, "t").len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watermark_must_fit_the_server_and_the_account() -> Result<()> {
    let name = "place_refused";
    let table = ["CREATE TABLE t (id INT PRIMARY KEY)"];
    database(name, &table).await?;
    database_on(plain(), name, &table).await?;
    let gtid = config_of(&plain().address(), name);
    let error = refused(&gtid).await;
    assert!(error.message.contains("gtid_mode is \"OFF\"") && error.instruction.contains("watermark"), "{error:?}");
    let error = refused(&MysqlConfig { watermark: Watermark::Lock, ..gtid }).await;
    assert!(error.message.contains("may not lock rows of table place_refused.t"), "{error:?}");
    assert!(error.instruction.contains("GRANT LOCK TABLES ON `place_refused`.* TO 'cdc_min'@'%'"), "{error:?}");
    let error = refused(&MysqlConfig { watermark: Watermark::Lock, ..config(name) }).await;
    assert!(error.message.contains("gtid_mode is \"ON\""), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_are_gone_or_of_another_server_are_gaps() -> Result<()> {
    let name = "place_gap";
    let own = Server::with(options())?;
    let table = ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"];
    database_on(&own, name, &table).await?;
    database_on(plain(), name, &table).await?;
    let config = locking(&own, name).await?;
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let cut = running.cut().await?;
    running.kill().await;
    let elsewhere = locking(plain(), name).await?;
    let error = start(&elsewhere, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    assert_eq!(error.code, "mysql-other-server");
    let gtid = MysqlConfig { watermark: Watermark::Gtid, ..config.clone() };
    match start(&gtid, SourceEnd::Never, Some(&cut)).await {
        Err(error) => assert_eq!((error.class, error.code.as_str()), (StopClass::Config, "mysql-offset-kind")),
        Ok(_) => panic!("a place is no set"),
    }
    own.run(&["FLUSH BINARY LOGS"]).await?;
    own.purge_logs().await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    assert_eq!(error.code, "mysql-binlog-purged");
    // A log that began anew has files of the same names.
    own.run(&["RESET MASTER"]).await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-log-reset"), "{error:?}");
    Ok(())
}
