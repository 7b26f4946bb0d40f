//! What a checkpoint keeps of the source: the offset, and the state of its tables.

use bytes::Bytes;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::{SourceOffset, StateBlob, TableId, TableSchema};
use serde::{Deserialize, Serialize};

use crate::binlog::LogFile;
use crate::snapshot::Walk;
use cdchost_mysql_position::{BinlogPosition, DomainGtids, GtidSet, Reached, ServerUuid};

/// Formats of offsets: with a set of transactions, with a place alone, with domains of MariaDB.
const OFFSET_OF_GTIDS: u8 = 1;
const OFFSET_OF_PLACE: u8 = 2;
const OFFSET_OF_DOMAINS: u8 = 3;
/// Added to the format where the file of the log follows the place, as it is written here.
const WITH_LOG_FILE: u8 = 0x10;
/// Format of states written here.
const STATE_FORMAT: u32 = 1;
/// A server's file names are far shorter.
const FILE_BYTES_MAX: usize = 512;

/// Where the source stands.
///
/// As bytes: format (1 byte), server uuid (16), event time (i64), change-seq (i64), byte in the file (u64), length of
/// the file's name (u16) and the name; with 16 added to the format when the log's last file was begun (u32, seconds since
/// the epoch), length of its name (u16) and the name; and then in format 1 the set of transactions; numbers little-endian.
/// In format 2, of a server without GTIDs, the place is all there is; in format 3 MariaDB's domains follow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offset {
    /// Transactions handed on.
    pub(crate) executed: Reached,
    /// Where that was in the log: a hint where there is a set.
    pub(crate) position: BinlogPosition,
    /// Whose log.
    pub(crate) server: ServerUuid,
    /// Commit time of the last transaction, in microseconds since the epoch; 0 for none.
    pub(crate) event_time: i64,
    /// The file of the log that was read last, where one was.
    pub(crate) log_file: Option<LogFile>,
    /// The change-seq taken last.
    pub(crate) seq: i64,
}

/// The tables at a cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct State {
    pub(crate) tables: Vec<TableState>,
    /// Tables that were captured by an earlier run and are not any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<TableId>,
    /// XA transactions that are prepared and changed no captured table, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) prepared: Vec<String>,
}

/// One table at a cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TableState {
    pub(crate) schema: TableSchema,
    /// The index of its key.
    pub(crate) key_index: String,
    /// How far its snapshot is.
    pub(crate) walk: Walk,
    /// Rows that the snapshot handed on.
    pub(crate) rows_read: u64,
    /// Chunks that the snapshot handed on.
    pub(crate) chunks: u64,
    /// Row changes handed on.
    pub(crate) changes: u64,
}

impl Offset {
    pub(crate) fn encode(&self) -> SourceOffset {
        let kind = match self.executed {
            Reached::Gtids(_) => OFFSET_OF_GTIDS,
            Reached::Place(_) => OFFSET_OF_PLACE,
            Reached::Domains(_) => OFFSET_OF_DOMAINS,
        };
        let mut out = vec![kind | self.log_file.as_ref().map_or(0, |_| WITH_LOG_FILE)];
        out.extend_from_slice(&self.server.0);
        out.extend_from_slice(&self.event_time.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.position.offset.to_le_bytes());
        put_name(&self.position.file, &mut out);
        if let Some(file) = &self.log_file {
            out.extend_from_slice(&file.begun.to_le_bytes());
            put_name(&file.name, &mut out);
        }
        match &self.executed {
            Reached::Gtids(set) => set.encode(&mut out),
            Reached::Domains(domains) => domains.encode(&mut out),
            Reached::Place(_) => {}
        }
        SourceOffset(Bytes::from(out))
    }

    pub(crate) fn decode(offset: &SourceOffset) -> Result<Self, ConnectorError> {
        Self::read(&offset.0).ok_or_else(|| {
            let message = format!("an offset of {} bytes is not one that this program reads", offset.0.len());
            ConnectorError::stop(StopClass::Storage, "mysql-offset", message)
                .with_instruction("restore an older record, or use the version of cdchost that wrote this one")
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (&format, rest) = bytes.split_first()?;
        let (server, rest) = rest.split_first_chunk::<16>()?;
        let (event_time, rest) = rest.split_first_chunk::<8>()?;
        let (seq, rest) = rest.split_first_chunk::<8>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (file, mut set) = take_name(rest)?;
        let mut log_file = None;
        if format & WITH_LOG_FILE != 0 {
            let (begun, rest) = set.split_first_chunk::<4>()?;
            let (name, rest) = take_name(rest)?;
            log_file = Some(LogFile { name: name.into(), begun: u32::from_le_bytes(*begun) });
            set = rest;
        }
        let seq = i64::from_le_bytes(*seq);
        let position = BinlogPosition::new(file, u64::from_le_bytes(*offset));
        let executed = match format & !WITH_LOG_FILE {
            OFFSET_OF_GTIDS => Reached::Gtids(GtidSet::decode(set).ok()?),
            OFFSET_OF_DOMAINS => Reached::Domains(DomainGtids::decode(set)?),
            OFFSET_OF_PLACE if set.is_empty() && !file.is_empty() => Reached::Place(position.clone()),
            _ => return None,
        };
        Some(Self {
            executed,
            position,
            server: ServerUuid(*server),
            event_time: i64::from_le_bytes(*event_time),
            log_file,
            seq: (seq >= 0).then_some(seq)?,
        })
    }
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    let length = u16::try_from(name.len()).expect("a file's name is short");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
}

fn take_name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (name, rest) = rest.split_at_checked(length).filter(|_| length <= FILE_BYTES_MAX)?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

impl State {
    pub(crate) fn encode(&self) -> StateBlob {
        let payload = serde_json::to_vec(self).expect("a state is plain data");
        StateBlob { format: STATE_FORMAT, payload: payload.into() }
    }

    pub(crate) fn decode(blob: &StateBlob) -> Result<Self, ConnectorError> {
        let refuse = |message: String| {
            ConnectorError::stop(StopClass::Storage, "mysql-state", message)
                .with_instruction("restore an older record, or use the version of cdchost that wrote this one")
        };
        if blob.format != STATE_FORMAT {
            return Err(refuse(format!(
                "the source's state has format {}, this program reads {STATE_FORMAT}",
                blob.format
            )));
        }
        let state: Self = serde_json::from_slice(&blob.payload)
            .map_err(|error| refuse(format!("the source's state cannot be read: {error}")))?;
        for table in &state.tables {
            table.schema.check().map_err(|error| refuse(format!("the source's state is damaged: {error}")))?;
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset() -> Offset {
        Offset {
            executed: Reached::Gtids(GtidSet::parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:8").unwrap()),
            position: BinlogPosition::new("binlog.000007", 5_000_000_000),
            server: ServerUuid([7; 16]),
            event_time: 1_700_000_000_000_000,
            log_file: None,
            seq: 42,
        }
    }

    #[test]
    fn offsets_come_back() {
        assert_eq!(Offset::decode(&offset().encode()).unwrap(), offset());
        let tagged = GtidSet::parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:blue:8").unwrap();
        let tagged = Offset { executed: Reached::Gtids(tagged), ..offset() };
        assert_eq!(Offset::decode(&tagged.encode()).unwrap(), tagged);
    }

    #[test]
    fn the_file_of_the_log_comes_back() {
        let log_file = Some(LogFile { name: "binlog.000008".into(), begun: 1_700_000_001 });
        let offset = Offset { log_file, ..offset() };
        let bytes = offset.encode().0;
        assert_eq!((bytes[0], Offset::read(&bytes)), (0x11, Some(offset)));
        assert_eq!(&bytes[56..][..6], [&1_700_000_001u32.to_le_bytes()[..], &[13, 0]].concat());
        for length in 0..bytes.len() {
            assert_eq!(Offset::read(&bytes[..length]), None, "{length}");
        }
    }

    const KEPT: &str = "0107070707070707070707070707070707\
                    00401e18240a0600\
                    2a00000000000000\
                    00f2052a01000000\
                    0d0062696e6c6f672e303030303037\
                    01000000000000003e11fa4771ca11e19e33c80aa9429562\
                    0200000000000000\
                    01000000000000000600000000000000\
                    08000000000000000900000000000000";

    #[test]
    fn an_offset_written_by_format_1_is_read() {
        let shown: String = offset().encode().0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, KEPT);
    }

    #[test]
    fn offsets_of_places_and_of_domains_come_back() {
        let position = offset().position;
        let place = Offset { executed: Reached::Place(position.clone()), ..offset() };
        assert_eq!(Offset::decode(&place.encode()).unwrap(), place);
        let kept = format!("02{}", KEPT[2..].split_at(2 * (16 + 8 + 8 + 8 + 2 + 13)).0);
        let domains = Reached::Domains(DomainGtids::parse("0-1-5,1-2-7").unwrap());
        let domains = Offset { executed: domains, ..offset() };
        assert_eq!(Offset::decode(&domains.encode()).unwrap(), domains);
        let shown: String = place.encode().0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, kept);
    }

    #[test]
    fn damaged_offsets_are_refused() {
        let good = offset().encode().0;
        for length in 0..good.len() {
            assert!(Offset::decode(&SourceOffset(good.slice(..length))).is_err(), "{length}");
        }
        let mut other = good.to_vec();
        other[0] = 4;
        assert!(Offset::decode(&SourceOffset(other.into())).is_err());
        assert!(Offset::decode(&SourceOffset([&good[..], &[0]].concat().into())).is_err());
    }

    #[test]
    fn a_state_written_by_format_1_is_read() {
        let kept = r#"{"tables":[{"schema":{"table":{"database":"d","table":"t"},"version":1,"fields":[{"name":"id","ty":"int32","nullable":false,"native_type":"int(11)","default_value":null,"comment":null}],"primary_key":[0],"partition_key":[],"options":[]},"key-index":"PRIMARY","walk":{"emitting":{"next":[{"type":3,"unsigned":false,"bytes":"07000000"}]}},"rows-read":7,"chunks":1,"changes":2}]}"#;
        let blob = StateBlob { format: 1, payload: Bytes::from_static(kept.as_bytes()) };
        let state = State::decode(&blob).unwrap();
        assert_eq!(state.encode().payload, blob.payload);
        assert!(State::decode(&StateBlob { format: 2, payload: blob.payload.clone() }).is_err());
        let damaged = StateBlob { format: 1, payload: kept.replace("[0]", "[9]").into() };
        assert!(State::decode(&damaged).is_err());
    }
}
