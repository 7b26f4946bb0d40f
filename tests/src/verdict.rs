//! Whether a lake holds what its source holds, by the server's own word and by other people's readers.

use std::fmt;

use anyhow::{Context, Result};

use crate::lake::LakeReader;
use crate::origin;
use crate::pipeline::Pipeline;
use crate::rows::differences;
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
        let source = origin::rows(&mut connection, &table).await?;
        let before = verdict.differences;
        verdict.rows += source.len();
        let path = pipeline.table(database, &table.name);
        for reader in readers.iter_mut() {
            let target = reader.rows(&path, &table, None).with_context(|| table.to_string())?;
            for difference in differences(&table, &source, &target) {
                verdict.add(format!("{table} ({}): {difference}", reader.name()));
            }
        }
        verdict.equal += usize::from(verdict.differences == before);
    }
    connection.disconnect().await?;
    Ok(verdict)
}
