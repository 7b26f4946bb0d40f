//! The binlog dump: asking for it as a replica does, and its events one by one.

use std::time::Duration;

use crate::binlog::{Event, Frames};
use crate::connection::{Connection, ServerInfo};
use crate::error::{ProtocolError, WireError};
use crate::packet::{Taken, server_error};

/// A link that is silent for so many heartbeat periods is given up.
const HEARTBEATS_MISSED_MAX: u32 = 3;
/// Heartbeats carry 64-bit positions (MySQL 8.0.26 and later; older servers do not look at it).
const HEARTBEAT_V2: u16 = 0x02;
/// The server looks for no file by name: it finds the first one needed by the GTID set.
const FIRST_POSITION: u64 = 4;

/// What to ask for.
#[derive(Clone, Debug)]
pub struct DumpRequest {
    /// The number by which this replica is known; of no other replica of the server.
    pub server_id: u32,
    /// The uuid by which this replica is known, so that the server ends an older dump of the same one.
    pub uuid: Option<String>,
    /// Where to begin.
    pub start: DumpStart,
    /// How often the server sends a sign of life while it has nothing to send.
    pub heartbeat: Duration,
}

/// Where a dump begins.
#[derive(Clone, Debug)]
pub enum DumpStart {
    /// Everything but these transactions: a set in the server's own form.
    Gtid(Vec<u8>),
    /// At an event's beginning in a file.
    Position {
        /// Name of the binlog file; empty for the first that the server has.
        file: String,
        /// Byte in it, at least 4.
        position: u32,
    },
    /// On MariaDB: everything behind these transactions, one for each domain (`0-1-5,1-7-9`).
    Domains(String),
}

impl Connection {
    /// Turns the connection into a dump of the server's binlog.
    pub async fn dump(mut self, request: &DumpRequest) -> Result<BinlogStream, WireError> {
        let nanoseconds = request.heartbeat.as_nanos();
        let mut settings = format!(
            "SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}, \
             @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'"
        );
        if let DumpStart::Domains(domains) = &request.start {
            if !domains.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b',') {
                return Err(WireError::Misuse("GTIDs of MariaDB have digits, '-' and ',' only".into()));
            }
            // 4: knows GTIDs, and so needs no BEGIN behind them.
            settings.push_str(&format!(", @mariadb_slave_capability = 4, @slave_connect_state = '{domains}'"));
        }
        if let Some(uuid) = &request.uuid {
            if !uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
                return Err(WireError::Misuse("a replica's uuid has other characters than hex digits and '-'".into()));
            }
            settings.push_str(&format!(", @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"));
        }
        self.query(&settings).await?;
        self.begin("registering as a replica", &register_payload(request.server_id)).await?;
        self.answer().await?;
        self.end();
        self.begin("reading the binlog", &dump_payload(request)?).await?;
        self.packets.silence_max = request.heartbeat * HEARTBEATS_MISSED_MAX;
        Ok(BinlogStream { connection: self, frames: Frames::default(), packed: None })
    }
}

/// The events of a binlog as the server sends them, each checked, and unpacked where it came packed. Has no end of its
/// own.
#[derive(Debug)]
pub struct BinlogStream {
    connection: Connection,
    frames: Frames,
    /// The packet taken last, while more events may be packed in it.
    packed: Option<Taken>,
}

impl BinlogStream {
    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        self.connection.server()
    }

    /// The next event, if all of it has been read from the connection already. Never waits: none means that this is
    /// the moment to hand on what was gathered, and then to [`Self::fill`].
    #[inline]
    pub fn next_buffered(&mut self) -> Result<Option<Event<'_>>, WireError> {
        if self.unpack_next()? {
            return Ok(self.frames.unpacked());
        }
        match self.connection.packets.take()? {
            Some(taken) => self.event(taken).map(Some),
            None => Ok(None),
        }
    }

    /// Waits until more has been read from the connection; an error after three heartbeat periods of silence. Waits for
    /// nothing while events are packed in what was read. Dropping the future loses nothing.
    pub async fn fill(&mut self) -> Result<(), WireError> {
        match self.packed {
            // Reading on would move the packet that they are in.
            Some(_) => Ok(()),
            None => self.connection.packets.fill().await,
        }
    }

    /// The next event, waiting for it.
    pub async fn next(&mut self) -> Result<Event<'_>, WireError> {
        if self.unpack_next()? {
            return self.frames.unpacked().ok_or_else(|| ProtocolError::short("a packed event").into());
        }
        let taken = self.connection.packets.next_taken().await?;
        self.event(taken)
    }

    /// Unpacks the next event out of the packet taken last, if there is one.
    #[inline]
    fn unpack_next(&mut self) -> Result<bool, WireError> {
        let Some(taken) = &self.packed else { return Ok(false) };
        let frame = self.connection.packets.bytes(taken).get(1..).unwrap_or_default();
        let is_there = self.frames.unpack_next(frame)?;
        if !is_there {
            self.packed = None;
        }
        Ok(is_there)
    }

    #[inline]
    fn event(&mut self, taken: Taken) -> Result<Event<'_>, WireError> {
        match self.connection.packets.bytes(&taken) {
            [0, frame @ ..] => {
                self.packed = Frames::holds_several(frame).then_some(taken);
                self.frames.check(frame)
            }
            packet => Err(not_an_event(packet)),
        }
    }
}

#[cold]
fn not_an_event(packet: &[u8]) -> WireError {
    match packet.first() {
        Some(0xFF) => server_error(packet).map_or_else(WireError::from, WireError::from),
        Some(0xFE) if packet.len() < 9 => WireError::StreamEnded,
        _ => ProtocolError::new("a packet of the binlog stream that carries no event").into(),
    }
}

fn register_payload(server_id: u32) -> Vec<u8> {
    let mut out = vec![0x15];
    out.extend_from_slice(&server_id.to_le_bytes());
    // No host name, user, password and port to be shown; no rank; no source id.
    out.extend_from_slice(&[0; 3 + 2 + 4 + 4]);
    out
}

fn dump_payload(request: &DumpRequest) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    match &request.start {
        DumpStart::Position { file, position } => {
            out.push(0x12);
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(&HEARTBEAT_V2.to_le_bytes());
            out.extend_from_slice(&request.server_id.to_le_bytes());
            out.extend_from_slice(file.as_bytes());
        }
        DumpStart::Domains(_) => {
            out.push(0x12);
            // The domains say where; these are not looked at. No flag: those of MySQL mean something else here.
            out.extend_from_slice(&4_u32.to_le_bytes());
            out.extend_from_slice(&0_u16.to_le_bytes());
            out.extend_from_slice(&request.server_id.to_le_bytes());
        }
        DumpStart::Gtid(executed) => {
            let length = u32::try_from(executed.len()).map_err(|_| WireError::Misuse("a GTID set of 4 GiB".into()))?;
            out.push(0x1E);
            out.extend_from_slice(&HEARTBEAT_V2.to_le_bytes());
            out.extend_from_slice(&request.server_id.to_le_bytes());
            out.extend_from_slice(&0_u32.to_le_bytes());
            out.extend_from_slice(&FIRST_POSITION.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(executed);
        }
    }
    Ok(out)
}
