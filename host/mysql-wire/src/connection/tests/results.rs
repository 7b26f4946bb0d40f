//! Queries, prepared statements and their rows.

use tokio::io::DuplexStream;

use super::fake_server::column;
use super::{END, EOF, FakeServer, OK, logged_in, logged_in_with, options};
use crate::packet::PART_BYTES;
use crate::{ConnectOptions, NextRow, Param, Remedy, Statement, WireError};

const STATEMENT_ID: [u8; 4] = [9, 0, 0, 0];

/// Prepares a statement with one parameter and the columns `id` and `v`.
async fn prepared(
    connection: &mut crate::Connection,
    server: &mut FakeServer<DuplexStream>,
    eof: Option<&[u8]>,
) -> Statement {
    let serve = async {
        assert_eq!(server.receive().await, b"\x16SELECT id, v FROM t WHERE id > ?");
        server.send(&[&[0][..], &STATEMENT_ID, &[2, 0, 1, 0, 0, 0, 0]].concat()).await;
        for name in ["?", "id", "v"] {
            server.send(&column(name)).await;
            if let (Some(eof), true) = (eof, name != "id") {
                server.send(eof).await;
            }
        }
    };
    let (statement, ()) = tokio::join!(connection.prepare("SELECT id, v FROM t WHERE id > ?"), serve);
    statement.unwrap()
}

#[tokio::test]
async fn a_query_gives_text_and_null() {
    for (capabilities, eof, end) in [(0, None, END), (FakeServer::<DuplexStream>::DEPRECATE_EOF, Some(EOF), EOF)] {
        let capabilities = FakeServer::<DuplexStream>::CAPABILITIES & !capabilities;
        let (mut connection, mut server) = logged_in_with(&options(), capabilities).await;
        let serve = async {
            assert_eq!(server.receive().await, b"\x03SELECT 1");
            server.send_columns(&["a", "b"], eof).await;
            server.send(b"\x021x\xFB").await;
            server.send(b"\x00\x01y").await;
            server.send(end).await;
            server.receive().await;
            server.send(OK).await;
        };
        let run = async {
            let result = connection.query("SELECT 1").await.unwrap();
            assert_eq!(result.columns[1].name, "b");
            assert!(result.columns[0].is_unsigned());
            assert_eq!(result.rows, [[Some(b"1x".to_vec()), None], [Some(Vec::new()), Some(b"y".to_vec())]]);
            assert_eq!((result.text(0, 0), result.text(0, 1), result.text(9, 0)), (Some("1x"), None, None));
            assert!(connection.query("SET x = 1").await.unwrap().columns.is_empty());
        };
        tokio::join!(run, serve);
    }
}

#[tokio::test]
async fn files_of_this_host_are_not_given() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let serve = async {
        server.receive().await;
        server.send(b"\xFB/etc/passwd").await;
    };
    let (result, ()) = tokio::join!(connection.query("SELECT 1"), serve);
    let error = result.unwrap_err();
    assert!(matches!(&error, WireError::Unsupported { what } if what.contains("LOCAL INFILE")), "{error}");
    let error = connection.query("SELECT 1").await.unwrap_err();
    assert!(matches!(error, WireError::Abandoned), "{error}");
}

#[tokio::test]
async fn second_results_are_refused() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let serve = async {
        server.receive().await;
        server.send(&[0, 0, 0, 0x0A, 0, 0, 0]).await;
    };
    let (result, ()) = tokio::join!(connection.query("CALL p()"), serve);
    assert!(matches!(result.unwrap_err(), WireError::Unsupported { .. }));
}

#[tokio::test]
async fn rows_come_raw_and_parameters_go_bound() {
    for (without, eof, end) in [(0, None, END), (FakeServer::<DuplexStream>::DEPRECATE_EOF, Some(EOF), EOF)] {
        let capabilities = FakeServer::<DuplexStream>::CAPABILITIES & !without;
        let (mut connection, mut server) = logged_in_with(&options(), capabilities).await;
        let statement = prepared(&mut connection, &mut server, eof).await;
        assert_eq!(statement.columns.len(), 2);
        let serve = async {
            let execute = [&[0x17][..], &STATEMENT_ID, &[0, 1, 0, 0, 0, 0, 1, 8, 0x80], &7_u64.to_le_bytes()].concat();
            assert_eq!(server.receive().await, execute);
            server.send_columns(&["id", "v"], eof).await;
            server.send(b"\x00\x00row one").await;
            server.send(b"\x00\x00row two").await;
            server.send(end).await;
            assert_eq!(server.receive().await, [&[0x19][..], &STATEMENT_ID].concat());
            assert_eq!(server.receive().await, b"\x03SELECT 2");
            server.send(OK).await;
        };
        let run = async {
            let mut rows = connection.execute(&statement, &[Param::Uint(7)]).await.unwrap();
            assert_eq!(rows.columns()[0].name, "id");
            assert_eq!(rows.next().await.unwrap(), Some(&b"\x00row one"[..]));
            let mut second = None;
            while second.is_none() {
                match rows.next_buffered().unwrap() {
                    NextRow::Row(row) => second = Some(row.to_vec()),
                    NextRow::Nothing => rows.fill().await.unwrap(),
                    NextRow::End => panic!("a row is missing"),
                }
            }
            assert_eq!(second.unwrap(), b"\x00row two");
            assert_eq!(rows.next().await.unwrap(), None);
            assert!(matches!(rows.next_buffered().unwrap(), NextRow::End));
            connection.close(statement).await.unwrap();
            connection.query("SELECT 2").await.unwrap();
        };
        tokio::join!(run, serve);
    }
}

#[tokio::test]
async fn every_kind_of_parameter_has_its_form() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let serve = async {
        server.receive().await;
        server.send(&[&[0][..], &STATEMENT_ID, &[0, 0, 8, 0, 0, 0, 0]].concat()).await;
        for _ in 0..8 {
            server.send(&column("?")).await;
        }
    };
    let (statement, ()) = tokio::join!(connection.prepare("DO ?,?,?,?,?,?,?,?"), serve);
    let statement = statement.unwrap();
    let params = [
        Param::Null,
        Param::Int(-1),
        Param::Uint(1),
        Param::Double(1.0),
        Param::Text("é"),
        Param::Bytes(&[0, 1]),
        Param::Decimal("1.50"),
        Param::Encoded { column_type: 3, unsigned: true, bytes: &[1, 2, 3, 4] },
    ];
    let serve = async {
        let sent = server.receive().await;
        let types = [6, 0, 8, 0, 8, 0x80, 5, 0, 0xFD, 0, 0xFC, 0, 0xF6, 0, 3, 0x80];
        let values = b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\xF0\x3F\x02\xC3\xA9\x02\x00\x01\x041.50\x01\x02\x03\x04";
        assert_eq!(sent[10..], [&[1, 1][..], &types, values].concat());
        server.send(OK).await;
    };
    let (rows, ()) = tokio::join!(connection.execute(&statement, &params), serve);
    assert!(rows.unwrap().next().await.unwrap().is_none());
    let error = connection.execute(&statement, &[]).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::Bug);
    let serve = async {
        server.receive().await;
        server.send(OK).await;
    };
    let (result, ()) = tokio::join!(connection.query("SELECT 1"), serve);
    result.unwrap();
}

#[tokio::test]
async fn an_error_among_the_rows_ends_them_only() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let statement = prepared(&mut connection, &mut server, None).await;
    let serve = async {
        server.receive().await;
        server.send_columns(&["id", "v"], None).await;
        server.send(b"\x00\x00row").await;
        server.send(b"\xFF\xD0\x0B#HY000Query execution was interrupted").await;
        server.receive().await;
        server.send(OK).await;
    };
    let run = async {
        let mut rows = connection.execute(&statement, &[Param::Null]).await.unwrap();
        assert!(rows.next().await.unwrap().is_some());
        let error = rows.next().await.unwrap_err();
        assert!(matches!(&error, WireError::Server(error) if error.code == 3024 && error.state == "HY000"), "{error}");
        assert!(rows.next().await.unwrap().is_none());
        connection.query("SELECT 1").await.unwrap();
    };
    tokio::join!(run, serve);
}

#[tokio::test]
async fn rows_left_unread_leave_the_connection_unusable() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let statement = prepared(&mut connection, &mut server, None).await;
    let serve = async {
        server.receive().await;
        server.send_columns(&["id", "v"], None).await;
        server.send(b"\x00\x00row").await;
    };
    let (rows, ()) = tokio::join!(connection.execute(&statement, &[Param::Int(1)]), serve);
    drop(rows.unwrap());
    assert!(matches!(connection.query("SELECT 1").await.unwrap_err(), WireError::Abandoned));
}

#[tokio::test]
async fn long_packets_are_joined() {
    for bytes in [PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES] {
        let (mut connection, mut server) = logged_in(&options()).await;
        let statement = prepared(&mut connection, &mut server, None).await;
        let mut row = vec![7; bytes];
        row[0] = 0;
        let serve = async {
            server.receive().await;
            server.send_columns(&["id", "v"], None).await;
            server.send(&row).await;
            server.send(b"\x00small").await;
            server.send(END).await;
        };
        let run = async {
            let mut rows = connection.execute(&statement, &[Param::Int(1)]).await.unwrap();
            let joined = rows.next().await.unwrap().unwrap();
            assert!(joined.len() == bytes - 1 && joined.iter().all(|&byte| byte == 7));
            assert_eq!(rows.next().await.unwrap(), Some(&b"small"[..]));
            assert_eq!(rows.next().await.unwrap(), None);
        };
        tokio::join!(run, serve);
    }
}

#[tokio::test]
async fn our_own_long_packets_are_split() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let sql = "x".repeat(PART_BYTES - 1);
    let serve = async {
        assert_eq!(server.receive().await.len(), PART_BYTES);
        assert_eq!(server.sequence, 2);
        server.send(OK).await;
    };
    let (result, ()) = tokio::join!(connection.query(&sql), serve);
    result.unwrap();
}

#[tokio::test]
async fn packets_above_the_limit_are_refused_before_they_are_read() {
    let options = ConnectOptions { packet_bytes_max: 1000, ..options() };
    let (mut connection, mut server) = logged_in(&options).await;
    let serve = async {
        server.receive().await;
        server.send(&[0; 1001]).await;
    };
    let (result, ()) = tokio::join!(connection.query("SELECT 1"), serve);
    assert!(matches!(result.unwrap_err(), WireError::TooLarge { limit: 1000, .. }));
}

#[tokio::test]
async fn packets_out_of_order_are_refused() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let serve = async {
        server.receive().await;
        server.sequence += 1;
        server.send(OK).await;
    };
    let (result, ()) = tokio::join!(connection.query("SELECT 1"), serve);
    let error = result.unwrap_err();
    assert!(error.to_string().contains("packet 2 came where packet 1 was expected"), "{error}");
}

#[tokio::test]
async fn a_lost_connection_says_so() {
    let (mut connection, mut server) = logged_in(&options()).await;
    let serve = async {
        server.receive().await;
        drop(server);
    };
    let (result, ()) = tokio::join!(connection.query("SELECT 1"), serve);
    let error = result.unwrap_err();
    assert!(matches!(&error, WireError::Lost { .. }) && error.remedy() == Remedy::Reconnect, "{error}");
}
