//! Snapshot and stream together, under load, over restarts and lost connections.

use std::time::Duration;

use anyhow::{Result, ensure};
use cdchost_config::{ByteSize, MysqlConfig, StartupMode};
use cdchost_connector::{SnapshotState, SourceEnd, SourcePhase, StopClass, Verdict};
use cdchost_model::Op;
use cdchost_mysql::Fault;
use cdchost_tests::server::Server;
use cdchost_tests::wait;
use mysql_async::prelude::Queryable;

use super::collector::{replays_alike, start};
use super::folding::differences;
use super::load::{Load, is_found_out, read_under_load};
use super::{config, config_of, database, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_follow_the_snapshot() -> Result<()> {
    let name = "follow_simple";
    database(
        name,
        &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c')"],
    )
    .await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until("the snapshot", |taken| (taken.target.rows(name, "t").len() == 3).then_some(())).await?;
    server()
        .run(&[
            "USE follow_simple",
            "INSERT INTO t VALUES (4,'d')",
            "UPDATE t SET v='x' WHERE id<=2",
            "UPDATE t SET id=30 WHERE id=3",
            "DELETE FROM t WHERE id=1",
        ])
        .await?;
    running.until("the last change", |taken| (taken.target.log.len() >= 11).then_some(())).await?;
    let target = running.stop().await?;
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_stale_under_load() -> Result<()> {
    for round in 0..2 {
        let (target, found) =
            read_under_load(server(), &config(""), &format!("follow_load_{round}"), Fault::None).await?;
        assert_eq!(found, Vec::<String>::new());
        let reads = target.log.iter().filter(|(_, _, op)| *op == Op::Read).count();
        let changes = target.log.len() - reads;
        ensure!(reads > 300 && changes > 100, "reads and changes met: {reads} reads, {changes} changes");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_naive_watermark_is_found_out() -> Result<()> {
    for fault in [Fault::NoWait, Fault::LateCollector] {
        ensure!(is_found_out(server(), &config(""), fault).await, "{fault:?} was not noticed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_from_their_cuts() -> Result<()> {
    let name = "follow_restart";
    let load = Load::begin(server(), name, 4).await?;
    let mut config = config(name);
    (config.readers, config.chunk.rows) = (5, 25);
    let mut from = None;
    let mut chunks = 0;
    for _ in 0..12 {
        let mut running = start(&config, SourceEnd::Never, from.as_ref()).await?;
        let before: u64 = chunks;
        running
            .until_progress(|progress| {
                let tables = progress.tables.values();
                let all_done = tables.clone().all(|table| table.snapshot == SnapshotState::Done);
                progress.phase != SourcePhase::Starting && all_done
                    || tables.map(|t| t.chunks_done).sum::<u64>() > before
            })
            .await?;
        let cut = running.cut().await?;
        let progress = running.progress.borrow().clone();
        chunks = progress.tables.values().map(|table| table.chunks_done).sum();
        running.kill().await;
        from = Some(cut);
    }
    load.end().await?;
    let mut running = start(&config, SourceEnd::Never, from.as_ref()).await?;
    running.until_done(name).await?;
    running.until_caught_up(server()).await?;
    let target = running.stop().await?;
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_give_the_same_numbers() -> Result<()> {
    let name = "follow_replay";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,2)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let cut = running.cut().await?;
    let statements: Vec<String> = (3..40).map(|id| format!("INSERT INTO {name}.t VALUES ({id}, 0)")).collect();
    server().run(&statements.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    running.until_caught_up(server()).await?;
    let first = running.cut().await?;
    running.kill().await;
    replays_alike(server(), &config(name), &cut, &first).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounded_runs_end() -> Result<()> {
    let name = "follow_bounded";
    database(
        name,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "CREATE TABLE nothing (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
        ],
    )
    .await?;
    for end in [SourceEnd::Snapshot, SourceEnd::CaughtUp] {
        let target = start(&config(name), end, None).await?.until_the_end().await?;
        assert_eq!(target.rows(name, "t").len(), 1, "{end:?}");
    }
    let snapshot = MysqlConfig { startup: StartupMode::Snapshot, ..config(name) };
    assert_eq!(start(&snapshot, SourceEnd::Never, None).await?.until_the_end().await?.rows(name, "t").len(), 1);
    // From now on: no row of before.
    let latest = MysqlConfig { startup: StartupMode::Latest, ..config(name) };
    let mut running = start(&latest, SourceEnd::Never, None).await?;
    server().run(&["INSERT INTO follow_bounded.t VALUES (2)"]).await?;
    running.until("the new row", |taken| (!taken.target.log.is_empty()).then_some(())).await?;
    assert_eq!(running.stop().await?.rows(name, "t"), [["2"]]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_mended() -> Result<()> {
    let name = "follow_lost";
    // A server of its own, since all of its dumps are ended.
    let own = Server::start()?;
    own.run(&[
        "CREATE DATABASE follow_lost",
        "CREATE TABLE follow_lost.t (id INT PRIMARY KEY)",
        "INSERT INTO follow_lost.t VALUES (1)",
    ])
    .await?;
    let mut running = start(&config_of(&own.address(), name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let mut connection = own.connect().await?;
    for id in 2..6 {
        let dumps: Vec<u64> = connection
            .query("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump GTID'")
            .await?;
        for dump in dumps {
            // It may have gone by itself.
            let _ = connection.query_drop(format!("KILL {dump}")).await;
        }
        connection.query_drop(format!("INSERT INTO {name}.t VALUES ({id})")).await?;
        running
            .until("the row behind the cut", |taken| (taken.target.rows(name, "t").len() == id).then_some(()))
            .await?;
    }
    let progress = running.progress.borrow().clone();
    assert!(progress.reconnects >= 1, "{progress:?}");
    let target = running.stop().await?;
    assert_eq!(target.log.len(), 5, "no row came twice: {:?}", target.log);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_transaction_streams_on_and_holds_the_cut_back() -> Result<()> {
    let name = "follow_large";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))"]).await?;
    let config = MysqlConfig { transaction_max_buffer: ByteSize(1 << 20), ..config(name) };
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let double = "INSERT INTO t (v) SELECT v FROM t";
    let mut statements = vec!["USE follow_large", "BEGIN", "INSERT INTO t (v) VALUES (REPEAT('x',200))"];
    statements.extend([double; 16]);
    statements.push("COMMIT");
    server().run(&statements).await?;
    let mut counts = Vec::new();
    loop {
        let cut = running.cut().await?;
        counts.push(cut.target.rows(name, "t").len());
        if counts.last() == Some(&(1 << 16)) {
            break;
        }
    }
    assert!(counts.iter().all(|&count| count == 0 || count == 1 << 16), "a cut inside of a transaction: {counts:?}");
    let target = running.stop().await?;
    assert!(target.batches > 4, "it came in parts");
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_position_moves_on_a_quiet_table() -> Result<()> {
    let name = "follow_quiet";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    database("follow_busy", &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    let first = running.cut().await?;
    server().run(&["INSERT INTO follow_busy.t VALUES (1)", "FLUSH BINARY LOGS"]).await?;
    running.until_caught_up(server()).await?;
    let second = running.cut().await?;
    running.kill().await;
    assert_ne!(first.barrier.offset, second.barrier.offset);
    server().run(&["INSERT INTO follow_quiet.t VALUES (3)"]).await?;
    let mut again = start(&config(name), SourceEnd::Never, Some(&second)).await?;
    again.until("the row made meanwhile", |taken| (taken.target.rows(name, "t").len() == 1).then_some(())).await?;
    again.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_table_is_picked_up_by_a_restart() -> Result<()> {
    let name = "follow_new";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let cut = running.cut().await?;
    server()
        .run(&[
            "USE follow_new",
            "CREATE TABLE gone (id INT PRIMARY KEY)",
            "INSERT INTO gone VALUES (1)",
            "DROP TABLE gone",
            "CREATE TABLE n (id INT PRIMARY KEY, v INT)",
            "INSERT INTO n VALUES (1, 1), (2, 2)",
            "ALTER TABLE n ADD w INT",
            "UPDATE n SET w = 5 WHERE id = 2",
            "INSERT INTO t VALUES (2)",
        ])
        .await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Reopen, "mysql-table-created"), "{error:?}");
    let mut again = start(&config(name), SourceEnd::Never, Some(&cut)).await?;
    again.until_done(name).await?;
    again.until_caught_up(server()).await?;
    let target = again.stop().await?;
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_rows_pass_in_both_phases() -> Result<()> {
    let name = "follow_big_rows";
    let row = "INSERT INTO follow_big_rows.t SELECT COALESCE(MAX(id), 0) + 1, REPEAT('0123456789abcdef', 1100000) FROM follow_big_rows.t";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)", row, row]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    server().run(&[row]).await?;
    running.until("the third", |taken| (taken.target.rows(name, "t").len() == 3).then_some(())).await?;
    let target = running.stop().await?;
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_changes_do_not_wait() -> Result<()> {
    let name = "follow_latency";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    wait::pass(Duration::from_millis(10)).await;
    for id in 1..50usize {
        let statement = format!("INSERT INTO follow_latency.t VALUES ({id})");
        server().run(&[statement.as_str()]).await?;
        running.until("the row", |taken| (taken.target.rows(name, "t").len() == id).then_some(())).await?;
    }
    running.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_left_out_is_left_out() -> Result<()> {
    let name = "follow_left";
    let columns = "(id INT PRIMARY KEY)";
    let create = [format!("CREATE TABLE kept {columns}"), format!("CREATE TABLE left_out {columns}")];
    database(name, &[&create[0], &create[1], "INSERT INTO kept VALUES (1)", "INSERT INTO left_out VALUES (1)"]).await?;
    let mut first = start(&config(name), SourceEnd::Never, None).await?;
    first.until_done(name).await?;
    let cut = first.cut().await?;
    first.stop().await?;
    server().run(&["INSERT INTO follow_left.left_out VALUES (2)", "INSERT INTO follow_left.kept VALUES (2)"]).await?;
    // By a pattern that is no more than mistyped nothing is left out.
    let mistyped = MysqlConfig { tables: vec![format!("{name}.kept")], ..config(name) };
    let Err(error) = start(&mistyped, SourceEnd::Never, Some(&cut)).await else { panic!("a table is not matched") };
    assert_eq!((error.code.as_str(), error.class), ("mysql-table-not-matched", StopClass::Config), "{error:?}");
    assert!(error.message.contains("follow_left.left_out"), "{error:?}");
    let mut less = config(name);
    less.tables.push(format!("!{name}.left_out"));
    let mut second = start(&less, SourceEnd::Never, Some(&cut)).await?;
    // A statement that would stop the run if the table were still captured.
    server().run(&["ALTER TABLE follow_left.left_out ADD c INT", "INSERT INTO follow_left.kept VALUES (3)"]).await?;
    second.until_caught_up(server()).await?;
    let cut = second.cut().await?;
    let target = second.stop().await?;
    let rows = |table: &str| target.rows(name, table).len();
    assert_eq!((rows("kept"), rows("left_out")), (3, 1));
    let Err(error) = start(&config(name), SourceEnd::Never, Some(&cut)).await else {
        panic!("rows may have gone while the table was left out")
    };
    assert!(error.message.contains("follow_left.left_out"), "{error:?}");
    Ok(())
}
