//! The reader beside the log: when it runs, when its windows are opened, and what their chunks become.

use std::sync::Arc;
use std::time::Duration;

use arrow_select::filter::filter_record_batch;
use cdchost_config::{ChunkConfig, MysqlConfig};
use cdchost_connector::{Clock, ConnectorError, StopClass};
use cdchost_model::{ChangeBatch, Op, RowMeta, TransactionRun};
use cdchost_mysql_row::TableLayout;
use cdchost_mysql_wire::ConnectOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::connect::LogConnection;
use super::super::tables::Tables;
use crate::binlog::Transactions;
use crate::gtid::ServerUuid;
use crate::snapshot::{Armed, Chunk, Fault, PassedChunk, ReaderSetup, Request, run_reader};

/// Windows that are open at once: one whose chunk waits for the stream, one whose chunk is being read.
const OPEN_MAX: usize = 2;
/// Bytes that windows hold at most beside their chunks, before they are given up and read again in smaller chunks.
const KEY_BYTES_MAX: usize = 64 << 20;
/// While the stream is further behind than this, no window is opened: it would stay open long and collect much.
const LAG_MAX: Duration = Duration::from_secs(10);
/// A chunk is not made smaller than this.
const ROWS_MIN: u32 = 64;

/// The reader and its windows.
#[derive(Debug)]
pub(super) struct WindowWork {
    chunk: ChunkConfig,
    reconnect_timeout: Duration,
    options: Option<Arc<ConnectOptions>>,
    /// At most one task; dropping this ends it.
    reader: JoinSet<()>,
    requests: Option<mpsc::Receiver<Request>>,
    wanted: Option<(usize, oneshot::Sender<Armed>)>,
    filled: usize,
}

impl WindowWork {
    pub(super) fn new(config: &MysqlConfig) -> Self {
        Self {
            chunk: config.chunk.clone(),
            reconnect_timeout: config.reconnect_timeout,
            options: None,
            reader: JoinSet::new(),
            requests: None,
            wanted: None,
            filled: 0,
        }
    }

    /// The log comes over this connection from here on. The reader begins, or begins again where the server is
    /// another one: its chunks have no place in this log.
    pub(super) fn connected(
        &mut self,
        connection: &LogConnection,
        is_other: bool,
        log: &mut Transactions,
        tables: &Tables,
        clock: &Arc<dyn Clock>,
    ) {
        self.options = Some(Arc::clone(&connection.options));
        if is_other || self.requests.is_none() {
            self.restart(log, tables, clock);
        }
    }

    fn restart(&mut self, log: &mut Transactions, tables: &Tables, clock: &Arc<dyn Clock>) {
        log.windows.close();
        self.reader.abort_all();
        (self.wanted, self.filled) = (None, 0);
        let (sender, receiver) = mpsc::channel(1);
        self.requests = Some(receiver);
        self.reader.spawn(run_reader(ReaderSetup {
            jobs: tables.jobs(),
            chunk: self.chunk.clone(),
            reconnect_timeout: self.reconnect_timeout,
            requests: sender,
            clock: Arc::clone(clock),
        }));
    }

    /// Whether a reader runs.
    pub(super) fn is_reading(&self) -> bool {
        self.requests.is_some()
    }

    /// Whether there is nothing to tend.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_none() && self.filled == 0 && self.requests.is_none()
    }

    /// Whether a chunk waits for the stream.
    pub(super) fn has_chunks(&self) -> bool {
        self.filled > 0
    }

    /// The reader's next request; waits for ever where none runs.
    pub(super) async fn next(&mut self) -> Option<Request> {
        match &mut self.requests {
            Some(requests) => requests.recv().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn try_next(&mut self) -> Option<Request> {
        self.requests.as_mut()?.try_recv().ok()
    }

    /// The reader has read all there is.
    pub(super) fn reader_ended(&mut self) {
        self.requests = None;
    }

    /// A window is asked for.
    pub(super) fn wants_arm(&mut self, table: usize, reply: oneshot::Sender<Armed>) {
        self.wanted = Some((table, reply));
    }

    /// A window's chunk was read.
    pub(super) fn filled(&mut self, log: &mut Transactions, number: u64, chunk: Chunk) {
        self.filled += usize::from(log.windows.fill(number, chunk));
    }

    /// Whether the window that is asked for may be opened.
    pub(super) fn may_arm(&self, log: &Transactions, lag: Duration, caught_up: bool) -> bool {
        self.wanted.is_some() && log.windows.open() < OPEN_MAX && (caught_up || lag < LAG_MAX)
    }

    /// Opens the window that is asked for. Between transactions only.
    pub(super) fn arm(&mut self, log: &mut Transactions, tables: &mut Tables, server: ServerUuid) {
        let Some((table, reply)) = self.wanted.take() else { return };
        let Some(options) = &self.options else { return };
        tables.get_mut(table).begin();
        log.tables.set_emits(table);
        // Nobody takes the answer only if the reader was ended, and then all its windows are closed.
        let waits = log.windows.fault != Fault::NoWait;
        let _ = reply.send(Armed {
            number: log.windows.arm(table),
            server,
            options: Arc::clone(options),
            executed: if waits { log.executed().to_string() } else { String::new() },
        });
    }

    /// The first chunk whose window is passed.
    pub(super) fn take_passed(&mut self, log: &mut Transactions, server: ServerUuid) -> Option<PassedChunk> {
        if self.filled == 0 {
            return None;
        }
        let passed = log.take_passed(server)?;
        self.filled -= 1;
        Some(passed)
    }

    /// Gives all windows up where they hold too much, and reads on in smaller chunks.
    pub(super) fn bound(&mut self, log: &mut Transactions, tables: &Tables, clock: &Arc<dyn Clock>) {
        if log.windows.key_bytes() <= KEY_BYTES_MAX {
            return;
        }
        self.chunk.rows = (self.chunk.rows / 2).max(ROWS_MIN);
        tracing::warn!(
            rows = self.chunk.rows,
            "windows hold too many changed keys; their chunks are read again, smaller"
        );
        self.restart(log, tables, clock);
    }
}

/// The batch of a chunk's rows that stand; none where no row does.
pub(super) fn read_batch(
    layout: &TableLayout,
    passed: PassedChunk,
    seq: i64,
) -> Result<Option<ChangeBatch>, ConnectorError> {
    let PassedChunk { chunk, keep, .. } = passed;
    let rows = if keep.count_set_bits() == chunk.rows.num_rows() {
        chunk.rows
    } else {
        filter_record_batch(&chunk.rows, &keep.into()).map_err(|error| no_batch(layout, error))?
    };
    let count = rows.num_rows();
    if count == 0 {
        return Ok(None);
    }
    let run = TransactionRun {
        rows: u32::try_from(count).expect("a chunk is far below 2^32 rows"),
        id: None,
        position: None,
        commit_time: chunk.read_at,
    };
    let meta =
        RowMeta { change_seq: vec![seq; count].into(), ordinal: (0..run.rows).collect(), transactions: vec![run] };
    let ops = vec![Op::Read as u8; count].into();
    let batch = ChangeBatch::new(Arc::clone(&layout.schema), rows, ops, meta);
    batch.map(Some).map_err(|error| no_batch(layout, error))
}

fn no_batch(layout: &TableLayout, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ConnectorError {
    ConnectorError::stop(StopClass::Bug, "mysql-batch", "rows of a chunk do not make a batch")
        .with_table(layout.schema.table.clone())
        .with_cause(error)
}
