//! Puts the benchmark data into a server.

use anyhow::Result;
use mysql_async::prelude::*;
use mysql_async::{Conn, OptsBuilder};

use crate::changes::{Changes, statements};
use crate::rows;

/// A connection as root.
pub(crate) async fn connect(port: u16) -> Result<Conn> {
    let options = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port).user(Some("root"));
    Ok(Conn::new(options).await?)
}

/// Makes `bench.TABLE` with `count` rows, outside the log.
pub(crate) async fn load(conn: &mut Conn, table: &str, count: u64) -> Result<()> {
    conn.query_drop("SET sql_log_bin=0, unique_checks=0, foreign_key_checks=0").await?;
    conn.query_drop("CREATE DATABASE IF NOT EXISTS bench").await?;
    conn.query_drop("USE bench").await?;
    conn.query_drop(format!("DROP TABLE IF EXISTS {table}")).await?;
    conn.query_drop(if table == "wide" { rows::WIDE } else { rows::SBTEST }).await?;
    let blocks: Box<dyn Iterator<Item = Vec<u8>> + Send + Sync> =
        if table == "wide" { Box::new(rows::wide(count)) } else { Box::new(rows::sbtest(count)) };
    let stream = futures_util::stream::iter(blocks.map(|block| Ok(block.into())));
    conn.set_infile_handler(async move { Ok(Box::pin(stream) as mysql_async::InfileData) });
    conn.query_drop(format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4")).await?;
    conn.query_drop(format!("ANALYZE LOCAL TABLE {table}")).await?;
    conn.query_drop("SET sql_log_bin=1").await?;
    Ok(())
}

/// Makes the changes, in a log file of their own; which, and the byte before the first of them.
pub(crate) async fn change(conn: &mut Conn, changes: &Changes) -> Result<(String, u32)> {
    conn.query_drop("FLUSH BINARY LOGS").await?;
    let row: Option<(String, u32, String, String, String)> = conn.query_first("SHOW MASTER STATUS").await?;
    let (file, position, _, _, _) = row.ok_or_else(|| anyhow::anyhow!("the server writes no log"))?;
    conn.query_drop("USE bench").await?;
    for statement in statements(changes) {
        conn.query_drop(statement).await?;
    }
    Ok((file, position))
}
