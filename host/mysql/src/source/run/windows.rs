//! The readers beside the log: when they run, when their windows are opened, and what their chunks become.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_select::filter::filter_record_batch;
use cdchost_config::{ChunkConfig, MysqlConfig, Watermark};
use cdchost_connector::{Clock, ConnectorError, StopClass};
use cdchost_model::{ChangeBatch, Op, RowMeta, TransactionRun};
use cdchost_mysql_look::session::Login;
use cdchost_mysql_position::{BinlogPosition, Reached, ServerUuid};
use cdchost_mysql_row::TableLayout;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::connect::LogConnection;
use super::super::tables::Tables;
use crate::binlog::Transactions;
use crate::snapshot::{
    ArmRequest, Armed, Chunk, Fault, PassedChunk, ReaderSetup, Request, Shares, Sight, Whole, run_reader, run_whole,
};

/// Windows that are open at once for each reader: one whose chunk waits for the stream, one whose chunk is being read.
const OPEN_PER_READER: usize = 2;
/// Bytes that all chunks and all collected keys may take together: no further window is opened beyond it.
const HELD_BYTES_MAX: u64 = 96 << 20;
/// Bytes of collected keys beyond which all windows are given up and read again in smaller chunks.
const KEY_BYTES_MAX: usize = 48 << 20;
/// While the stream is further behind than this, no window is opened: it would stay open long and collect much.
const LAG_MAX: Duration = Duration::from_secs(10);
/// A chunk is not made smaller than this.
const ROWS_MIN: u32 = 64;

/// The readers and their windows.
#[derive(Debug)]
pub(super) struct WindowWork {
    chunk: ChunkConfig,
    watermark: Watermark,
    readers: usize,
    reconnect_timeout: Duration,
    login: Option<Arc<Login>>,
    /// Dropping this ends them.
    tasks: JoinSet<()>,
    requests: Option<mpsc::Receiver<Request>>,
    /// Windows asked for, in order.
    wanted: VecDeque<ArmRequest>,
    filled: usize,
    /// A table that is read whole.
    whole: Option<Whole>,
}

impl WindowWork {
    pub(super) fn new(config: &MysqlConfig) -> Self {
        Self {
            chunk: config.chunk.clone(),
            watermark: config.watermark,
            readers: config.readers as usize,
            reconnect_timeout: config.reconnect_timeout,
            login: None,
            tasks: JoinSet::new(),
            requests: None,
            wanted: VecDeque::new(),
            filled: 0,
            whole: None,
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
        self.login = Some(Arc::clone(&connection.login));
        if is_other || self.requests.is_none() {
            self.restart(log, tables, clock);
        }
    }

    fn restart(&mut self, log: &mut Transactions, tables: &Tables, clock: &Arc<dyn Clock>) {
        let Some(login) = &self.login else { return };
        log.windows.close();
        self.tasks.abort_all();
        self.wanted.clear();
        self.filled = 0;
        self.whole = None;
        let (sender, receiver) = mpsc::channel(self.readers);
        self.requests = Some(receiver);
        let setup = ReaderSetup {
            reader: 0,
            shares: Arc::new(Shares::new(tables.jobs(), self.chunk.rows)),
            login: Arc::clone(login),
            chunk: self.chunk.clone(),
            reconnect_timeout: self.reconnect_timeout,
            requests: sender,
            clock: Arc::clone(clock),
        };
        for reader in 0..self.readers {
            self.tasks.spawn(run_reader(ReaderSetup { reader, ..setup.clone() }));
        }
        self.tasks.spawn(run_whole(ReaderSetup { reader: self.readers, ..setup }, tables.whole_jobs()));
    }

    /// Whether readers run.
    pub(super) fn is_reading(&self) -> bool {
        self.requests.is_some()
    }

    /// Whether there is nothing to tend.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_empty() && !self.has_chunks() && self.requests.is_none()
    }

    /// Whether a chunk waits for the stream.
    pub(super) fn has_chunks(&self) -> bool {
        self.filled > 0 || self.whole.is_some()
    }

    /// The readers' next request; waits for ever where none runs.
    pub(super) async fn next(&mut self) -> Option<Request> {
        match &mut self.requests {
            Some(requests) => requests.recv().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn try_next(&mut self) -> Option<Request> {
        self.requests.as_mut()?.try_recv().ok()
    }

    /// The readers have read all there is.
    pub(super) fn readers_ended(&mut self) {
        self.requests = None;
    }

    /// A window is asked for.
    pub(super) fn wants_arm(&mut self, log: &mut Transactions, request: ArmRequest) {
        log.windows.give_up(request.reader);
        self.wanted.push_back(request);
    }

    /// A window's chunk was read.
    pub(super) fn filled(&mut self, log: &mut Transactions, number: u64, chunk: Chunk) {
        self.filled += usize::from(log.windows.fill(number, chunk));
    }

    /// A table is read whole from here on.
    pub(super) fn begun_whole(&mut self, whole: Whole) {
        self.whole = Some(whole);
    }

    /// A table that is read whole, if its rows are of the place where the stream stands.
    pub(super) fn take_whole(&mut self, server: ServerUuid, position: &BinlogPosition) -> Option<Whole> {
        self.whole.take_if(|whole| whole.server == server && *position >= whole.place)
    }

    /// Opens the windows that are asked for, as far as they have room. Between transactions only. Where a table that is
    /// to be read whole is among them: what to wait for before the stream goes on.
    pub(super) fn arm(
        &mut self,
        log: &mut Transactions,
        tables: &mut Tables,
        server: ServerUuid,
    ) -> Option<oneshot::Receiver<Whole>> {
        let login = self.login.clone()?;
        while let Some(request) = self.next_wanted(log) {
            let mut number = 0;
            if request.whole.is_none() {
                tables.get_mut(request.table).begin();
                log.tables.set_emits(request.table);
                number = log.windows.arm(request.table, request.reader);
            }
            let sight = match self.watermark {
                _ if log.windows.fault == Fault::NoWait => Sight::Naive,
                Watermark::Gtid => match log.executed() {
                    Reached::Domains(_) => Sight::View(log.position().clone()),
                    executed => Sight::Gtids(executed.to_string()),
                },
                Watermark::Lock => Sight::Locks,
                Watermark::Lag(lag) => Sight::Lag(lag),
            };
            // Nobody takes the answer only if the readers were ended, and then all their windows are closed.
            let _ = request.reply.send(Armed { number, server, login: Arc::clone(&login), sight });
            if request.whole.is_some() {
                return request.whole;
            }
        }
        None
    }

    /// The request to be served next: one for a stretch that others wait for, or the oldest if there is room. A window
    /// alone has always room.
    fn next_wanted(&mut self, log: &Transactions) -> Option<ArmRequest> {
        let windows = &log.windows;
        if let Some(place) = self.wanted.iter().position(|request| request.again) {
            return self.wanted.remove(place);
        }
        let chunk_bytes = self.chunk.bytes.0;
        let held = windows.chunk_bytes(chunk_bytes) + windows.key_bytes() as u64;
        let has_room = windows.open() < self.readers * OPEN_PER_READER && held + chunk_bytes <= HELD_BYTES_MAX;
        if has_room || windows.open() == 0 { self.wanted.pop_front() } else { None }
    }

    /// Whether windows are asked for and may be opened, so far behind the server as the stream is.
    pub(super) fn may_arm(&self, lag: Duration, caught_up: bool) -> bool {
        !self.wanted.is_empty() && (caught_up || lag < LAG_MAX)
    }

    /// A chunk whose window is passed and which its table's walk has come to.
    pub(super) fn take_passed(
        &mut self,
        log: &mut Transactions,
        tables: &Tables,
        server: ServerUuid,
    ) -> Option<PassedChunk> {
        if self.filled == 0 {
            return None;
        }
        let passed = log.take_passed(server, |table, chunk| tables.get(table).is_next(&chunk.after))?;
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

/// The rows of a chunk that stand.
pub(super) fn standing(layout: &TableLayout, passed: PassedChunk) -> Result<RecordBatch, ConnectorError> {
    let rows = passed.chunk.rows;
    if passed.keep.count_set_bits() == rows.num_rows() {
        return Ok(rows);
    }
    filter_record_batch(&rows, &passed.keep.into()).map_err(|error| no_batch(layout, error))
}

/// The batch of rows that were read at a time, in microseconds since the epoch; none where there are no rows.
pub(super) fn read_batch(
    layout: &TableLayout,
    rows: RecordBatch,
    read_at: i64,
    seq: i64,
) -> Result<Option<ChangeBatch>, ConnectorError> {
    let count = rows.num_rows();
    if count == 0 {
        return Ok(None);
    }
    let run = TransactionRun {
        rows: u32::try_from(count).expect("a chunk is far below 2^32 rows"),
        id: None,
        position: None,
        commit_time: read_at,
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
