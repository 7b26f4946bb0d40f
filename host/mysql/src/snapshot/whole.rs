//! Tables without a key: no two of their rows can be told apart, so there is no walk over them and no window. Each is
//! read as it is at one place of the log, and handed on when the stream is there.

use std::sync::Arc;

use arrow_array::RecordBatch;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_mysql_look::check::ACCESS_DENIED;
use cdchost_mysql_look::session::{self, LOCK_WAIT_TIMEOUT, SessionError};
use cdchost_mysql_position::{BinlogPosition, ServerUuid};
use cdchost_mysql_row::TableLayout;
use cdchost_mysql_wire::WireError;
use tokio::sync::{mpsc, oneshot};

use super::reader::{Armed, Failure, ReaderSetup, Request, Tries, ask, check_server};
use super::session::Session;

/// Batches that are read ahead of the stream.
const AHEAD: usize = 2;

/// A table that is read whole.
#[derive(Clone, Debug)]
pub(crate) struct WholeJob {
    pub(crate) table: usize,
    pub(crate) layout: Arc<TableLayout>,
}

/// A table as it is at one place of the log.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) table: usize,
    /// The server that it is read from.
    pub(crate) server: ServerUuid,
    /// The place: all of the table's changes before it are in the rows, and none behind it.
    pub(crate) place: BinlogPosition,
    /// When it was looked at, in microseconds since the epoch.
    pub(crate) read_at: i64,
    pub(crate) rows: mpsc::Receiver<WholeRows>,
}

/// What comes of a table that is read whole.
#[derive(Debug)]
pub(crate) enum WholeRows {
    Rows(RecordBatch),
    /// These were all.
    End,
    Failed(ConnectorError),
}

/// Reads tables whole, one after the other.
pub(crate) async fn run(setup: ReaderSetup, jobs: Vec<WholeJob>) {
    for job in &jobs {
        let mut tries = Tries::default();
        while let Err(failure) = read(&setup, job).await {
            match tries.failed(&setup, &job.layout, failure).await {
                Ok(()) => {}
                Err(None) => return,
                Err(Some(error)) => {
                    // Nobody listens when the stream has ended for another reason.
                    let _ = setup.requests.send(Request::Failed(error)).await;
                    return;
                }
            }
        }
    }
}

async fn read(setup: &ReaderSetup, job: &WholeJob) -> Result<(), Failure> {
    let (looked, look) = oneshot::channel();
    let armed = ask(setup, job.table, false, Some(look)).await?.await.map_err(|_| Failure::Unwanted)?;
    // The stream stands still from here on.
    let mut session = Session::connect(&armed.login).await?;
    let place = view(&mut session, &armed, job).await?;
    let (sender, rows) = mpsc::channel(AHEAD);
    let read_at = setup.clock.now_micros();
    let whole = Whole { table: job.table, server: armed.server, place, read_at, rows };
    looked.send(whole).map_err(|_| Failure::Late)?;
    let last = match session.read_all(job, &sender).await {
        Ok(()) => WholeRows::End,
        Err(Failure::Unwanted) => return Err(Failure::Unwanted),
        Err(failure) => WholeRows::Failed(cut_short(&job.layout, failure)),
    };
    sender.send(last).await.map_err(|_| Failure::Unwanted)
}

/// Begins a transaction that sees the table as it is at one place of the log.
async fn view(session: &mut Session, armed: &Armed, job: &WholeJob) -> Result<BinlogPosition, Failure> {
    let connection = &mut session.connection;
    check_server(connection, armed.server).await?;
    if connection.server().is_mariadb {
        return Ok(session::consistent_place(connection).await?);
    }
    let mut locking = armed.login.connect().await?;
    check_server(&mut locking, armed.server).await?;
    let place = session::view_of_table(connection, &mut locking, &job.layout.schema.table).await;
    place.map_err(|error| match error {
        SessionError::Wire(WireError::Server(error)) if ACCESS_DENIED.contains(&error.code) => {
            Failure::Final(no_lock(&job.layout, error.into()))
        }
        SessionError::Wire(WireError::Server(error)) if error.code == LOCK_WAIT_TIMEOUT => Failure::Busy(error.into()),
        error => error.into(),
    })
}

fn no_lock(layout: &TableLayout, error: WireError) -> ConnectorError {
    let table = &layout.schema.table;
    let message = format!("table {table} has no key, and the account may not lock it to look at it");
    ConnectorError::stop(StopClass::Source, "mysql-table-lock", message)
        .with_table(table.clone())
        .with_instruction(format!(
            "GRANT LOCK TABLES ON `{}`.* to the account, or give the table a primary key",
            table.database
        ))
        .with_cause(error)
}

/// Some of the rows may have been handed on, so all is begun anew from the last record.
fn cut_short(layout: &TableLayout, failure: Failure) -> ConnectorError {
    let table = &layout.schema.table;
    let error = match failure {
        Failure::Final(error) => return error,
        Failure::Wire(error) | Failure::Busy(error) => Some(error),
        Failure::Unwanted | Failure::OtherServer | Failure::Late => None,
    };
    let message = format!("the reading of table {table}, which has no key and is read at once, was cut short");
    let cut = ConnectorError::restart(StopClass::Source, "mysql-whole-table", message)
        .with_table(table.clone())
        .with_instruction("nothing, if the pipeline goes on by itself; else see why the server breaks long reads off");
    match error {
        Some(error) => cut.with_cause(error),
        None => cut,
    }
}
