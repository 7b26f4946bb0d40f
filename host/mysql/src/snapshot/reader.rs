//! The reading connection: chunk after chunk, each in a window that the stream arms and closes.

use std::sync::Arc;
use std::time::Duration;

use cdchost_config::ChunkConfig;
use cdchost_connector::{Clock, ConnectorError, StopClass};
use cdchost_mysql_row::{Columns, KeyValue, ResultPlan, TableLayout};
use cdchost_mysql_wire::{ConnectOptions, Connection, NextRow, Remedy, Statement, WireError};
use tokio::sync::{mpsc, oneshot};

use super::walk::{chunk_params, chunk_query};
use super::window::Chunk;
use crate::binlog::value_error;
use crate::gtid::ServerUuid;
use crate::session::{self, SessionError};

/// The first chunk of a table is small, since the size of its rows is not known.
const FIRST_ROWS: u32 = 1_024;
/// A chunk has at most so many times the rows of the one before.
const GROWTH: u32 = 4;
/// How long the server waits in one call for transactions to become visible.
const VISIBLE_WAIT: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What the reader asks of the stream, or hands to it.
#[derive(Debug)]
pub(crate) enum Request {
    /// Open a window for a table. An earlier one of it that has no chunk yet is given up.
    Arm {
        /// The table's place.
        table: usize,
        /// Answered between two transactions.
        reply: oneshot::Sender<Armed>,
    },
    /// The chunk of a window.
    Chunk {
        /// The window.
        number: u64,
        /// What was read.
        chunk: Box<Chunk>,
    },
    /// The reader gives up.
    Failed(ConnectorError),
}

/// A window was opened.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    /// Its number.
    pub(crate) number: u64,
    /// The server that the stream comes from.
    pub(crate) server: ServerUuid,
    /// How to connect to it.
    pub(crate) options: Arc<ConnectOptions>,
    /// The transactions that the stream had handed on, as text.
    pub(crate) executed: String,
}

/// A table to be read.
#[derive(Clone, Debug)]
pub(crate) struct ReaderJob {
    pub(crate) table: usize,
    pub(crate) layout: Arc<TableLayout>,
    /// Where to begin.
    pub(crate) next: Option<Vec<KeyValue>>,
}

/// What the reader works with.
#[derive(Debug)]
pub(crate) struct ReaderSetup {
    pub(crate) jobs: Vec<ReaderJob>,
    pub(crate) chunk: ChunkConfig,
    pub(crate) reconnect_timeout: Duration,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why a chunk was not read.
enum Failure {
    /// The stream is gone: nobody wants chunks any more.
    Unwanted,
    /// The stream comes from another server by now.
    OtherServer,
    /// What the server or the connection said.
    Wire(WireError),
    /// No second try helps.
    Final(ConnectorError),
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Wire(error) => Self::Wire(error),
            other => Self::Final(ConnectorError::stop(StopClass::Source, "mysql-answer", other.to_string())),
        }
    }
}

/// Reads all tables, one after the other.
pub(crate) async fn run(setup: ReaderSetup) {
    let ReaderSetup { jobs, chunk, reconnect_timeout, requests, clock } = setup;
    let mut reader = Reader { session: None, chunk, reconnect_timeout, requests, clock };
    for job in jobs {
        match reader.read_table(job).await {
            Ok(()) => {}
            Err(None) => return,
            Err(Some(error)) => {
                // Nobody listens when the stream has ended for another reason.
                let _ = reader.requests.send(Request::Failed(error)).await;
                return;
            }
        }
    }
}

struct Reader {
    session: Option<Session>,
    chunk: ChunkConfig,
    reconnect_timeout: Duration,
    requests: mpsc::Sender<Request>,
    clock: Arc<dyn Clock>,
}

/// A connection and what is prepared on it.
struct Session {
    connection: Connection,
    options: Arc<ConnectOptions>,
    prepared: Option<Prepared>,
}

/// The query of one table's next chunks.
struct Prepared {
    table: usize,
    behind_key: bool,
    statement: Statement,
    plan: ResultPlan,
}

/// A table's reading.
struct Reading {
    job: ReaderJob,
    columns: Columns,
    /// Rows of the next chunk.
    rows: u32,
}

/// What a query gave.
struct ReadRows {
    rows: u32,
    bytes: u64,
    next: Option<Vec<KeyValue>>,
    /// The result was read to its end.
    is_whole: bool,
}

impl Reader {
    async fn read_table(&mut self, job: ReaderJob) -> Result<(), Option<ConnectorError>> {
        let columns = job.layout.columns();
        let mut reading = Reading { job, columns, rows: FIRST_ROWS.min(self.chunk.rows) };
        let mut failing_since: Option<Duration> = None;
        let mut pause = PAUSE_MIN;
        loop {
            let failure = match self.read_chunk(&mut reading).await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    failing_since = None;
                    pause = PAUSE_MIN;
                    continue;
                }
                Err(failure) => failure,
            };
            reading.columns.truncate(0);
            self.session = None;
            let error = match failure {
                Failure::Unwanted => return Err(None),
                Failure::Final(error) => return Err(Some(error)),
                Failure::OtherServer => None,
                Failure::Wire(error) => Some(error),
            };
            let now = self.clock.elapsed();
            let since = *failing_since.get_or_insert(now);
            if let Some(error) = error {
                tracing::warn!(table = %reading.job.layout.schema.table, %error, "chunk not read, trying again");
                reading.rows = (reading.rows / 2).max(1);
                if now.saturating_sub(since) > self.patience(&error) {
                    return Err(Some(read_error(&reading.job.layout, error)));
                }
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// How long an error is tried against. What the server refuses is often the echo of a statement that the stream
    /// has not come to yet; that one gives the better reason.
    fn patience(&self, error: &WireError) -> Duration {
        match error.remedy() {
            Remedy::Reconnect => self.reconnect_timeout,
            _ => Duration::from_secs(10).min(self.reconnect_timeout),
        }
    }

    /// Reads one chunk in a window of its own; true when it was the table's last.
    async fn read_chunk(&mut self, reading: &mut Reading) -> Result<bool, Failure> {
        let armed = self.arm(reading.job.table).await?;
        if self.session.as_ref().is_none_or(|session| !session.is_to(&armed.options)) {
            let connection = session::connect(&armed.options).await?;
            self.session = Some(Session { connection, options: Arc::clone(&armed.options), prepared: None });
        }
        let session = self.session.as_mut().expect("a session was just made");
        wait_until_visible(&mut session.connection, &armed).await?;
        let read = session.read_rows(reading, self.chunk.bytes.0).await?;
        if !read.is_whole {
            // The rest of the result is given up, and the connection with it.
            let connection = session::connect(&armed.options).await?;
            *session = Session { connection, options: Arc::clone(&armed.options), prepared: None };
            if session::state(&mut session.connection).await?.uuid != armed.server {
                return Err(Failure::OtherServer);
            }
        }
        let high = session::position(&mut session.connection).await?;
        let is_last = read.is_whole && read.rows < reading.rows;
        let layout = &reading.job.layout;
        let rows = reading.columns.finish().map_err(|error| Failure::Final(value_error(layout, error, IN_SNAPSHOT)))?;
        let chunk = Chunk {
            rows,
            next: read.next.clone(),
            is_last,
            server: armed.server,
            high,
            read_at: self.clock.now_micros(),
        };
        reading.rows = self.next_rows(reading.rows, &read);
        if read.next.is_some() {
            reading.job.next = read.next;
        }
        let request = Request::Chunk { number: armed.number, chunk: Box::new(chunk) };
        self.requests.send(request).await.map_err(|_| Failure::Unwanted)?;
        Ok(is_last)
    }

    async fn arm(&self, table: usize) -> Result<Armed, Failure> {
        let (reply, armed) = oneshot::channel();
        self.requests.send(Request::Arm { table, reply }).await.map_err(|_| Failure::Unwanted)?;
        armed.await.map_err(|_| Failure::Unwanted)
    }

    /// Rows of the next chunk: as many as its bytes allow if its rows are like those just read.
    fn next_rows(&self, rows: u32, read: &ReadRows) -> u32 {
        let by_bytes = match read.bytes / u64::from(read.rows.max(1)) {
            0 => self.chunk.rows,
            row_bytes => u32::try_from(self.chunk.bytes.0 / row_bytes).unwrap_or(u32::MAX),
        };
        self.chunk.rows.min(rows.saturating_mul(GROWTH)).min(by_bytes).max(1)
    }
}

const IN_SNAPSHOT: &str = " (read by the snapshot)";

/// Waits until the session sees all that the stream had handed on when the window was armed.
async fn wait_until_visible(connection: &mut Connection, armed: &Armed) -> Result<(), Failure> {
    loop {
        let (uuid, reached) = session::sees(connection, &armed.executed, VISIBLE_WAIT).await?;
        if uuid != armed.server {
            return Err(Failure::OtherServer);
        }
        if reached {
            return Ok(());
        }
    }
}

impl Session {
    /// Whether it is to the host that these options name.
    fn is_to(&self, options: &ConnectOptions) -> bool {
        self.options.host == options.host && self.options.port == options.port
    }

    async fn prepare(&mut self, job: &ReaderJob) -> Result<(), Failure> {
        let behind_key = job.next.is_some();
        if self
            .prepared
            .as_ref()
            .is_some_and(|prepared| prepared.table == job.table && prepared.behind_key == behind_key)
        {
            return Ok(());
        }
        if let Some(old) = self.prepared.take() {
            self.connection.close(old.statement).await?;
        }
        let statement = self.connection.prepare(&chunk_query(&job.layout, behind_key)).await?;
        let plan =
            ResultPlan::compile(&statement.columns, &job.layout).map_err(|differs| differs_from(job, &differs))?;
        self.prepared = Some(Prepared { table: job.table, behind_key, statement, plan });
        Ok(())
    }

    /// Reads rows until the result or the bytes allowed end.
    async fn read_rows(&mut self, reading: &mut Reading, bytes_max: u64) -> Result<ReadRows, Failure> {
        self.prepare(&reading.job).await?;
        let Some(Prepared { statement, plan, .. }) = &mut self.prepared else {
            unreachable!("a statement was just prepared");
        };
        let params = chunk_params(reading.job.next.as_deref(), reading.rows);
        let mut stream = self.connection.execute(statement, &params).await?;
        let columns = reading.columns.as_mut_slice();
        let (mut rows, mut bytes, mut is_whole) = (0u32, 0u64, true);
        loop {
            match stream.next_buffered()? {
                NextRow::Row(row) => {
                    bytes += row.len() as u64;
                    rows += 1;
                    plan.read_row(row, columns)
                        .map_err(|error| Failure::Final(value_error(&reading.job.layout, error, IN_SNAPSHOT)))?;
                    if bytes > bytes_max && rows < reading.rows {
                        is_whole = false;
                        break;
                    }
                }
                NextRow::Nothing => stream.fill().await?,
                NextRow::End => break,
            }
        }
        let next = if rows > 0 { plan.last_key() } else { None };
        Ok(ReadRows { rows, bytes, next, is_whole })
    }
}

/// The table's columns are not those that it is known with: the stream will say why, if it comes to that.
fn differs_from(job: &ReaderJob, differs: &str) -> Failure {
    let table = &job.layout.schema.table;
    let error = ConnectorError::restart(
        StopClass::Schema,
        "mysql-table-differs",
        format!("table {table} differs from what it is known as: {differs}"),
    );
    Failure::Final(
        error.with_table(table.clone()).with_instruction(
            "if it does not go away by itself: start the pipeline anew with an empty checkpoint store",
        ),
    )
}

fn read_error(layout: &TableLayout, error: WireError) -> ConnectorError {
    let table = &layout.schema.table;
    ConnectorError::stop(StopClass::Source, "mysql-chunk", format!("table {table} cannot be read"))
        .with_table(table.clone())
        .with_instruction("see that the server runs and that the account may SELECT from the table")
        .with_cause(error)
}
