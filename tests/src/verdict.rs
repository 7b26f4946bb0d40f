//! Whether a lake holds what its source holds, by the server's own word and by other people's readers.

use std::fmt;

use anyhow::{Context, Result};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::lake::LakeReader;
use crate::origin;
use crate::pipeline::Pipeline;
use crate::rows::{Difference, Table, differences};
use crate::server::Server;

/// Differences that are kept as text; more are only counted.
const SHOWN_MAX: usize = 20;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Tables without a difference.
    pub equal: usize,
    /// Rows that the source has in them.
    pub rows: usize,
    /// How many differences there are, over all readers.
    pub differences: usize,
    /// The first of them in words.
    pub shown: Vec<String>,
}

impl Verdict {
    /// Counts a difference.
    pub fn add(&mut self, difference: impl fmt::Display) {
        self.differences += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(difference.to_string());
        }
    }
}

/// Compares every table of `database` with what each reader finds in the lake. Nothing may change meanwhile.
pub async fn compare(
    server: &Server,
    pipeline: &Pipeline,
    database: &str,
    readers: &mut [LakeReader],
) -> Result<Verdict> {
    let mut connection = server.connect().await?;
    let mut verdict = Verdict::default();
    for table in origin::describe_all(&mut connection, database).await? {
        compare_table(&mut connection, pipeline, &table, readers, &mut verdict).await?;
    }
    connection.disconnect().await?;
    Ok(verdict)
}

/// Compares one table with what each reader finds in the lake; gives the number of its rows.
pub async fn compare_table(
    connection: &mut Conn,
    pipeline: &Pipeline,
    table: &Table,
    readers: &mut [LakeReader],
    verdict: &mut Verdict,
) -> Result<usize> {
    let source = origin::rows(connection, table).await?;
    let before = verdict.differences;
    verdict.rows += source.len();
    let path = pipeline.table(&table.database, &table.name);
    for reader in readers.iter_mut() {
        let target = reader.rows(&path, table, None).with_context(|| table.to_string())?;
        for difference in differences(table, &source, &target) {
            verdict.add(format!("{table} ({}): {difference}", reader.name()));
        }
    }
    verdict.equal += usize::from(verdict.differences == before);
    Ok(source.len())
}

/// Damages what is compared, behind the pipeline's back: a row that only the source has, one that was changed there
/// alone, one that the reader gives twice. Adds a difference if not exactly these are found.
pub async fn plant(
    server: &Server,
    pipeline: &Pipeline,
    database: &str,
    reader: &mut LakeReader,
    verdict: &mut Verdict,
) -> Result<()> {
    let mut connection = server.connect().await?;
    let table = origin::describe(&mut connection, database, "customers").await?;
    let mut target = reader.rows(&pipeline.table(database, "customers"), &table, None)?;
    let keys: Vec<String> =
        connection.query(format!("SELECT CAST(id AS CHAR) FROM {database}.customers ORDER BY id DESC LIMIT 2")).await?;
    let [doubled, changed] = &keys[..] else { anyhow::bail!("the shop has lost its customers") };
    connection.query_drop("SET sql_log_bin = 0").await?;
    connection
        .query_drop(format!("UPDATE {database}.customers SET credit = credit + 0.01 WHERE id = {changed}"))
        .await?;
    let lost = "9000000000000000000";
    connection
        .query_drop(format!(
            "INSERT INTO {database}.customers SELECT {lost}, name, email, born, credit, active, notes, photo, created, seen \
             FROM {database}.customers WHERE id = {doubled}"
        ))
        .await?;
    target.double(&table, doubled)?;
    let source = origin::rows(&mut connection, &table).await?;
    connection.disconnect().await?;
    let found = differences(&table, &source, &target);
    let is_planted = |difference: &Difference| match difference {
        Difference::Lost(key) => key == lost,
        Difference::Doubled(key) => key == doubled,
        Difference::Changed(key, columns) => key == changed && columns.len() == 1,
        Difference::Extra(_) => false,
    };
    if found.len() != 3 || !found.iter().all(is_planted) {
        verdict.add(format!("planted one lost, one doubled and one changed row, found {found:?}"));
    }
    Ok(())
}
