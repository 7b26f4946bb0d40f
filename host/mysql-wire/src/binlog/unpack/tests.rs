//! Packed events of real servers, and ones that no server would write.

use super::super::tests::{NEWER, OF_MARIADB, Random, events_of, mutate, seal};
use super::*;
use crate::binlog::{Frames, RowsOp};

const PAYLOAD: u8 = 40;

/// What comes out of a file: end position, kind and body of each event.
fn unpacked(file: &[u8]) -> Vec<(u32, EventKind, Vec<u8>)> {
    let mut frames = Frames::default();
    let mut all = Vec::new();
    for frame in events_of(file) {
        let put = |event: Event<'_>| (event.header.end_position, event.kind, event.body.to_vec());
        all.push(put(frames.check(&frame).unwrap()));
        while frames.unpack_next(&frame).unwrap() {
            all.push(put(frames.unpacked().unwrap()));
        }
    }
    all
}

fn kinds(file: &[u8]) -> Vec<EventKind> {
    unpacked(file).into_iter().map(|(_, kind, _)| kind).collect()
}

#[test]
fn compressed_transactions_come_event_by_event() {
    use EventKind::{
        DeleteRows, FormatDescription, Gtid, PartialUpdateRows, PreviousGtids, Query, Rotate, RowsQuery, TableMap,
        TaggedGtid, UpdateRows, WriteRows, XaPrepare, Xid,
    };
    let expected = [
        &[FormatDescription, PreviousGtids][..],
        &[Gtid, Query, TableMap, WriteRows, Xid],
        &[TaggedGtid, Query, TableMap, UpdateRows, TableMap, WriteRows, TableMap, DeleteRows, Xid],
        &[TaggedGtid, Query, RowsQuery, TableMap, WriteRows, Xid],
        &[TaggedGtid, Query, RowsQuery, TableMap, WriteRows, Xid],
        &[Gtid, Query, RowsQuery, TableMap, WriteRows, Query, XaPrepare, Gtid, Query],
        &[Gtid, Query, RowsQuery, TableMap, PartialUpdateRows, Xid],
        &[Gtid, Query, Query, RowsQuery, TableMap, WriteRows, Xid, Gtid, Query, Rotate],
    ];
    assert_eq!(kinds(NEWER), expected.concat());
    // The log's place moves on with the whole transaction.
    let ends: Vec<u32> = unpacked(NEWER).into_iter().skip(2).take(14).map(|(end, ..)| end).collect();
    assert_eq!(ends, [&[277, 523, 523, 523, 523, 605][..], &[954; 8]].concat());
}

#[test]
fn tagged_transactions_say_who_they_are() {
    let mut frames = Frames::default();
    let mut named = Vec::new();
    for frame in events_of(NEWER) {
        if let EventBody::Gtid(gtid) = frames.check(&frame).unwrap().read().unwrap() {
            assert_eq!(gtid.uuid[..4], [0xE9, 0xA4, 0xF6, 0x5F]);
            assert!(gtid.transaction_bytes.unwrap() > 100 && gtid.original_commit_us > Some(1 << 50));
            named.push((String::from_utf8(gtid.tag.to_vec()).unwrap(), gtid.number));
        }
    }
    let long = "a_longer_tag_of_32_letters_00000";
    let expected = [("", 4), ("blue", 1), (long, 1), (long, 2), ("", 5), ("", 6), ("", 7), ("", 8), ("", 9)];
    assert_eq!(named, expected.map(|(tag, number)| (tag.to_owned(), number)));
}

#[test]
fn compressed_events_of_mariadb_are_what_they_were() {
    let mut frames = Frames::default();
    let (mut statements, mut rows) = (Vec::new(), Vec::new());
    for frame in events_of(OF_MARIADB) {
        let event = frames.check(&frame).unwrap();
        match event.read().unwrap() {
            EventBody::Query(query) => statements.push(String::from_utf8(query.text.to_vec()).unwrap()),
            EventBody::Rows(event) => {
                assert!(event.holds_first(2));
                rows.push((event.op, event.rows.to_vec()));
            }
            _ => {}
        }
    }
    assert_eq!(statements, ["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))"]);
    let ops: Vec<RowsOp> = rows.iter().map(|(op, _)| *op).collect();
    assert_eq!(ops, [RowsOp::Insert, RowsOp::Update, RowsOp::Delete, RowsOp::Update, RowsOp::Delete]);
    let image =
        |id: u8, text: &str| [&[0xFC, id, 0, 0, 0, u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    assert!(rows[0].1 == [image(1, &"ab".repeat(90)), image(2, "two"), image(3, &"x".repeat(200))].concat());
    assert_eq!(rows[2].1, image(2, "changed 2"));
}

/// The header of a packed event.
fn outer() -> EventHeader {
    EventHeader { timestamp: 0, event_type: PAYLOAD, server_id: 1, event_bytes: 0, end_position: 777, flags: 0 }
}

fn inner(event_type: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(19 + body.len()).unwrap().to_le_bytes();
    [&[0, 0, 0, 0, event_type, 1, 0, 0, 0][..], &length, &[0; 6], body].concat()
}

/// A transaction's body: the fields that stand before it, and what is packed.
fn body(compression: u8, packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, number) in [(2, u64::from(compression)), (3, 1 << 40), (1, packed.len() as u64)] {
        out.push(field);
        let mut value = vec![0xFE];
        value.extend_from_slice(&number.to_le_bytes());
        crate::packet::put_string(&mut out, &value);
    }
    out.push(0);
    out.extend_from_slice(packed);
    out
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    body(0, &zstd::encode_all(bytes, 3).unwrap())
}

/// Event types and bodies of a packed transaction.
fn taken(unpacker: &mut Unpacker, body: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, WireError> {
    let mut events = Vec::new();
    unpacker.begin(Packing::Transaction, outer(), body)?;
    loop {
        let event = unpacker.event().unwrap();
        assert_eq!(event.header.end_position, 777);
        events.push((event.header.event_type, event.body.to_vec()));
        if !unpacker.next(body)? {
            assert!(unpacker.event().is_none() && !unpacker.next(body)?);
            return Ok(events);
        }
    }
}

#[test]
fn large_events_come_whole_and_leave_no_memory_behind() {
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let events = [inner(30, &large), inner(16, &[0; 8])];
    let mut unpacker = Unpacker::default();
    let two_frames = [zstd::encode_all(&events[0][..], 1).unwrap(), zstd::encode_all(&events[1][..], 19).unwrap()];
    let bodies = [compressed(&events.concat()), body(255, &events.concat()), body(0, &two_frames.concat())];
    for body in bodies {
        let taken = taken(&mut unpacker, &body).unwrap();
        assert!(taken == [(30, large.clone()), (16, vec![0; 8])]);
        assert!(unpacker.bytes.capacity() <= KEPT_BYTES);
    }
}

#[test]
fn memory_grows_with_what_comes_not_with_what_is_said() {
    let mut event = inner(30, &[7; 100]);
    event[9..13].copy_from_slice(&(EVENT_BYTES_MAX as u32).to_le_bytes());
    let mut unpacker = Unpacker::default();
    let error = taken(&mut unpacker, &compressed(&event)).unwrap_err();
    assert!(matches!(error, WireError::Protocol(_)), "{error}");
    assert!(unpacker.bytes.capacity() < 1 << 20);
    event[9..13].copy_from_slice(&(EVENT_BYTES_MAX as u32 + 1).to_le_bytes());
    let error = taken(&mut unpacker, &compressed(&event)).unwrap_err();
    assert!(matches!(error, WireError::TooLarge { .. }), "{error}");
}

#[test]
fn what_no_server_packs_is_refused() {
    let begin = inner(2, b"");
    let zstd = zstd::encode_all(&begin[..], 3).unwrap();
    let unpacker = &mut Unpacker::default();
    let mut said = |body: &[u8]| taken(unpacker, body).unwrap_err().to_string();
    assert!(said(&body(7, &zstd)).contains("unknown way 7, at 777: set binlog_transaction_compression = OFF"));
    assert!(said(&[0]).contains("the way that it does not say"));
    assert!(said(&compressed(&inner(PAYLOAD, &body(0, &zstd)))).contains("compressed event inside"));
    assert!(said(&compressed(&inner(167, b""))).contains("compressed event inside"));
    for foreign in [4, 15, 27, 33, 34, 35, 42, 162] {
        assert!(said(&compressed(&inner(foreign, b""))).contains("inside of a compressed transaction"), "{foreign}");
    }
    assert!(said(&compressed(&inner(99, b""))).contains("unknown event type 99 that ends at 777"));
    assert!(said(&compressed(b"")).contains("no event"));
    assert!(said(&body(255, &begin[..10])).contains("too early"));
    assert!(said(&body(255, &[&begin[..], &[1]].concat())).contains("too early"));
    for length in 1..zstd.len() {
        assert!(taken(&mut Unpacker::default(), &body(0, &zstd[..length])).is_err(), "{length}");
    }
    let mut longer = body(0, &zstd);
    longer.push(0);
    assert!(taken(unpacker, &longer).unwrap_err().to_string().contains("another length"));
    // A stream that refers back further than any level does.
    let far = [0x28, 0xB5, 0x2F, 0xFD, 0x00, (28 - 10) << 3, 0x01, 0x00, 0x00];
    assert!(taken(unpacker, &body(0, &far)).is_err());
    // After all that, what is right is read.
    assert_eq!(taken(unpacker, &body(0, &zstd)).unwrap().len(), 1);
}

#[test]
fn an_event_that_may_be_skipped_is_handed_on_as_such() {
    let mut event = inner(99, b"later");
    event[17] = 0x80;
    let unpacker = &mut Unpacker::default();
    unpacker.begin(Packing::Transaction, outer(), &compressed(&event)).unwrap();
    assert_eq!(unpacker.event().unwrap().kind, EventKind::Skipped);
}

#[test]
fn broken_events_of_mariadb_are_refused() {
    // No status, no database.
    let statement = |packed: &[u8]| [&[0; 14][..], packed].concat();
    let mut unpacker = Unpacker::default();
    let mut begin = |packed: &[u8]| unpacker.begin(Packing::Event(2), outer(), &statement(packed));
    let zlib = b"\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27";
    assert!(begin(&[&[0x81, 3][..], zlib].concat()).is_ok());
    for head in [0x01, 0x91, 0xF1] {
        let error = begin(&[&[head, 3][..], zlib].concat()).unwrap_err();
        assert!(error.to_string().contains("set log_bin_compress = OFF"), "{error}");
    }
    for length in [2, 4] {
        let error = begin(&[&[0x81, length][..], zlib].concat()).unwrap_err();
        assert!(error.to_string().contains("another length"), "{error}");
    }
    let error = begin(&[&[0x84, 0xFF, 0xFF, 0xFF, 0xFF][..], zlib].concat()).unwrap_err();
    assert!(matches!(error, WireError::TooLarge { .. }), "{error}");
    for length in 0..zlib.len() {
        assert!(begin(&[&[0x81, 3][..], &zlib[..length]].concat()).is_err(), "{length}");
    }
    assert!(begin(b"").is_err());
}

#[test]
fn damage_behind_a_right_checksum_is_an_error_or_an_event() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for file in [NEWER, OF_MARIADB] {
        let events = events_of(file);
        let is_packed = |event: &&Vec<u8>| matches!(decision(event[4]), Decision::Unpack(_));
        let packed: Vec<&Vec<u8>> = events.iter().filter(is_packed).collect();
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut event = packed[random.below(packed.len())].clone();
            event.truncate(event.len() - 4);
            let mut body = event.split_off(19);
            mutate(&mut random, &mut body);
            event.extend_from_slice(&body);
            seal(&mut event);
            let mut frames = Frames::default();
            frames.check(&events[0]).unwrap();
            let mut walk = || -> Result<(), WireError> {
                frames.check(&event)?;
                while frames.unpack_next(&event)? {}
                Ok(())
            };
            match walk() {
                Ok(()) => read += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(read > 200 && refused > 2_000, "{read} read, {refused} refused");
    }
}
