//! A reading connection, and what is prepared on it for the table at hand.

use std::collections::HashMap;
use std::sync::Arc;

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_mysql_look::session::Login;
use cdchost_mysql_row::{Columns, KeyValue, ResultPlan, TableLayout};
use cdchost_mysql_wire::{Connection, NextRow, Statement};
use tokio::sync::mpsc;

use super::reader::Failure;
use super::shares::SharedTable;
use super::walk::{Query, Range, chunk_params, cut_params};
use super::whole::{WholeJob, WholeRows};
use crate::binlog::{BATCH_BYTES, BATCH_ROWS, value_error};
use crate::remedy::leave_out;

pub(super) const IN_SNAPSHOT: &str = " (read by the snapshot)";

/// A connection and what is prepared on it.
pub(super) struct Session {
    pub(super) connection: Connection,
    login: Arc<Login>,
    /// The table that the prepared queries are for.
    table: Option<usize>,
    prepared: HashMap<Query, Prepared>,
}

struct Prepared {
    statement: Statement,
    plan: ResultPlan,
}

/// How a chunk is read.
#[derive(Clone, Copy)]
pub(super) struct ReadLimits {
    pub(super) rows: u32,
    pub(super) bytes: u64,
    /// With share locks.
    pub(super) locks: bool,
}

/// What a query gave.
pub(super) struct ReadRows {
    pub(super) rows: u32,
    pub(super) bytes: u64,
    /// The key of the last row.
    pub(super) last: Option<Vec<KeyValue>>,
    /// The result was read to its end.
    pub(super) is_whole: bool,
}

impl Session {
    pub(super) async fn connect(login: &Arc<Login>) -> Result<Self, Failure> {
        let connection = login.connect().await?;
        Ok(Self { connection, login: Arc::clone(login), table: None, prepared: HashMap::new() })
    }

    /// Whether it is to the host that these options name.
    pub(super) fn is_to(&self, login: &Login) -> bool {
        self.login.is_to_the_host_of(login)
    }

    /// Reads rows of a stretch until the result or the bytes allowed end; at most so many rows.
    pub(super) async fn read_rows(
        &mut self,
        share: &SharedTable,
        range: &Range,
        limits: ReadLimits,
        columns: &mut Columns,
    ) -> Result<ReadRows, Failure> {
        let (connection, Prepared { statement, plan }) =
            self.prepare(share.table, Query::chunk(range, limits.locks), &share.layout).await?;
        let params = chunk_params(range, limits.rows);
        let mut stream = connection.execute(statement, &params).await?;
        let columns = columns.as_mut_slice();
        let (mut rows, mut bytes, mut is_whole) = (0u32, 0u64, true);
        loop {
            match stream.next_buffered()? {
                NextRow::Row(row) => {
                    bytes += row.len() as u64;
                    rows += 1;
                    plan.read_row(row, columns)
                        .map_err(|error| Failure::Final(value_error(&share.layout, error, IN_SNAPSHOT)))?;
                    if bytes > limits.bytes && rows < limits.rows {
                        is_whole = false;
                        break;
                    }
                }
                NextRow::Nothing => stream.fill().await?,
                NextRow::End => break,
            }
        }
        let last = if rows > 0 { plan.last_key() } else { None };
        Ok(ReadRows { rows, bytes, last, is_whole })
    }

    /// Reads a table whole, batch after batch.
    pub(super) async fn read_all(&mut self, job: &WholeJob, out: &mpsc::Sender<WholeRows>) -> Result<(), Failure> {
        let layout = &job.layout;
        let value_error = |error| Failure::Final(value_error(layout, error, IN_SNAPSHOT));
        let (connection, Prepared { statement, plan }) = self.prepare(job.table, Query::Whole, layout).await?;
        let mut stream = connection.execute(statement, &[]).await?;
        let mut columns = layout.columns();
        let (mut rows, mut bytes) = (0, 0);
        loop {
            let next = stream.next_buffered()?;
            let is_over = matches!(next, NextRow::End);
            match next {
                NextRow::Row(row) => {
                    bytes += row.len();
                    rows += 1;
                    plan.read_row(row, columns.as_mut_slice()).map_err(value_error)?;
                }
                NextRow::Nothing => {
                    stream.fill().await?;
                    continue;
                }
                NextRow::End => {}
            }
            if rows > 0 && (is_over || rows >= BATCH_ROWS || bytes >= BATCH_BYTES) {
                let batch = columns.finish().map_err(value_error)?;
                out.send(WholeRows::Rows(batch)).await.map_err(|_| Failure::Unwanted)?;
                (rows, bytes) = (0, 0);
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// The key that ends a stretch of so many rows; none where fewer follow.
    pub(super) async fn cut(
        &mut self,
        share: &SharedTable,
        after: Option<&[KeyValue]>,
        rows: u32,
    ) -> Result<Option<Vec<KeyValue>>, Failure> {
        let query = Query::Cut { after: after.is_some() };
        let (connection, Prepared { statement, plan }) = self.prepare(share.table, query, &share.key).await?;
        let mut stream = connection.execute(statement, &cut_params(after, rows)).await?;
        let mut columns = share.key.columns();
        let mut key = None;
        loop {
            match stream.next_buffered()? {
                NextRow::Row(row) => {
                    plan.read_row(row, columns.as_mut_slice())
                        .map_err(|error| Failure::Final(value_error(&share.key, error, IN_SNAPSHOT)))?;
                    key = plan.last_key();
                }
                NextRow::Nothing => stream.fill().await?,
                NextRow::End => return Ok(key),
            }
        }
    }

    async fn prepare(
        &mut self,
        table: usize,
        query: Query,
        layout: &TableLayout,
    ) -> Result<(&mut Connection, &mut Prepared), Failure> {
        if self.table != Some(table) {
            for (_, old) in self.prepared.drain() {
                self.connection.close(old.statement).await?;
            }
            self.table = Some(table);
        }
        if !self.prepared.contains_key(&query) {
            let statement = self.connection.prepare(&query.sql(layout)).await?;
            let plan =
                ResultPlan::compile(&statement.columns, layout).map_err(|differs| differs_from(layout, &differs))?;
            self.prepared.insert(query, Prepared { statement, plan });
        }
        let prepared = self.prepared.get_mut(&query).expect("it was just prepared");
        Ok((&mut self.connection, prepared))
    }
}

/// The table's columns are not those that it is known with: the stream will say why, if it comes to that.
fn differs_from(layout: &TableLayout, differs: &str) -> Failure {
    let table = &layout.schema.table;
    let error = ConnectorError::restart(
        StopClass::Schema,
        "mysql-table-differs",
        format!("table {table} differs from what it is known as: {differs}"),
    );
    Failure::Final(
        error
            .with_table(table.clone())
            .with_instruction(format!("if it does not go away by itself: {}", leave_out(table))),
    )
}
