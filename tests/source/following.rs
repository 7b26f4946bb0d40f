//! Snapshot and stream together, under load, over restarts and lost connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use cdchost_config::{ByteSize, MysqlConfig, StartupMode};
use cdchost_connector::{SnapshotState, SourceEnd, SourcePhase, Verdict};
use cdchost_model::Op;
use cdchost_mysql::Fault;
use cdchost_tests::server::Server;
use cdchost_tests::wait;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::collector::{Target, start, start_with};
use super::folding::differences;
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

/// Tables with keys of several kinds, each filled with rows that a writer then changes.
const LOADED: [(&str, &str); 3] = [
    ("numbers", "CREATE TABLE numbers (id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(40))"),
    (
        "texts",
        "CREATE TABLE texts (id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT NOT NULL, v VARCHAR(40))",
    ),
    (
        "pairs",
        "CREATE TABLE pairs (a DECIMAL(6,2) NOT NULL, b VARBINARY(8) NOT NULL, n INT NOT NULL, v VARCHAR(40), \
         PRIMARY KEY (b, a)) ",
    ),
];
const KEYS: u32 = 400;

fn key_of(table: &str, key: u32) -> String {
    match table {
        "numbers" => format!("id = {key}"),
        // Upper and lower case are one key to the server and two to everyone else.
        "texts" => format!("id = '{}{key}'", if key.is_multiple_of(2) { "k" } else { "K" }),
        _ => format!("a = {} AND b = x'{:02x}'", f64::from(key) / 4.0, key % 7),
    }
}

/// Changes rows of all tables until it is told to stop; gives the number of transactions.
async fn write(name: String, seed: u64, stop: Arc<AtomicBool>) -> Result<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut connection = server().connect().await?;
    connection.query_drop(format!("USE {name}")).await?;
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let (table, _) = LOADED[rng.random_range(0..LOADED.len())];
        let key = key_of(table, rng.random_range(0..KEYS));
        let assignments = key.replace(" AND ", ", ");
        let n = rng.random_range(0..1_000_000);
        let statement = match rng.random_range(0..10) {
            0..=4 => format!("UPDATE {table} SET n = {n}, v = 'u{n}' WHERE {key}"),
            5 | 6 => format!("DELETE FROM {table} WHERE {key}"),
            _ => format!("REPLACE INTO {table} SET {assignments}, n = {n}, v = 'i{n}'"),
        };
        match connection.query_drop(statement).await {
            Ok(()) => count += 1,
            // Writers may block each other.
            Err(mysql_async::Error::Server(error)) if matches!(error.code, 1205 | 1213) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(count)
}

struct Load {
    stop: Arc<AtomicBool>,
    writers: JoinSet<Result<u64>>,
}

impl Load {
    async fn begin(name: &str, writers: u64) -> Result<Self> {
        let mut statements: Vec<String> = LOADED.iter().map(|(_, create)| (*create).to_owned()).collect();
        for (table, _) in LOADED {
            for key in 0..KEYS {
                let assignments = key_of(table, key).replace(" AND ", ", ");
                statements.push(format!("INSERT INTO {table} SET {assignments}, n = 0, v = 'first'"));
            }
        }
        database(name, &statements.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = JoinSet::new();
        for seed in 0..writers {
            all.spawn(write(name.to_owned(), seed, Arc::clone(&stop)));
        }
        Ok(Self { stop, writers: all })
    }

    async fn end(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut count = 0;
        while let Some(writer) = self.writers.join_next().await {
            count += writer??;
        }
        Ok(count)
    }
}

/// Reads tables in small chunks while eight writers change them, and compares when all is quiet.
async fn read_under_load(name: &str, fault: Fault) -> Result<(Target, Vec<String>)> {
    let load = Load::begin(name, 8).await?;
    let mut config = config(name);
    // More readers than tables, so that each table is read by several.
    (config.readers, config.chunk.rows) = (7, 10);
    let mut running = start_with(&config, SourceEnd::Never, None, fault).await?;
    let read = running.until_done(name).await;
    let written = load.end().await?;
    read?;
    ensure!(written > 100, "the writers did something: {written}");
    running.until_caught_up(server()).await?;
    let target = running.stop().await?;
    let found = differences(name, &target).await?;
    Ok((target, found))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_stale_under_load() -> Result<()> {
    for round in 0..2 {
        let (target, found) = read_under_load(&format!("follow_load_{round}"), Fault::None).await?;
        assert_eq!(found, Vec::<String>::new());
        let reads = target.log.iter().filter(|(_, _, op)| *op == Op::Read).count();
        let changes = target.log.len() - reads;
        ensure!(reads > 300 && changes > 100, "reads and changes met: {reads} reads, {changes} changes");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_naive_watermark_is_found_out() -> Result<()> {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    for fault in [Fault::NoWait, Fault::LateCollector] {
        let mut found = Vec::new();
        for _ in 0..20 {
            let round = ROUND.fetch_add(1, Ordering::Relaxed);
            match read_under_load(&format!("follow_naive_{round}"), fault).await {
                Ok((_, differences)) => found = differences,
                // A change-seq that goes back is a finding too; the collector says so by a panic.
                Err(error) => found.push(error.to_string()),
            }
            if !found.is_empty() {
                break;
            }
        }
        assert!(!found.is_empty(), "{fault:?} was not noticed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_from_their_cuts() -> Result<()> {
    let name = "follow_restart";
    let load = Load::begin(name, 4).await?;
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
    let mut again = start(&config(name), SourceEnd::Never, Some(&cut)).await?;
    again.until_caught_up(server()).await?;
    let second = again.cut().await?;
    again.kill().await;
    assert_eq!(first.target.tables, second.target.tables);
    assert_eq!(first.barrier.change_seq, second.barrier.change_seq);
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
