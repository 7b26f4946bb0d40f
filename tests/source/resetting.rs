//! Logs that begin anew, and numbers that go back: what counts is what was handed on, not what it is called.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cdchost_config::MysqlConfig;
use cdchost_connector::{SourceEnd, StopClass, Verdict};
use cdchost_tests::server::{Flavor, Server, ServerOptions};
use cdchost_tests::wait;
use mysql_async::prelude::Queryable;

use super::collector::start;
use super::folding::differences_from;
use super::{config_of, database_on, mariadb, placing};

/// Servers of their own, by GTIDs, by places and by domains, and how each is read.
async fn servers(name: &str) -> Result<Vec<(Server, MysqlConfig)>> {
    let options = [
        ServerOptions::default(),
        placing::options(),
        ServerOptions { flavor: Flavor::Mariadb, ..ServerOptions::default() },
    ];
    let mut servers = Vec::new();
    for (place, options) in options.into_iter().enumerate() {
        let server = Server::with(options)?;
        database_on(&server, name, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2)"]).await?;
        let config =
            if place == 1 { placing::locking(&server, name).await? } else { config_of(&server.address(), name) };
        servers.push((server, config));
    }
    Ok(servers)
}

/// A log's files are told apart by the second in which they were begun.
async fn reset(server: &Server, name: &str, rows: u32) -> Result<()> {
    wait::pass(Duration::from_millis(1100)).await;
    let mut connection = server.connect().await?;
    connection.query_drop("RESET MASTER").await?;
    for id in 0..rows {
        connection.query_drop(format!("INSERT INTO {name}.t VALUES ({})", 100 + id)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_began_anew_is_a_gap_however_much_it_holds_by_now() -> Result<()> {
    let name = "reset_log";
    for (server, config) in servers(name).await? {
        let mut running = start(&config, SourceEnd::Never, None).await?;
        running.until_done(name).await?;
        server.run(&["INSERT INTO reset_log.t VALUES (3)"]).await?;
        running.until("the row", |taken| (taken.target.rows(name, "t").len() == 3).then_some(())).await?;
        let cut = running.cut().await?;
        if server.flavor() == Flavor::Mariadb {
            // Its manual forbids a reset under a reader, and a server may not outlive it.
            running.kill().await;
        } else {
            reset(&server, name, 6).await?;
            let shown = running.progress.clone();
            let error = running.until_its_error().await.with_context(|| format!("{:?}", *shown.borrow()))?;
            assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
            assert_eq!(error.code, "mysql-log-reset", "{error:?}");
            server.run(&["DELETE FROM reset_log.t WHERE id >= 100"]).await?;
        }
        // Between two runs, and with more in the new log than the old one had.
        reset(&server, name, 60).await?;
        let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-log-reset"), "{error:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_a_domain_may_go_back() -> Result<()> {
    let name = "maria_back";
    let table = ["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1, 'x')"];
    database_on(mariadb::mariadb(), name, &table).await?;
    let config = mariadb::config(name);
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let mut cut = running.cut().await?;
    // A domain of its own, so that the others of this server go on as they are.
    let mut writer = mariadb::mariadb().connect().await?;
    let begin =
        |number: u32, server: u32| format!("SET gtid_domain_id = 77, server_id = {server}, gtid_seq_no = {number}");
    for (round, (number, server)) in [(1000, 1), (500, 1), (501, 2), (501, 1), (7, 3), (8, 3)].into_iter().enumerate() {
        writer.query_drop(begin(number, server)).await?;
        writer.query_drop(format!("INSERT INTO {name}.t VALUES ({}, '{number}')", 10 + round)).await?;
        running.until("the row", |taken| (taken.target.rows(name, "t").len() == 2 + round).then_some(())).await?;
        if round % 2 == 1 {
            // A run that goes on from here.
            cut = running.cut().await?;
            running.kill().await;
            running = start(&config, SourceEnd::Never, Some(&cut)).await?;
        }
    }
    ensure!(!cut.target.log.is_empty(), "cuts hold what was handed on");
    let target = running.stop().await?;
    assert_eq!(differences_from(mariadb::mariadb(), name, &target).await?, Vec::<String>::new());
    Ok(())
}
