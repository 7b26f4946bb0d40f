//! Tables without a key: equal rows, read as they are at one place of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use cdchost_config::{MysqlConfig, Watermark};
use cdchost_connector::{SnapshotState, SourceEnd, StopClass, Verdict};
use cdchost_model::Op;
use cdchost_tests::server::Server;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::collector::start;
use super::folding::differences_from;
use super::mariadb::mariadb;
use super::placing::{locking, plain};
use super::refusing::refused;
use super::{config, database, database_on, server};

/// Many equal rows, and more of them than a batch holds.
const TABLES: [&str; 5] = [
    "CREATE TABLE bag (a INT, b VARCHAR(20))",
    "INSERT INTO bag WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900) SELECT n % 9, 'x' FROM n",
    "INSERT INTO bag SELECT bag.* FROM bag, (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS n, \
     (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) AS m",
    "CREATE TABLE other (d DECIMAL(9,2), e ENUM('p','q'))",
    "CREATE TABLE keyed (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
];

/// Adds, changes and takes away single ones of equal rows.
async fn write(server: &'static Server, name: String, seed: u64, stop: Arc<AtomicBool>) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut connection = server.connect().await?;
    connection.query_drop(format!("USE {name}")).await?;
    while !stop.load(Ordering::Relaxed) {
        let (a, n) = (rng.random_range(0..9), rng.random_range(0..5));
        let statement = match rng.random_range(0..5) {
            0 => format!("INSERT INTO bag VALUES ({a}, 'x'), ({a}, 'x'), (NULL, 'n{n}')"),
            1 => format!("DELETE FROM bag WHERE a = {a} LIMIT 2"),
            2 => format!("UPDATE bag SET a = {n}, b = 'u' WHERE a = {a} LIMIT 3"),
            3 => format!("INSERT INTO other VALUES ({n}.5, 'p')"),
            _ => format!("INSERT INTO keyed (v) VALUES ({n})"),
        };
        match connection.query_drop(statement).await {
            // Writers may block each other.
            Err(mysql_async::Error::Server(error)) if matches!(error.code, 1205 | 1213) => {}
            written => written?,
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_rows_are_neither_lost_nor_doubled_under_load() -> Result<()> {
    let gtids = MysqlConfig { watermark: Watermark::Gtid, ..locking(server(), "").await? };
    let cases = [
        (server(), "keyless_gtid", gtids),
        (plain(), "keyless_place", locking(plain(), "").await?),
        (mariadb(), "keyless_view", super::mariadb::config("")),
    ];
    for (server, name, config) in cases {
        database_on(server, name, &TABLES).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for seed in 0..4 {
            writers.spawn(write(server, name.to_owned(), seed, Arc::clone(&stop)));
        }
        let config = MysqlConfig { tables: vec![format!("{name}.*")], ..config };
        let mut running = start(&config, SourceEnd::Never, None).await?;
        let read = running.until_done(name).await;
        // Changes behind the place come too.
        let seen = running.taken.lock().expect("no test panics with the lock").target.log.len();
        let more = running.until("changes", |taken| (taken.target.log.len() > seen + 50).then_some(())).await;
        stop.store(true, Ordering::Relaxed);
        while let Some(writer) = writers.join_next().await {
            writer??;
        }
        read.and(more)?;
        running.until_caught_up(server).await?;
        let progress = running.progress.borrow().clone();
        let target = running.stop().await?;
        assert_eq!(differences_from(server, name, &target).await?, Vec::<String>::new(), "{name}");
        let reads = target.log.iter().filter(|(id, _, op)| id.table == "bag" && *op == Op::Read).count();
        ensure!(reads > 18_000, "{name}: {reads} rows read");
        let shown = progress.tables.iter().find(|(id, _)| id.table == "bag").map(|(_, table)| table.rows_read);
        assert_eq!(shown, Some(reads as u64), "{name}");
    }
    Ok(())
}

/// The tables of this database, of which one has more rows than what lies between server and source holds.
async fn make_large(name: &str) -> Result<()> {
    let double = "INSERT INTO bag SELECT * FROM bag";
    database(name, &[&TABLES[..], &[double; 4]].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_inside_of_a_table_reads_it_again() -> Result<()> {
    let name = "keyless_killed";
    make_large(name).await?;
    let config = MysqlConfig { watermark: Watermark::Gtid, ..locking(server(), name).await? };
    let mut held = start(&config, SourceEnd::Never, None).await?;
    held.until("rows", |taken| (taken.target.batches > 1).then_some(())).await?;
    held.hold.send_replace(true);
    let shown = held.progress.borrow().clone();
    assert_eq!(shown.in_one_piece.as_deref(), Some("table keyless_killed.bag, which has no key"));
    held.kill().await;
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let cut = running.cut().await?;
    running.kill().await;
    server().run(&["DELETE FROM keyless_killed.bag WHERE a = 3 LIMIT 5"]).await?;
    let mut running = start(&config, SourceEnd::Never, Some(&cut)).await?;
    running.until_caught_up(server()).await?;
    let target = running.stop().await?;
    assert_eq!(differences_from(server(), name, &target).await?, Vec::<String>::new());
    let reads = target.log.iter().filter(|(id, _, op)| id.table == "bag" && *op == Op::Read).count();
    assert_eq!(reads, 18_900 << 4, "what is in a cut is not read again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_cut_short_begins_anew_from_the_last_record() -> Result<()> {
    let name = "keyless_cut";
    make_large(name).await?;
    let mut config = MysqlConfig { watermark: Watermark::Gtid, ..locking(server(), name).await? };
    config.tables = vec![format!("{name}.bag")];
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until("rows", |taken| (taken.target.batches > 1).then_some(())).await?;
    running.hold.send_replace(true);
    let mut connection = server().connect().await?;
    let reading: Vec<u64> = connection
        .query("SELECT id FROM information_schema.processlist WHERE user = 'locking' AND command = 'Execute' AND info LIKE '%keyless_cut%'")
        .await?;
    ensure!(reading.len() == 1, "one reads: {reading:?}");
    connection.query_drop(format!("KILL {}", reading[0])).await?;
    running.hold.send_replace(false);
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Restart, "mysql-whole-table"), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_hold_a_table_are_waited_for() -> Result<()> {
    let name = "keyless_held";
    database(name, &["CREATE TABLE bag (a INT)", "INSERT INTO bag VALUES (1), (1)"]).await?;
    let config = MysqlConfig { watermark: Watermark::Gtid, ..locking(server(), name).await? };
    let mut writer = server().connect().await?;
    for statement in ["BEGIN", "INSERT INTO keyless_held.bag VALUES (2)"] {
        writer.query_drop(statement).await?;
    }
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_progress(|progress| progress.caught_up).await?;
    let waiting = running.progress.borrow().tables.values().all(|table| table.snapshot == SnapshotState::Waiting);
    ensure!(waiting, "nobody can see the table while a writer has it");
    writer.query_drop("COMMIT").await?;
    running.until_done(name).await?;
    let target = running.stop().await?;
    assert_eq!(target.rows(name, "bag"), [["1"], ["1"], ["2"]]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_to_lock_is_asked_for_by_name() -> Result<()> {
    let name = "keyless_right";
    database(name, &["CREATE TABLE bag (a INT)", "CREATE TABLE keyed (id INT PRIMARY KEY)"]).await?;
    let error = refused(&config(name)).await;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Source));
    assert!(error.message.starts_with("the account may not lock table keyless_right.bag"), "{}", error.message);
    assert_eq!(error.message.lines().count(), 1, "{}", error.message);
    let instruction = error.instruction;
    assert!(instruction.starts_with("GRANT LOCK TABLES ON `keyless_right`.* TO 'cdc_min'@'%'"), "{instruction}");
    Ok(())
}
