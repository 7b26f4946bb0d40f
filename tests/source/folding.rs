//! What a server holds, compared with what a target in memory does.

use anyhow::Result;
use cdchost_tests::{origin, rows};

use super::collector::Target;

/// How the target differs from what the shared server holds in a database.
pub(crate) async fn differences(database: &str, target: &Target) -> Result<Vec<String>> {
    differences_from(super::server(), database, target).await
}

/// How the target differs from what a server holds in a database.
pub(crate) async fn differences_from(
    server: &cdchost_tests::server::Server,
    database: &str,
    target: &Target,
) -> Result<Vec<String>> {
    let mut connection = server.connect().await?;
    let mut found = Vec::new();
    for table in origin::describe_all(&mut connection, database).await? {
        let source = origin::rows(&mut connection, &table).await?;
        let mut ours = rows::Rows::default();
        for row in target.rows(database, &table.name) {
            ours.put(&table, row)?;
        }
        let all = rows::differences(&table, &source, &ours);
        found.extend(all.into_iter().take(10).map(|difference| format!("{table}: {difference}")));
    }
    Ok(found)
}
