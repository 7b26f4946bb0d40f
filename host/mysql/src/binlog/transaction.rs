//! Transactions out of a stream of events: what has been handed on, where the stream stands, when a cut may be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TransactionId;
use cdchost_mysql_position::{BinlogPosition, Reached, ServerUuid, Tag, TransactionName, TransactionSource};
use cdchost_mysql_wire::binlog::{Event, EventBody, EventHeader, GtidEvent, MariadbGtid};

use super::gather::TransactionFacts;
use super::log_file::LogFile;
use super::tables::{LogTables, place};
use crate::remedy::ANEW;
use crate::snapshot::{Chunk, PassedChunk, Windows};

mod refusals;
mod savepoints;
mod statement;

use savepoints::{Mark, Savepoints};

/// What one event meant for whoever reads the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing but perhaps another position.
    Event,
    /// A transaction has ended: what it changed may be handed on.
    TransactionEnd,
    /// The server has nothing more to send just now.
    Heartbeat,
}

/// Where and how a stream begins.
#[derive(Debug)]
pub(crate) struct LogStart {
    /// The server whose log it is, where transactions have no name but their place in it.
    pub(crate) server: ServerUuid,
    /// Transactions that are not to come.
    pub(crate) executed: Reached,
    /// Transactions that the tables' schemas were read after.
    pub(crate) known: Reached,
    /// The change-seq taken last.
    pub(crate) seq: i64,
    /// Which tables are captured, also those that are not there yet.
    pub(crate) patterns: TablePatterns,
    /// The server keeps table names in lower case.
    pub(crate) lower_case_names: bool,
    /// Bytes of one transaction that wait for its end at most.
    pub(crate) buffer_max: u64,
    /// XA transactions that are prepared and changed no captured table.
    pub(crate) prepared: BTreeSet<String>,
}

/// The state of a stream of events.
#[derive(Debug)]
pub(crate) struct Transactions {
    pub(crate) tables: LogTables,
    pub(crate) windows: Windows,
    start: LogStart,
    position: BinlogPosition,
    executed: Reached,
    seq: i64,
    current: Option<Current>,
    /// Commit time of the last transaction, in microseconds since the epoch.
    event_time: Option<i64>,
    ignored: BTreeMap<&'static str, u64>,
    has_passed_known: bool,
    /// What the ids of transactions begin with: the source that numbered them, or server and file.
    prefix: Prefix,
    /// XA transactions that are prepared and changed no captured table.
    prepared: BTreeSet<String>,
    /// The file of the log that was read last.
    log_file: Option<LogFile>,
}

/// The part of an id that transactions one after the other have in common.
#[derive(Debug)]
struct Prefix {
    source: TransactionSource,
    file: Option<Arc<str>>,
    /// Domain and server, of MariaDB.
    domain: Option<(u32, u32)>,
    text: Arc<str>,
}

/// The open transaction.
#[derive(Debug)]
struct Current {
    name: TransactionName,
    facts: TransactionFacts,
    /// A statement in it does not end it.
    has_begun: bool,
    /// It was handed on before.
    is_known: bool,
    /// The change-seq before it.
    seq_before: i64,
    /// Its rows up to this change-seq may have been handed on.
    handed_on: i64,
    /// Places in it that have names.
    savepoints: Savepoints,
}

impl Transactions {
    pub(crate) fn new(mut start: LogStart, tables: LogTables) -> Self {
        Self {
            tables,
            windows: Windows::default(),
            position: BinlogPosition::default(),
            executed: start.executed.clone(),
            seq: start.seq,
            current: None,
            event_time: None,
            ignored: BTreeMap::new(),
            has_passed_known: false,
            prepared: std::mem::take(&mut start.prepared),
            log_file: None,
            prefix: Prefix::of(TransactionSource::default(), None),
            start,
        }
    }

    /// Goes on where an earlier run was, until a connection says where its events are.
    pub(crate) fn resume(&mut self, position: BinlogPosition, event_time: i64, log_file: Option<LogFile>) {
        self.position = position;
        self.log_file = log_file;
        self.event_time = Some(event_time).filter(|time| *time > 0);
    }

    /// The log that comes next is another server's.
    pub(crate) fn changes_server(&mut self) {
        self.log_file = None;
    }

    /// The file of the log that was read last.
    pub(crate) fn log_file(&self) -> Option<&LogFile> {
        self.log_file.as_ref()
    }

    /// Takes out a chunk whose window the stream has passed. Between transactions only.
    pub(crate) fn take_passed(
        &mut self,
        server: ServerUuid,
        is_next: impl Fn(usize, &Chunk) -> bool,
    ) -> Option<PassedChunk> {
        let tables = &self.tables;
        let schema = |place| Arc::clone(&tables.layout(place).schema);
        self.windows.take_passed(server, &self.position, schema, is_next)
    }

    /// The transactions handed on.
    pub(crate) fn executed(&self) -> &Reached {
        &self.executed
    }

    /// Where the stream stands.
    pub(crate) fn position(&self) -> &BinlogPosition {
        &self.position
    }

    /// The change-seq taken last.
    pub(crate) fn seq(&self) -> i64 {
        self.seq
    }

    /// Commit time of the last transaction, in microseconds since the epoch.
    pub(crate) fn event_time(&self) -> Option<i64> {
        self.event_time
    }

    /// Statements that were looked at and ignored, by reason.
    pub(crate) fn ignored(&self) -> &BTreeMap<&'static str, u64> {
        &self.ignored
    }

    /// Whether the stream stands between two transactions.
    #[inline]
    pub(crate) fn is_between(&self) -> bool {
        self.current.is_none()
    }

    /// A new connection: what the old one sent of a transaction is taken back. An error if a part of it was handed
    /// on already.
    pub(crate) fn reconnected(&mut self) -> Result<(), ConnectorError> {
        self.tables.forget_maps();
        self.position = match &self.executed {
            Reached::Gtids(_) | Reached::Domains(_) => BinlogPosition::default(),
            Reached::Place(place) => place.clone(),
        };
        let Some(current) = self.current.take() else { return Ok(()) };
        if current.handed_on > current.seq_before {
            let message = format!("the connection was lost inside a large transaction{}", place(&current.facts));
            return Err(ConnectorError::restart(StopClass::Source, "mysql-lost-inside-transaction", message)
                .with_instruction("raise transaction.max-buffer in [source] if this happens again and again"));
        }
        self.roll_back(Mark { seq: current.seq_before, keys: 0 });
        self.tables.end_transaction(&current.facts)
    }

    /// Takes one event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event<'_>) -> Result<Seen, ConnectorError> {
        let body = event.read().map_err(|error| self.malformed(error))?;
        let mut seen = Seen::Event;
        match body {
            EventBody::Rows(rows) => {
                let Some(current) = self.current.as_mut() else {
                    return Err(self.malformed("rows outside of any transaction"));
                };
                if !current.is_known {
                    self.tables.rows(&rows, &current.facts, &mut self.seq, &mut self.windows)?;
                    if self.tables.open_bytes() as u64 > self.start.buffer_max {
                        current.handed_on = self.seq;
                        self.tables.release();
                    }
                }
            }
            EventBody::TableMap(map) => self.tables.map(&map).map_err(|error| self.malformed(error))?,
            EventBody::Gtid(gtid) | EventBody::AnonymousGtid(gtid) => {
                let is_anonymous = matches!(body, EventBody::AnonymousGtid(_));
                let name = self.name_of(&gtid, is_anonymous)?;
                self.begin(name, &gtid, &event.header)?;
            }
            EventBody::MariadbGtid(gtid) => self.begin_of_mariadb(&gtid, &event.header)?,
            EventBody::Query(query) if query.text == b"BEGIN" => {
                if let Some(current) = &mut self.current {
                    current.has_begun = true;
                }
            }
            EventBody::Query(query) | EventBody::LoadQuery(query) => seen = self.query(&query, &event.header)?,
            EventBody::Xid(_) => {
                self.moved(&event.header);
                return self.end();
            }
            EventBody::XaPrepare(prepare) => {
                if !prepare.one_phase {
                    self.prepare_xa(prepare.name())?;
                }
                self.moved(&event.header);
                return self.end();
            }
            EventBody::Rotate(rotate) => {
                let file = String::from_utf8_lossy(rotate.file);
                self.position = BinlogPosition::new(&file, rotate.position);
                self.stands();
                return Ok(Seen::Event);
            }
            EventBody::Heartbeat(heartbeat) => {
                self.heard(heartbeat.file, heartbeat.position);
                self.stands();
                return Ok(Seen::Heartbeat);
            }
            EventBody::Incident => {
                let what = "the server says in its log that changes may be missing (INCIDENT)";
                return Err(self.refused("mysql-incident", what, ANEW));
            }
            EventBody::FormatDescription(_) => {
                self.opens(event.header.timestamp)?;
                // Without a place it is the one that a connection begins with.
                if event.header.end_position != 0 {
                    self.tables.forget_maps();
                }
            }
            EventBody::Stop | EventBody::PreviousGtids(_) | EventBody::RowsQuery(_) | EventBody::Skipped => {}
        }
        self.moved(&event.header);
        self.stands();
        Ok(seen)
    }

    /// A file of the log begins to be read: the one where the stream stands.
    fn opens(&mut self, begun: u32) -> Result<(), ConnectorError> {
        let file = LogFile { name: Arc::clone(&self.position.file), begun };
        match &self.log_file {
            Some(last) if !last.may_be_followed_by(&file) => Err(last.not_followed_by(&file)),
            _ => {
                self.log_file = Some(file);
                Ok(())
            }
        }
    }

    #[inline]
    fn moved(&mut self, header: &EventHeader) {
        if header.end_position > 0 && !header.is_artificial() {
            self.position.advance(header.end_position);
        }
    }

    /// What lies before the place where the stream stands now, between two transactions, need not come again.
    #[inline]
    fn stands(&mut self) {
        if self.current.is_none() {
            self.executed.moved(&self.position);
        }
    }

    fn heard(&mut self, file: &[u8], position: u64) {
        if file == self.position.file.as_bytes() {
            match u32::try_from(position) {
                Ok(low) => self.position.advance(low),
                Err(_) => self.position.offset = self.position.offset.max(position),
            }
        } else {
            self.position = BinlogPosition::new(&String::from_utf8_lossy(file), position);
        }
    }

    #[inline]
    fn begin(
        &mut self,
        name: TransactionName,
        gtid: &GtidEvent<'_>,
        header: &EventHeader,
    ) -> Result<(), ConnectorError> {
        if self.current.is_some() {
            return Err(self.malformed("a transaction begins inside another"));
        }
        self.position.advance(header.end_position);
        // The event says how long the transaction is; before 8.0 it does not, and its beginning has to do.
        let rest = gtid.transaction_bytes.map_or(0, |bytes| bytes.saturating_sub(header.event_bytes.into()));
        let mut position = cdchost_model::SourcePosition::from(&self.position);
        position.offset += rest;
        let commit_time =
            gtid.original_commit_us.and_then(|micros| i64::try_from(micros).ok()).filter(|time| *time > 0);
        let facts = TransactionFacts {
            id: self.prefix.id(&name),
            position,
            commit_time: commit_time.unwrap_or_else(|| i64::from(header.timestamp) * 1_000_000),
        };
        self.current = Some(Current {
            is_known: self.is_known(&name),
            name,
            facts,
            has_begun: false,
            seq_before: self.seq,
            handed_on: self.seq,
            savepoints: Savepoints::default(),
        });
        Ok(())
    }

    /// Whether a transaction was handed on. A server of MariaDB begins behind the last one of each domain, and numbers may
    /// go back within a domain, so there none is.
    fn is_known(&self, name: &TransactionName) -> bool {
        !matches!(name, TransactionName::Domain(..)) && self.executed.has(name)
    }

    #[inline]
    fn begin_of_mariadb(&mut self, gtid: &MariadbGtid, header: &EventHeader) -> Result<(), ConnectorError> {
        if !matches!(self.executed, Reached::Domains(_)) {
            return Err(self.malformed("a transaction of MariaDB in the log of MySQL"));
        }
        if self.prefix.domain != Some((gtid.domain, gtid.server_id)) {
            self.prefix = Prefix::of_domain(gtid.domain, gtid.server_id);
        }
        let name = TransactionName::Domain(gtid.domain, gtid.server_id, gtid.number);
        self.begin(name, &GtidEvent::of_number(gtid.number), header)?;
        if let Some(current) = &mut self.current {
            current.has_begun = !gtid.is_standalone;
        }
        Ok(())
    }

    /// How the transaction that begins here is called; an error where the log does not name them as it did so far.
    #[inline]
    fn name_of(&mut self, gtid: &GtidEvent<'_>, is_anonymous: bool) -> Result<TransactionName, ConnectorError> {
        match (&self.executed, is_anonymous) {
            (Reached::Gtids(_), false) => {
                let tag = Tag::parse(gtid.tag).map_err(|error| self.malformed(error))?;
                let source = TransactionSource { server: ServerUuid(gtid.uuid), tag };
                if self.prefix.source != source {
                    self.prefix = Prefix::of(source, None);
                }
                Ok(TransactionName::Gtid(source, gtid.number))
            }
            (Reached::Place(_), true) => {
                if self.prefix.file.as_ref() != Some(&self.position.file) {
                    self.prefix = Prefix::of(self.start.server.into(), Some(&self.position.file));
                }
                Ok(TransactionName::Begin(self.position.clone()))
            }
            (Reached::Domains(_), _) => Err(self.malformed("a transaction of MySQL in the log of MariaDB")),
            (Reached::Gtids(_), true) => {
                let what = "the log holds a transaction without GTID";
                Err(self.refused("mysql-anonymous-transaction", what, "SET GLOBAL gtid_mode = ON for good"))
            }
            (Reached::Place(_), false) => {
                let what = "the log holds a transaction with a GTID, and this pipeline goes by places in the log";
                let instruction = format!(
                    "write watermark = \"gtid\" in [source] and {ANEW}; or SET GLOBAL gtid_mode = OFF for good"
                );
                Err(self.refused("mysql-gtid-transaction", what, &instruction))
            }
        }
    }

    #[inline]
    fn end(&mut self) -> Result<Seen, ConnectorError> {
        let Some(current) = self.current.take() else {
            return Err(self.malformed("a transaction ends that did not begin"));
        };
        self.tables.end_transaction(&current.facts)?;
        self.windows.end_transaction();
        self.executed.add(&current.name, &self.position);
        self.event_time = Some(current.facts.commit_time);
        Ok(Seen::TransactionEnd)
    }

    /// An XA transaction is prepared: one that changed captured tables cannot be held until its end.
    fn prepare_xa(&mut self, name: String) -> Result<(), ConnectorError> {
        // Each change of a captured table, mute or not, moves the change-seq on.
        if self.current.as_ref().is_some_and(|current| self.seq != current.seq_before) {
            return Err(self.prepared_on_captured());
        }
        self.prepared.insert(name);
        Ok(())
    }

    /// XA transactions that are prepared and changed no captured table.
    pub(crate) fn prepared(&self) -> impl Iterator<Item = &String> {
        self.prepared.iter()
    }
}

impl Prefix {
    fn of(source: TransactionSource, file: Option<&Arc<str>>) -> Self {
        let text = match file {
            Some(file) => format!("{source}:{file}:"),
            None => format!("{source}:"),
        };
        Self { source, file: file.cloned(), domain: None, text: text.into() }
    }

    fn of_domain(domain: u32, server: u32) -> Self {
        let text = format!("{domain}-{server}-").into();
        Self { source: TransactionSource::default(), file: None, domain: Some((domain, server)), text }
    }

    fn id(&self, name: &TransactionName) -> TransactionId {
        let number = match name {
            TransactionName::Gtid(_, number) | TransactionName::Domain(_, _, number) => *number,
            TransactionName::Begin(place) => place.offset,
        };
        TransactionId { prefix: Arc::clone(&self.text), number }
    }
}

#[cfg(test)]
mod tests;
