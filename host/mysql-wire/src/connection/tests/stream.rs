//! The binlog dump: what is asked for, and its ends.

use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::time::Instant;

use super::{DENIED, FakeServer, OK, logged_in, options};
use crate::binlog::EventKind;
use crate::binlog::tests::{NEWER, events_of};
use crate::{BinlogStream, DumpRequest, DumpStart, Remedy, WireError};

const BINLOG: &[u8] = include_bytes!("../../../tests/data/mysql-8.0.15.binlog");

fn request(start: DumpStart) -> DumpRequest {
    DumpRequest { server_id: 42, uuid: None, start, heartbeat: Duration::from_secs(2) }
}

/// A dump that has begun; `expected` is what asks for it.
async fn begun(request: &DumpRequest, expected: &[u8]) -> (BinlogStream, FakeServer<DuplexStream>) {
    let (connection, mut server) = logged_in(&options()).await;
    let serve = async {
        let settings = String::from_utf8(server.receive().await).unwrap();
        assert!(settings.contains("@master_heartbeat_period = 2000000000,"), "{settings}");
        assert!(settings.contains("@master_binlog_checksum = 'CRC32'"), "{settings}");
        server.send(OK).await;
        let register = server.receive().await;
        assert_eq!((register.len(), &register[..5]), (18, &[0x15, 42, 0, 0, 0][..]));
        server.send(OK).await;
        assert_eq!(server.receive().await, expected);
    };
    let (stream, ()) = tokio::join!(connection.dump(request), serve);
    (stream.unwrap(), server)
}

async fn begun_at_a_position() -> (BinlogStream, FakeServer<DuplexStream>) {
    let start = DumpStart::Position { file: "binlog.000001".to_owned(), position: 4 };
    begun(&request(start), b"\x12\x04\0\0\0\x02\0\x2A\0\0\0binlog.000001").await
}

/// The events of the recorded file.
fn recorded() -> Vec<&'static [u8]> {
    let mut rest = &BINLOG[4..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, after) = rest.split_at(length);
        events.push(event);
        rest = after;
    }
    events
}

#[tokio::test]
async fn events_come_in_order_buffered_or_awaited() {
    let (mut stream, mut server) = begun_at_a_position().await;
    let serve = async {
        for event in recorded() {
            server.send(&[&[0], event].concat()).await;
        }
    };
    let read = async {
        assert_eq!(stream.next().await.unwrap().kind, EventKind::FormatDescription);
        let mut kinds = 1;
        while kinds < recorded().len() {
            match stream.next_buffered().unwrap() {
                Some(_) => kinds += 1,
                None => stream.fill().await.unwrap(),
            }
        }
        assert!(stream.next_buffered().unwrap().is_none());
    };
    tokio::join!(read, serve);
}

#[tokio::test]
async fn packed_events_come_one_by_one_before_more_is_read() {
    let (mut stream, mut server) = begun_at_a_position().await;
    for event in events_of(NEWER) {
        server.send(&[&[0], &event[..]].concat()).await;
    }
    for _ in 0..2 {
        stream.next().await.unwrap();
    }
    let mut events = Vec::new();
    for round in 0..14 {
        // Asked for at the wrong time, it leaves alone what is not unpacked yet.
        if matches!(events.last(), Some((kind, _)) if !matches!(kind, EventKind::Gtid | EventKind::TaggedGtid)) {
            stream.fill().await.unwrap();
        }
        let event = match round % 2 {
            0 => stream.next().await.unwrap(),
            _ => stream.next_buffered().unwrap().unwrap(),
        };
        event.read().unwrap();
        events.push((event.kind, event.header.end_position));
    }
    use EventKind::{DeleteRows, Gtid, Query, TableMap, TaggedGtid, UpdateRows, WriteRows, Xid};
    let one = [Query, TableMap, WriteRows, Xid].map(|kind| (kind, 523));
    let two = [Query, TableMap, UpdateRows, TableMap, WriteRows, TableMap, DeleteRows, Xid].map(|kind| (kind, 954));
    assert_eq!(events, [&[(Gtid, 277)][..], &one, &[(TaggedGtid, 605)], &two].concat());
}

#[tokio::test]
async fn a_dump_by_gtid_names_what_is_there_already() {
    let executed = b"a set".to_vec();
    let expected = b"\x1E\x02\0\x2A\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0a set";
    begun(&request(DumpStart::Gtid(executed)), expected).await;
}

#[tokio::test(start_paused = true)]
async fn silence_of_three_heartbeats_ends_the_stream() {
    let (mut stream, mut server) = begun_at_a_position().await;
    server.send(&[&[0], recorded()[0]].concat()).await;
    stream.next().await.unwrap();
    let began = Instant::now();
    let error = stream.next().await.unwrap_err();
    assert!(matches!(&error, WireError::Silent { silence, .. } if *silence == Duration::from_secs(6)), "{error}");
    assert!(error.to_string().contains("half-open") && error.remedy() == Remedy::Reconnect);
    assert_eq!(began.elapsed(), Duration::from_secs(6));
}

#[tokio::test]
async fn the_ends_of_a_stream_are_errors() {
    let (mut stream, mut server) = begun_at_a_position().await;
    server.send(super::EOF).await;
    assert!(matches!(stream.next().await.unwrap_err(), WireError::StreamEnded));
    let (mut stream, mut server) = begun_at_a_position().await;
    server.send(DENIED).await;
    let error = stream.next().await.unwrap_err();
    assert!(matches!(&error, WireError::Server(error) if error.code == 1045), "{error}");
    assert_eq!(error.remedy(), Remedy::AskServerCode);
    let (mut stream, mut server) = begun_at_a_position().await;
    server.send(&[]).await;
    assert!(matches!(stream.next().await.unwrap_err(), WireError::Protocol(_)));
}

#[tokio::test]
async fn a_replicas_uuid_is_no_way_into_sql() {
    let (connection, _server) = logged_in(&options()).await;
    let uuid = Some("', @@global.read_only = '".to_owned());
    let request = DumpRequest { uuid, ..request(DumpStart::Gtid(Vec::new())) };
    assert!(matches!(connection.dump(&request).await.unwrap_err(), WireError::Misuse(_)));
}

#[tokio::test]
async fn mariadb_is_asked_by_domains() {
    let start = DumpStart::Domains("0-1-5,1-7-9".to_owned());
    let (connection, mut server) = logged_in(&options()).await;
    let serve = async {
        let settings = String::from_utf8(server.receive().await).unwrap();
        assert!(
            settings.ends_with("@mariadb_slave_capability = 4, @slave_connect_state = '0-1-5,1-7-9'"),
            "{settings}"
        );
        server.send(OK).await;
        server.receive().await;
        server.send(OK).await;
        assert_eq!(server.receive().await, b"\x12\x04\0\0\0\0\0\x2A\0\0\0");
    };
    let request = request(start);
    let (stream, ()) = tokio::join!(connection.dump(&request), serve);
    stream.unwrap();
    let (connection, _server) = logged_in(&options()).await;
    let hostile = DumpRequest { start: DumpStart::Domains("1'".to_owned()), ..request };
    assert!(matches!(connection.dump(&hostile).await, Err(WireError::Misuse(_))));
}
