//! Several readers at one table.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use cdchost_config::{ByteSize, ChunkConfig};
use cdchost_connector::SourceEnd;

use super::collector::start;
use super::folding::differences;
use super::{config, database, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_table_is_read_by_several_in_pieces() -> Result<()> {
    let name = "follow_shared";
    let insert = "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999) \
                  SELECT i MOD 7, CONCAT(IF(i MOD 2, 'k', 'K'), i DIV 100), i, REPEAT('x', IF(i MOD 500 < 20, 20000, 3)) FROM n";
    database(
        name,
        &[
            "CREATE TABLE t (a INT, b VARCHAR(9) COLLATE utf8mb4_general_ci, c INT, v TEXT, PRIMARY KEY (a, b, c))",
            "SET SESSION cte_max_recursion_depth = 3000",
            insert,
        ],
    )
    .await?;
    let mut config = config(name);
    (config.readers, config.chunk) = (4, ChunkConfig { rows: 100, bytes: ByteSize(64 << 10) });
    let log = server().log_statements(true).await?;
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    server().log_statements(false).await?;
    let chunks = running.progress.borrow().tables.values().map(|table| table.chunks_done).sum::<u64>();
    let target = running.stop().await?;
    ensure!(chunks > 40, "chunks were cut by rows and by bytes: {chunks}");
    ensure!(target.log.len() == 3_000, "each row was read once: {}", target.log.len());
    assert_eq!(differences(name, &target).await?, Vec::<String>::new());
    let text = std::fs::read_to_string(log)?;
    let reads = text.lines().filter(|line| line.contains("Execute") && line.contains("`follow_shared`.`t`"));
    let sessions: BTreeSet<_> = reads.filter_map(|line| line.split_whitespace().nth(1)).collect();
    ensure!(sessions.len() >= 4, "several connections read: {sessions:?}");
    Ok(())
}
