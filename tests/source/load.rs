//! Writers that change tables while a source reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, ensure};
use cdchost_config::{ChunkConfig, MysqlConfig};
use cdchost_connector::{SnapshotState, SourceEnd};
use cdchost_mysql::Fault;
use cdchost_tests::server::{Flavor, Server};
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::collector::{TakenCut, Target, start, start_with};
use super::database_on;
use super::folding::differences_from;

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
async fn write(server: &'static Server, name: String, seed: u64, stop: Arc<AtomicBool>) -> Result<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut connection = server.connect().await?;
    connection.query_drop(format!("USE {name}")).await?;
    if server.flavor() == Flavor::Mysql9 && seed % 2 == 1 {
        connection.query_drop(format!("SET SESSION gtid_next = 'AUTOMATIC:tag_{seed}'")).await?;
    }
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

/// Writers that change all tables.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    writers: JoinSet<Result<u64>>,
}

impl Load {
    pub(crate) async fn begin(server: &'static Server, name: &str, writers: u64) -> Result<Self> {
        let mut statements: Vec<String> = LOADED.iter().map(|(_, create)| (*create).to_owned()).collect();
        for (table, _) in LOADED {
            for key in 0..KEYS {
                let assignments = key_of(table, key).replace(" AND ", ", ");
                statements.push(format!("INSERT INTO {table} SET {assignments}, n = 0, v = 'first'"));
            }
        }
        database_on(server, name, &statements.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = JoinSet::new();
        for seed in 0..writers {
            all.spawn(write(server, name.to_owned(), seed, Arc::clone(&stop)));
        }
        Ok(Self { stop, writers: all })
    }

    pub(crate) async fn end(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut count = 0;
        while let Some(writer) = self.writers.join_next().await {
            count += writer??;
        }
        Ok(count)
    }
}

/// Runs that end one after the other while tables are read, each at least so many chunks further than the one before, or
/// at the end of the tables; the log's file changes between them. Gives the last one's cut.
pub(crate) async fn ended_runs(
    server: &Server,
    config: &MysqlConfig,
    (rounds, chunks): (u64, u64),
) -> Result<Option<TakenCut>> {
    let mut from = None;
    for round in 1..=rounds {
        let mut running = start(config, SourceEnd::Never, from.as_ref()).await?;
        running
            .until_progress(|progress| {
                let tables = || progress.tables.values();
                let done = tables().filter(|table| table.snapshot == SnapshotState::Done).count();
                // The writers leave fewer rows from round to round.
                done == LOADED.len() || tables().map(|table| table.chunks_done).sum::<u64>() >= round * chunks
            })
            .await?;
        from = Some(running.cut().await?);
        running.kill().await;
        server.run(&["FLUSH BINARY LOGS"]).await?;
    }
    Ok(from)
}

/// Reads tables in small chunks while eight writers change them, and compares when all is quiet. `config` says how.
pub(crate) async fn read_under_load(
    server: &'static Server,
    config: &MysqlConfig,
    name: &str,
    fault: Fault,
) -> Result<(Target, Vec<String>)> {
    let load = Load::begin(server, name, 8).await?;
    // More readers than tables, so that each table is read by several.
    let chunk = ChunkConfig { rows: 10, ..config.chunk.clone() };
    let config = MysqlConfig { tables: vec![format!("{name}.*")], readers: 7, chunk, ..config.clone() };
    let mut running = start_with(&config, SourceEnd::Never, None, fault).await?;
    let read = running.until_done(name).await;
    let written = load.end().await?;
    read?;
    ensure!(written > 50, "the writers did something: {written}");
    running.until_caught_up(server).await?;
    let target = running.stop().await?;
    let found = differences_from(server, name, &target).await?;
    Ok((target, found))
}

/// Whether a fault is noticed within so many rounds that it must be.
pub(crate) async fn is_found_out(server: &'static Server, config: &MysqlConfig, fault: Fault) -> bool {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    for _ in 0..20 {
        let round = ROUND.fetch_add(1, Ordering::Relaxed);
        match read_under_load(server, config, &format!("naive_{round}"), fault).await {
            Ok((_, differences)) if differences.is_empty() => {}
            // A change-seq that goes back is a finding too; the collector says so by a panic.
            _ => return true,
        }
    }
    false
}
