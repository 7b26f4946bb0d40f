//! Links that break: dead without being closed, cut inside of a transaction, with a bit flipped.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cdchost_config::{MysqlConfig, Secret};
use cdchost_connector::{SourceEnd, StopClass, Verdict};
use cdchost_tests::proxy::Proxy;
use cdchost_tests::server::{PASSWORD, Server};
use mysql_async::prelude::Queryable;

use super::collector::{LIMIT, Running, start};
use super::folding::differences;
use super::{config_of, database, server};

/// A source that follows a table through a link; its snapshot is done.
async fn linked(name: &str) -> Result<(Proxy, Running)> {
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))"]).await?;
    let proxy = Proxy::to(server().address()).await?;
    // As often as while tables are read, so that no calmer connection takes the place of the one that a test breaks.
    let config = MysqlConfig { heartbeat: Duration::from_millis(500), ..config_of(&proxy.address(), name) };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    Ok((proxy, running))
}

/// Five rows in one transaction.
async fn insert(name: &str, round: u32) -> Result<()> {
    let values: Vec<String> = (0..5).map(|row| format!("({}, REPEAT('v', 150))", round * 5 + row)).collect();
    server().run(&[format!("INSERT INTO {name}.t VALUES {}", values.join(",")).as_str()]).await
}

async fn until_rows(running: &mut Running, name: &str, rows: usize) -> Result<()> {
    running.until("the rows", |taken| (taken.target.rows(name, "t").len() == rows).then_some(())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_link_is_found_by_its_silence() -> Result<()> {
    let name = "link_dead";
    let (proxy, mut running) = linked(name).await?;
    insert(name, 0).await?;
    until_rows(&mut running, name, 5).await?;
    let before = running.progress.borrow().reconnects;
    proxy.hold();
    let began = Instant::now();
    insert(name, 1).await?;
    until_rows(&mut running, name, 10).await?;
    // Three heartbeats, and some time to notice and to connect.
    ensure!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    running.until_progress(|progress| progress.reconnects == before + 1).await?;
    let why = running.progress.borrow().last_disconnect.clone().context("a reason is kept")?;
    ensure!(why.contains("half-open"), "{why}");
    running.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cuts_and_flipped_bits_lose_and_repeat_nothing() -> Result<()> {
    let name = "link_cut";
    let (proxy, mut running) = linked(name).await?;
    let mut struck = 0;
    for round in 0..60 {
        // An insert takes about a thousand bytes of the log: the places go all through it.
        let place = (round / 2) * 37;
        if round % 2 == 0 {
            proxy.cut_after(place);
        } else {
            proxy.flip_after(place);
        }
        insert(name, round).await?;
        until_rows(&mut running, name, 5 * (round as usize + 1)).await?;
        struck += u32::from(proxy.has_struck());
    }
    let reconnects = running.progress.borrow().reconnects;
    ensure!(struck > 40 && reconnects > 30, "{struck} struck, {reconnects} reconnects");
    let target = running.stop().await?;
    ensure!(target.log.len() == 300, "each row came once: {}", target.log.len());
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_never_comes_through_ends_the_run_in_words() -> Result<()> {
    let name = "link_short";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)"]).await?;
    let proxy = Proxy::to(server().address()).await?;
    let config = MysqlConfig {
        reconnect_timeout: Duration::from_secs(2),
        // No calmer connection is under way when the link is broken.
        heartbeat: Duration::from_millis(500),
        ..config_of(&proxy.address(), name)
    };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    // Enough to log in and be sent the log, not enough for the row.
    proxy.bring(Some(100_000));
    proxy.hold();
    server().run(&[format!("INSERT INTO {name}.t VALUES (1, REPEAT('v', 1000000))").as_str()]).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.code.as_str(), error.verdict), ("mysql-log-stands", Verdict::Stop), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_slow_down_when_all_is_read() -> Result<()> {
    let name = "link_calm";
    // A server of its own, since all of its dumps are looked at.
    let own = Server::start()?;
    own.run(&["CREATE DATABASE link_calm", "CREATE TABLE link_calm.t (id INT PRIMARY KEY)"]).await?;
    let config = MysqlConfig { heartbeat: Duration::from_secs(7), ..config_of(&own.address(), name) };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let mut connection = own.connect().await?;
    let query = "SELECT v.variable_value FROM performance_schema.user_variables_by_thread v \
                 JOIN performance_schema.threads t USING (thread_id) \
                 WHERE v.variable_name = 'master_heartbeat_period' AND t.processlist_command LIKE 'Binlog Dump%'";
    loop {
        let periods: Vec<String> = connection.query(query).await?;
        if periods == ["7000000000"] {
            break;
        }
        // Goes on until it is so; the source's own error or the limit ends it.
        running.cut().await?;
    }
    own.run(&["INSERT INTO link_calm.t VALUES (1)"]).await?;
    until_rows(&mut running, name, 1).await?;
    ensure!(running.progress.borrow().reconnects == 0, "nothing was lost: {:?}", *running.progress.borrow());
    running.kill().await;
    Ok(())
}

/// A source that follows a table through a link, as an account whose password was changed since.
async fn with_changed_password(name: &str, password: Secret) -> Result<(Server, Proxy, Running)> {
    let own = Server::start()?;
    own.run(&[&format!("CREATE DATABASE {name}"), &format!("CREATE TABLE {name}.t (id INT PRIMARY KEY)")]).await?;
    let proxy = Proxy::to(own.address()).await?;
    let config = MysqlConfig { username: "cdc_native".to_owned(), password, ..config_of(&proxy.address(), name) };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    own.run(&["ALTER USER cdc_native IDENTIFIED WITH mysql_native_password BY 'other'"]).await?;
    Ok((own, proxy, running))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_password_ends_the_run_in_words() -> Result<()> {
    let (_own, proxy, running) = with_changed_password("link_password", Secret::new(PASSWORD)).await?;
    proxy.hold();
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Config), "{error:?}");
    ensure!(error.code == "mysql-login" && !format!("{error:?}").contains(PASSWORD), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_read_again_where_its_file_has_another() -> Result<()> {
    let name = "link_rotated";
    let file = tempfile::NamedTempFile::new()?;
    let password = Secret::of_file(PASSWORD.to_owned(), Some(file.path().to_owned()));
    std::fs::write(file.path(), format!("{PASSWORD}\n"))?;
    let (own, proxy, mut running) = with_changed_password(name, password).await?;
    proxy.hold();
    let mut connection = own.connect().await?;
    loop {
        let refused: Option<(String, u64)> =
            connection.query_first("SHOW GLOBAL STATUS LIKE 'Aborted_connects'").await?;
        if refused.is_some_and(|(_, count)| count > 0) {
            break;
        }
        // The source's own error or the limit ends it.
        running.until_progress(|_| true).await?;
    }
    std::fs::write(file.path(), "other\n")?;
    own.run(&["INSERT INTO link_rotated.t VALUES (1)"]).await?;
    until_rows(&mut running, name, 1).await?;
    running.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_shown_while_nothing_is_taken() -> Result<()> {
    let name = "link_held";
    let (_proxy, mut running) = linked(name).await?;
    running.hold.send_replace(true);
    insert(name, 0).await?;
    running.until_progress(|progress| progress.tables.values().map(|table| table.changes).sum::<u64>() == 5).await?;
    running.progress.mark_unchanged();
    for _ in 0..3 {
        tokio::time::timeout(LIMIT, running.progress.changed()).await.context("progress goes on")??;
    }
    assert_eq!(running.taken.lock().expect("no panic").target.log.len(), 0);
    running.hold.send_replace(false);
    until_rows(&mut running, name, 5).await?;
    running.kill().await;
    Ok(())
}
