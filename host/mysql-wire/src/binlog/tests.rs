//! Recorded events of a real server, whole and damaged.

use super::{Decision, Event, EventBody, EventKind, Frames, RowsOp, TableMap, decision};
use crate::WireError;
use crate::error::ProtocolError;

/// A file of MySQL 8.0.15 with full row metadata: two tables, all kinds of statements.
const BINLOG: &[u8] = include_bytes!("../../tests/data/mysql-8.0.15.binlog");
/// A file of MySQL 9.7.4: compressed transactions, tags.
pub(crate) const NEWER: &[u8] = include_bytes!("../../tests/data/mysql-9.7.4.binlog");
/// A file of MariaDB 10.11.19 with all that it compresses.
pub(crate) const OF_MARIADB: &[u8] = include_bytes!("../../tests/data/mariadb-10.11.19.binlog");

/// The events of the first file.
fn recorded() -> Vec<Vec<u8>> {
    events_of(BINLOG)
}

/// The events of a file.
pub(crate) fn events_of(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = file.strip_prefix(b"\xFEbin").unwrap();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, after) = rest.split_at(length);
        events.push(event.to_vec());
        rest = after;
    }
    events
}

/// Makes length and checksum right again.
pub(crate) fn seal(event: &mut Vec<u8>) {
    let length = (event.len() + 4) as u32;
    if let Some(field) = event.get_mut(9..13) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    let sum = crc32fast::hash(event).to_le_bytes();
    event.extend_from_slice(&sum);
}

/// The checker as it is behind a file's format description.
fn frames() -> Frames {
    let mut frames = Frames::default();
    frames.check(&recorded()[0]).unwrap();
    frames
}

/// Reads all that can be read of an event and of those packed in it; gives the kind of the last.
fn read_all(frames: &mut Frames, frame: &[u8]) -> Result<EventKind, WireError> {
    let mut kind = read_one(&frames.check(frame)?)?;
    while frames.unpack_next(frame)? {
        kind = read_one(&frames.unpacked().unwrap())?;
    }
    Ok(kind)
}

fn read_one(event: &Event<'_>) -> Result<EventKind, WireError> {
    match event.read()? {
        EventBody::TableMap(map) => drop(map.columns()?),
        EventBody::Query(query) | EventBody::LoadQuery(query) => drop(query.status()?),
        EventBody::Rows(rows) => drop(rows.holds_first(rows.column_count)),
        _ => {}
    }
    Ok(event.kind)
}

#[test]
fn a_recorded_file_is_read_event_by_event() {
    use EventKind::{
        DeleteRows, FormatDescription, Gtid, PreviousGtids, Query, Rotate, RowsQuery, Skipped, TableMap, UpdateRows,
        WriteRows, XaPrepare, Xid,
    };
    let mut frames = Frames::default();
    let kinds: Vec<_> = recorded().iter().map(|event| read_all(&mut frames, event).unwrap()).collect();
    let expected = [
        &[FormatDescription, PreviousGtids, Gtid, Query, Gtid, Query][..],
        &[Gtid, Query, RowsQuery, TableMap, WriteRows, Xid],
        &[Gtid, Query, RowsQuery, TableMap, UpdateRows, Xid],
        &[Gtid, Query, RowsQuery, TableMap, DeleteRows, Xid],
        &[Gtid, Query],
        &[Gtid, Query, TableMap, WriteRows, Query, TableMap, UpdateRows, TableMap, DeleteRows, Xid],
        &[Gtid, Query, Gtid, Query, Gtid, Query],
        &[Gtid, Query, TableMap, WriteRows, Query, XaPrepare, Gtid, Query],
        &[Gtid, Query, Skipped, Skipped, Query, Xid, Gtid, Query, Rotate],
    ];
    assert_eq!(kinds, expected.concat());
}

#[test]
fn bodies_are_what_was_done() {
    let mut frames = Frames::default();
    let (mut statements, mut rows) = (Vec::new(), Vec::new());
    for event in recorded() {
        let event = frames.check(&event).unwrap();
        match event.read().unwrap() {
            EventBody::FormatDescription(format) => assert_eq!(format.server_version, b"8.0.15"),
            // One server, one interval.
            EventBody::PreviousGtids(set) => assert_eq!(set.len(), 8 + 16 + 8 + 16),
            EventBody::Gtid(gtid) => {
                assert_eq!(gtid.original_commit_us, gtid.immediate_commit_us);
                assert!(gtid.tag.is_empty() && gtid.number > 5000 && gtid.transaction_bytes.unwrap() > 100);
            }
            EventBody::Query(query) => {
                assert_eq!((query.database, query.error_code), (&b"wire_rec"[..], 0));
                let status = query.status().unwrap();
                assert_eq!((status.client_collation, status.server_collation), (Some(45), Some(255)));
                assert!(status.sql_mode.is_some() && status.connection_collation == Some(45));
                statements.push(String::from_utf8(query.text.to_vec()).unwrap());
            }
            EventBody::RowsQuery(text) => statements.push(String::from_utf8(text.to_vec()).unwrap()),
            EventBody::Rows(event) => {
                assert!(event.ends_statement && event.holds_first(event.column_count));
                rows.push((event.op, event.column_count, event.rows.len()));
            }
            EventBody::XaPrepare(xa) => assert_eq!((xa.one_phase, xa.name().as_str()), (false, "X'7831',X'79',7")),
            EventBody::Rotate(rotate) => assert_eq!((rotate.file, rotate.position), (&b"binlog.000005"[..], 4)),
            _ => {}
        }
    }
    assert_eq!(statements[0], "create database wire_rec");
    assert!(statements.contains(&"delete from types".to_owned()));
    assert!(statements.contains(&"XA COMMIT X'7831',X'79',7".to_owned()));
    assert_eq!(rows[0].0, RowsOp::Insert);
    assert_eq!(rows[3], (RowsOp::Insert, 2, 3 * 7));
    assert_eq!(rows[4], (RowsOp::Update, 2, 4 * 7));
    assert_eq!(rows[5], (RowsOp::Delete, 2, 7));
}

/// The first table map of the file.
fn first_table_map() -> TableMap {
    let mut frames = frames();
    for event in recorded() {
        let event = frames.check(&event).unwrap();
        if let EventBody::TableMap(map) = event.read().unwrap() {
            assert_eq!((map.database, map.table), (&b"wire_rec"[..], &b"types"[..]));
            return map.columns().unwrap();
        }
    }
    panic!("no table map in the file")
}

#[test]
fn a_table_map_says_all_of_its_columns() {
    let map = first_table_map();
    let named = |name: &str| map.columns.iter().find(|column| column.name.as_deref() == Some(name)).unwrap();
    let form = |name: &str| {
        let column = named(name);
        (column.column_type, column.metadata, column.nullable)
    };
    assert_eq!(map.columns.len(), 27);
    assert_eq!(form("id"), (8, 0, false));
    assert_eq!(form("e"), (246, 20 * 256 + 5, true));
    assert_eq!(form("bt"), (16, 256 + 2, true));
    assert_eq!(form("ch"), (254, 800, true));
    assert_eq!(form("vb"), (15, 20, true));
    assert_eq!(form("bl"), (252, 2, true));
    assert_eq!(form("en"), (247, 1, true));
    assert_eq!(form("st"), (248, 1, true));
    assert_eq!(form("dt"), (18, 3, true));
    assert_eq!(form("ti"), (19, 2, true));
    assert_eq!(form("bi"), (254, 7, true));
    let unsigned = |name: &str| named(name).unsigned;
    assert_eq!((unsigned("id"), unsigned("y"), unsigned("b"), unsigned("c")), (Some(true), None, None, None));
    assert_eq!(named("en").labels, Some(vec![b"x".to_vec(), "yé".as_bytes().to_vec()]));
    assert_eq!(named("st").labels, Some(vec![b"p".to_vec(), b"q".to_vec()]));
}

/// Of `(id INT PRIMARY KEY, y YEAR, n INT)` MySQL 9.7.4 and MariaDB 10.11.19 give three bits, the middle one set; MySQL
/// 8.0.15 gives two.
#[test]
fn what_stands_behind_a_year_is_not_mistaken_for_unsigned() {
    for bits in [0x40, 0x00] {
        let definition = [3, 3, 13, 3, 0, 6, 1, 1, bits, 4, 7, 2, b'i', b'd', 1, b'y', 1, b'n', 8, 1, 0];
        let map = super::TableMapEvent { table_id: 1, database: b"yy", table: b"y", definition: &definition };
        let columns = map.columns().unwrap().columns;
        let unsigned: Vec<_> = columns.iter().map(|column| column.unsigned).collect();
        assert_eq!(unsigned, [Some(false), None, None]);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for event in [BINLOG, NEWER, OF_MARIADB].into_iter().flat_map(events_of) {
        for bit in 0..event.len() * 8 {
            let mut event = event.clone();
            event[bit / 8] ^= 1 << (bit % 8);
            // A damaged type, length or checksum kind is found by itself, all else by the checksum.
            assert!(frames().check(&event).is_err(), "bit {bit} of an event of type {}", event[4]);
        }
    }
}

#[test]
fn files_without_checksums_are_read_too() {
    let mut frames = Frames::default();
    for mut event in recorded() {
        if event[4] == 15 {
            event.truncate(event.len() - 5);
            event.push(0);
            seal(&mut event);
        } else {
            event.truncate(event.len() - 4);
            let length = event.len() as u32;
            event[9..13].copy_from_slice(&length.to_le_bytes());
        }
        read_all(&mut frames, &event).unwrap();
    }
}

#[test]
fn the_rotate_before_all_else_comes_with_or_without_checksum() {
    let header = |length: u8| [0, 0, 0, 0, 4, 1, 0, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, 0x20, 0];
    let body = b"\x04\0\0\0\0\0\0\0binlog.000001";
    let plain = [&header(19 + 21)[..], body].concat();
    let mut sealed = plain.clone();
    seal(&mut sealed);
    assert!(frames().check(&plain).is_err());
    for (mut frames, event) in [(Frames::default(), &plain), (Frames::default(), &sealed), (frames(), &sealed)] {
        let event = frames.check(event).unwrap();
        assert!(event.header.is_artificial());
        let EventBody::Rotate(rotate) = event.read().unwrap() else { panic!("not a rotate") };
        assert_eq!((rotate.file, rotate.position), (&b"binlog.000001"[..], 4));
    }
}

#[test]
fn places_that_no_file_has_are_refused() {
    let read = |event_type: u8, body: &[u8]| {
        let header = [0, 0, 0, 0, event_type, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut event = [&header[..], body].concat();
        seal(&mut event);
        read_all(&mut frames(), &event)
    };
    let rotate = |place: u64| read(4, &[&place.to_le_bytes()[..], b"binlog.000001"].concat());
    let heartbeat = |place: u64| read(41, &[&[2, 9, 0xFE][..], &place.to_le_bytes()].concat());
    let gtid =
        |length: u64| read(33, &[&[0; 25][..], &[2], &[0; 16], &[0; 7], &[0xFE], &length.to_le_bytes()].concat());
    for read in [&rotate as &dyn Fn(u64) -> _, &heartbeat, &gtid] {
        assert!(read((1 << 62) - 1).is_ok(), "{:?}", read((1 << 62) - 1));
        assert!(read(1 << 62).is_err());
        assert!(read(u64::MAX).is_err());
    }
}

#[test]
fn events_before_the_format_description_are_refused() {
    assert!(matches!(Frames::default().check(&recorded()[1]).unwrap_err(), WireError::Protocol(_)));
}

/// An event of `event_type` with these flags and an empty body.
fn empty_event(event_type: u8, flags: u8) -> Vec<u8> {
    let mut event = vec![0, 0, 0, 0, event_type, 1, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, flags, 0];
    seal(&mut event);
    event
}

#[test]
fn every_type_is_decided_on() {
    for event_type in 0..=255 {
        let plain = frames().check(&empty_event(event_type, 0)).map(|event| event.kind);
        let ignorable = frames().check(&empty_event(event_type, 0x80)).map(|event| event.kind);
        match decision(event_type) {
            // Its checksum's kind is looked for in the body that is missing here.
            Decision::Read(EventKind::FormatDescription) => assert!(plain.is_err()),
            Decision::Read(kind) => assert_eq!((plain.unwrap(), ignorable.unwrap()), (kind, kind)),
            // What is packed in it is looked for, and is missing here.
            Decision::Unpack(_) => assert!(matches!(plain, Err(WireError::Protocol(_))) && ignorable.is_err()),
            Decision::Refuse(what) => {
                for result in [plain, ignorable] {
                    let error = result.unwrap_err();
                    assert!(matches!(&error, WireError::Unsupported { what: said } if said.contains(what)), "{error}");
                }
            }
            Decision::Unknown => {
                let error = plain.unwrap_err().to_string();
                assert!(error.contains(&format!("unknown event type {event_type}")), "{error}");
                assert_eq!(ignorable.unwrap(), EventKind::Skipped);
            }
        }
    }
    let rows = [19, 23, 24, 25, 30, 31, 32].map(decision);
    assert!(rows.iter().all(|decision| matches!(decision, Decision::Read(kind) if *kind != EventKind::Skipped)));
    assert!(matches!(decision(164), Decision::Refuse(_)));
}

#[test]
fn heartbeats_of_the_second_version_say_long_positions() {
    let position = 5_000_000_000_u64;
    let mut event = empty_event(41, 0);
    event.truncate(19);
    event.extend_from_slice(b"\x01\x0Dbinlog.000007\x02\x09\xFE");
    event.extend_from_slice(&position.to_le_bytes());
    event.push(0);
    seal(&mut event);
    let mut frames = frames();
    let EventBody::Heartbeat(heartbeat) = frames.check(&event).unwrap().read().unwrap() else { panic!("no heartbeat") };
    assert_eq!((heartbeat.file, heartbeat.position), (&b"binlog.000007"[..], position));
}

/// A plain generator: the same bytes in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Changes a few bytes, cuts, or puts bytes in.
pub(crate) fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let value = [0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, random.next() as u8][random.below(11)];
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, value),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
        }
    }
}

#[test]
fn no_damage_can_make_it_panic() {
    let events: Vec<_> = [BINLOG, NEWER, OF_MARIADB].into_iter().flat_map(events_of).collect();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..150_000 {
        let mut event = events[random.below(events.len())].clone();
        let body_bytes = event.len() - 4;
        // Mostly behind the header and with a right checksum, so that the readers see the damage.
        if random.below(4) == 0 {
            mutate(&mut random, &mut event);
        } else {
            event.truncate(body_bytes);
            let mut body = event.split_off(19);
            mutate(&mut random, &mut body);
            event.extend_from_slice(&body);
            if random.below(8) == 0 {
                event[4] = random.next() as u8;
            }
            seal(&mut event);
        }
        match read_all(&mut frames_after(&events[0]), &event) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 10_000 && refused > 10_000, "{read} read, {refused} refused");
}

fn frames_after(format: &[u8]) -> Frames {
    let mut frames = Frames::default();
    frames.check(format).unwrap();
    frames
}

#[test]
fn columns_beyond_the_limit_are_refused() {
    let map = |count: &[u8]| {
        let mut event = empty_event(19, 0);
        event.truncate(19);
        event.extend_from_slice(b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0");
        event.extend_from_slice(count);
        event.extend_from_slice(&[3; 5000]);
        seal(&mut event);
        let mut frames = frames();
        let EventBody::TableMap(map) = frames.check(&event).unwrap().read().unwrap() else { panic!("no table map") };
        map.columns().unwrap_err()
    };
    let limit = |columns: u32| ProtocolError::new(format!("a table map of {columns} columns"));
    assert_eq!(map(&[0xFC, 0x01, 0x10]), limit(4097));
    assert_eq!(map(&[0]), limit(0));
}
