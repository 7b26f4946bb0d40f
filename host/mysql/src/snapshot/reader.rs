//! A reader: chunk after chunk, each in a window that the stream arms and closes.

use std::sync::Arc;
use std::time::Duration;

use cdchost_config::ChunkConfig;
use cdchost_connector::{Clock, ConnectorError, StopClass};
use cdchost_mysql_look::session::{self, Login, SessionError};
use cdchost_mysql_position::{BinlogPosition, ServerUuid};
use cdchost_mysql_row::{Columns, KeyValue, TableLayout};
use cdchost_mysql_wire::{Connection, Remedy, WireError};
use tokio::sync::{mpsc, oneshot};

use super::session::{IN_SNAPSHOT, ReadLimits, ReadRows, Session};
use super::shares::{Cutting, SharedTable, Shares};
use super::walk::Range;
use super::whole::Whole;
use super::window::Chunk;
use crate::binlog::value_error;

/// A chunk has at most so many times the rows of the one before.
const GROWTH: u32 = 4;
/// A stretch whose ends are known may have gained rows since: so many times as many are read of it at once.
const GAIN_MAX: u32 = 2;
/// How long the server waits in one call for transactions to become visible.
const VISIBLE_WAIT: Duration = Duration::from_secs(1);
/// Between two looks at which place of the log a view is of.
const VIEW_PAUSE: Duration = Duration::from_millis(2);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a reader asks of the stream, or hands to it.
#[derive(Debug)]
pub(crate) enum Request {
    /// Open a window.
    Arm(ArmRequest),
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

/// A window is asked for. An earlier one of the same reader that has no chunk yet is given up.
#[derive(Debug)]
pub(crate) struct ArmRequest {
    /// The table's place.
    pub(crate) table: usize,
    /// Who asks.
    pub(crate) reader: usize,
    /// For a table that is read whole, which has no window: the stream stands still until it is looked at.
    pub(crate) whole: Option<oneshot::Receiver<Whole>>,
    /// For a stretch that an earlier window was for: chunks behind it wait for it, so it is not to wait for them.
    pub(crate) again: bool,
    /// Answered between two transactions.
    pub(crate) reply: oneshot::Sender<Armed>,
}

/// A window was opened.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    /// Its number.
    pub(crate) number: u64,
    /// The server that the stream comes from.
    pub(crate) server: ServerUuid,
    /// How to connect to it.
    pub(crate) login: Arc<Login>,
    /// How a read comes to see all that the stream had handed on.
    pub(crate) sight: Sight,
}

/// How a read comes to see all transactions that the stream had handed on when its window was opened: the log runs
/// ahead of what a SELECT sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It waits until the server has executed this set.
    Gtids(String),
    /// It takes share locks, and so waits for what is in the log and not yet committed in the engine.
    Locks,
    /// On MariaDB: it reads in a transaction whose view is of a place in the log that is not before this one.
    View(BinlogPosition),
    /// It waits for so long, and trusts that this is enough.
    Lag(Duration),
    /// Not at all, as one view of the whole table would: for tests that show that they would notice.
    Naive,
}

/// What a reader works with.
#[derive(Clone, Debug)]
pub(crate) struct ReaderSetup {
    /// Its number among the readers.
    pub(crate) reader: usize,
    pub(crate) shares: Arc<Shares>,
    /// How to connect to the server that the stream comes from.
    pub(crate) login: Arc<Login>,
    pub(crate) chunk: ChunkConfig,
    pub(crate) reconnect_timeout: Duration,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why a chunk was not read.
pub(super) enum Failure {
    /// The stream is gone: nobody wants chunks any more.
    Unwanted,
    /// The stream comes from another server by now.
    OtherServer,
    /// What the server or the connection said.
    Wire(WireError),
    /// Others hold the table for now.
    Busy(WireError),
    /// The stream has waited for too long.
    Late,
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

/// Reads tables, or its part of them, until all is given out.
pub(crate) async fn run(setup: ReaderSetup) {
    let shares = Arc::clone(&setup.shares);
    let mut reader = Reader { setup, session: None };
    while let Some(place) = shares.claim() {
        match reader.read_table(place, shares.get(place)).await {
            Ok(()) => shares.leave(place),
            Err(None) => return,
            Err(Some(error)) => {
                // Nobody listens when the stream has ended for another reason.
                let _ = reader.setup.requests.send(Request::Failed(error)).await;
                return;
            }
        }
    }
}

struct Reader {
    setup: ReaderSetup,
    session: Option<Session>,
}

/// A table's reading by one reader.
struct Reading<'a> {
    place: usize,
    share: &'a SharedTable,
    columns: Columns,
    /// A stretch that this reader alone has to read.
    own: Option<Range>,
}

/// What a chunk has left of its stretch.
struct Left {
    /// Where the rest begins.
    next: Option<Vec<KeyValue>>,
    /// Nothing is left.
    is_over: bool,
}

impl Reader {
    async fn read_table(&mut self, place: usize, share: &SharedTable) -> Result<(), Option<ConnectorError>> {
        let mut reading = Reading { place, share, columns: share.layout.columns(), own: None };
        let mut tries = Tries::default();
        loop {
            match self.read_next(&mut reading).await {
                Ok(true) => return Ok(()),
                Ok(false) => tries = Tries::default(),
                Err(failure) => {
                    reading.columns.truncate(0);
                    self.session = None;
                    if matches!(failure, Failure::Wire(_)) {
                        share.set_rows(share.rows() / 2);
                    }
                    tries.failed(&self.setup, &share.layout, failure).await?;
                }
            }
        }
    }

    /// Reads one chunk in a window of its own; true when the table has nothing more to be given out.
    async fn read_next(&mut self, reading: &mut Reading<'_>) -> Result<bool, Failure> {
        let share = reading.share;
        if let Some(range) = reading.own.clone() {
            let armed = ask(&self.setup, share.table, true, None).await?;
            let left = self.read_chunk(reading, &range, armed).await?;
            reading.own = left.rest(range);
            return Ok(false);
        }
        let mut cutting = share.cutting.lock().await;
        if cutting.is_over {
            return Ok(true);
        }
        if self.setup.shares.is_shared(reading.place) {
            let range = self.cut(share, &mut cutting).await?;
            reading.own = Some(range.clone());
            let armed = ask(&self.setup, share.table, false, None).await?;
            drop(cutting);
            let left = self.read_chunk(reading, &range, armed).await?;
            reading.own = left.rest(range);
        } else {
            // Nobody else is there to take the next stretch, so where it begins need not be known in advance.
            let range = Range { after: cutting.next.clone(), until: None };
            let armed = ask(&self.setup, share.table, false, None).await?;
            let left = self.read_chunk(reading, &range, armed).await?;
            (cutting.next, cutting.is_over) = (left.next, left.is_over);
        }
        Ok(false)
    }

    /// Cuts the next stretch off a table. The last one has no end.
    async fn cut(&mut self, share: &SharedTable, cutting: &mut Cutting) -> Result<Range, Failure> {
        let login = Arc::clone(&self.setup.login);
        let until = self.session(&login).await?.cut(share, cutting.next.as_deref(), share.rows()).await?;
        let after = std::mem::replace(&mut cutting.next, until.clone());
        cutting.is_over = until.is_none();
        Ok(Range { after, until })
    }

    /// The connection to a host; a new one where there is none.
    async fn session(&mut self, login: &Arc<Login>) -> Result<&mut Session, Failure> {
        let session = match self.session.take().filter(|session| session.is_to(login)) {
            Some(session) => session,
            None => Session::connect(login).await?,
        };
        Ok(self.session.insert(session))
    }

    /// Reads what a stretch has, as far as a chunk may hold it, and hands it to the stream.
    async fn read_chunk(
        &mut self,
        reading: &mut Reading<'_>,
        range: &Range,
        armed: oneshot::Receiver<Armed>,
    ) -> Result<Left, Failure> {
        let armed = armed.await.map_err(|_| Failure::Unwanted)?;
        self.setup.login = Arc::clone(&armed.login);
        let share = reading.share;
        let rows_max = share.rows().saturating_mul(if range.until.is_some() { GAIN_MAX } else { 1 });
        let bytes_max = self.setup.chunk.bytes.0;
        let clock = Arc::clone(&self.setup.clock);
        let session = self.session(&armed.login).await?;
        match &armed.sight {
            Sight::Gtids(executed) => wait_until_visible(&mut session.connection, executed, armed.server).await?,
            Sight::View(armed) => view(&mut session.connection, armed, clock.as_ref()).await?,
            Sight::Lag(lag) => clock.sleep(*lag).await,
            Sight::Naive => session::keep_view(&mut session.connection).await?,
            Sight::Locks => {}
        }
        if !matches!(armed.sight, Sight::Gtids(_) | Sight::Naive) {
            check_server(&mut session.connection, armed.server).await?;
        }
        let limits = ReadLimits { rows: rows_max, bytes: bytes_max, locks: armed.sight == Sight::Locks };
        let read = session.read_rows(share, range, limits, &mut reading.columns).await?;
        if read.is_whole && matches!(armed.sight, Sight::View(_)) {
            session::end_transaction(&mut session.connection).await?;
        }
        if !read.is_whole {
            // The rest of the result is given up, and the connection with it.
            *session = Session::connect(&armed.login).await?;
            check_server(&mut session.connection, armed.server).await?;
        }
        let high = session::position(&mut session.connection).await?;
        let is_over = read.is_whole && read.rows < rows_max;
        let next = match &range.until {
            Some(until) if is_over => Some(until.clone()),
            _ => read.last.clone().or_else(|| range.after.clone()),
        };
        let rows = reading.columns.finish();
        let chunk = Chunk {
            rows: rows.map_err(|error| Failure::Final(value_error(&share.layout, error, IN_SNAPSHOT)))?,
            bytes: read.bytes,
            after: range.after.clone(),
            next: next.clone(),
            is_last: is_over && range.until.is_none(),
            server: armed.server,
            high,
            read_at: self.setup.clock.now_micros(),
        };
        share.set_rows(self.next_rows(share.rows(), &read));
        let request = Request::Chunk { number: armed.number, chunk: Box::new(chunk) };
        self.setup.requests.send(request).await.map_err(|_| Failure::Unwanted)?;
        Ok(Left { next, is_over })
    }

    /// Rows of the next chunk: as many as its bytes allow if its rows are like those just read, and a quarter less, so
    /// that a chunk of somewhat longer rows is still whole.
    fn next_rows(&self, rows: u32, read: &ReadRows) -> u32 {
        let chunk = &self.setup.chunk;
        let by_bytes = match read.bytes / u64::from(read.rows.max(1)) {
            0 => chunk.rows,
            row_bytes => u32::try_from(chunk.bytes.0 / 4 * 3 / row_bytes).unwrap_or(u32::MAX),
        };
        chunk.rows.min(rows.saturating_mul(GROWTH)).min(by_bytes).max(1)
    }
}

/// Tries in a row that failed.
#[derive(Debug, Default)]
pub(super) struct Tries {
    since: Option<Duration>,
    pause: Option<Duration>,
}

impl Tries {
    /// Waits before the next try; an error where there is none, without a reason where nobody wants to know it.
    pub(super) async fn failed(
        &mut self,
        setup: &ReaderSetup,
        layout: &TableLayout,
        failure: Failure,
    ) -> Result<(), Option<ConnectorError>> {
        let now = setup.clock.elapsed();
        let since = *self.since.get_or_insert(now);
        let error = match failure {
            Failure::Unwanted => return Err(None),
            Failure::Final(error) => return Err(Some(error)),
            Failure::OtherServer | Failure::Late => None,
            Failure::Wire(error) => {
                // What the server refuses is often the echo of a statement that the stream has not come to yet; that
                // one gives the better reason.
                let limit = match error.remedy() {
                    Remedy::Reconnect => setup.reconnect_timeout,
                    _ => Duration::from_secs(10).min(setup.reconnect_timeout),
                };
                Some((error, limit))
            }
            Failure::Busy(error) => Some((error, Duration::MAX)),
        };
        if let Some((error, limit)) = error {
            tracing::warn!(table = %layout.schema.table, %error, "table not read, trying again");
            if now.saturating_sub(since) > limit {
                return Err(Some(read_error(layout, error)));
            }
        }
        let pause = self.pause.unwrap_or(PAUSE_MIN);
        setup.clock.sleep(pause).await;
        self.pause = Some((pause * 2).min(PAUSE_MAX));
        Ok(())
    }
}

/// Asks for a window, or for when a table may be read whole; the answer comes when it is so.
pub(super) async fn ask(
    setup: &ReaderSetup,
    table: usize,
    again: bool,
    whole: Option<oneshot::Receiver<Whole>>,
) -> Result<oneshot::Receiver<Armed>, Failure> {
    let (reply, armed) = oneshot::channel();
    let request = ArmRequest { table, reader: setup.reader, again, whole, reply };
    setup.requests.send(Request::Arm(request)).await.map_err(|_| Failure::Unwanted)?;
    Ok(armed)
}

impl Left {
    fn rest(self, range: Range) -> Option<Range> {
        (!self.is_over).then_some(Range { after: self.next, until: range.until })
    }
}

/// Begins a transaction whose view is of a place in the log that is not before another.
async fn view(connection: &mut Connection, armed: &BinlogPosition, clock: &dyn Clock) -> Result<(), Failure> {
    while session::consistent_place(connection).await? < *armed {
        session::end_transaction(connection).await?;
        clock.sleep(VIEW_PAUSE).await;
    }
    Ok(())
}

/// An error if the session is not to this server.
pub(super) async fn check_server(connection: &mut Connection, server: ServerUuid) -> Result<(), Failure> {
    if session::state(connection).await?.uuid == server { Ok(()) } else { Err(Failure::OtherServer) }
}

/// Waits until the session sees all that the stream had handed on when the window was armed.
async fn wait_until_visible(connection: &mut Connection, executed: &str, server: ServerUuid) -> Result<(), Failure> {
    loop {
        let (uuid, reached) = session::sees(connection, executed, VISIBLE_WAIT).await?;
        if uuid != server {
            return Err(Failure::OtherServer);
        }
        if reached {
            return Ok(());
        }
    }
}

fn read_error(layout: &TableLayout, error: WireError) -> ConnectorError {
    let table = &layout.schema.table;
    ConnectorError::stop(StopClass::Source, "mysql-chunk", format!("table {table} cannot be read"))
        .with_table(table.clone())
        .with_instruction("see that the server runs and that the account may SELECT from the table")
        .with_cause(error)
}
