//! Streams written event by event: when rows are handed on, taken back, counted.

use cdchost_connector::Verdict;
use cdchost_model::{ChangeBatch, Field, LogicalType, Op, SchemaVersion, TableId, TableSchema};
use cdchost_mysql_position::GtidSet;
use cdchost_mysql_row::{PRIMARY, TableLayout};
use cdchost_mysql_wire::binlog::EventKind;

use super::*;

const UUID: ServerUuid = ServerUuid([9; 16]);
const FIRST: i64 = 1_000;

/// Tables `shop.a` (place 0) and `shop.b` (place 1), each with an INT key and a VARCHAR(20).
fn layout(table: &str) -> Arc<TableLayout> {
    let field = |name: &str, native: &str, ty| Field {
        name: name.into(),
        ty,
        nullable: false,
        native_type: native.into(),
        default_value: None,
        comment: None,
    };
    let schema = TableSchema {
        table: TableId::new("shop", table),
        version: SchemaVersion(1),
        fields: vec![
            field("id", "int", LogicalType::Int32),
            field("v", "varchar(20)", LogicalType::Text { max: Some(20) }),
        ],
        primary_key: vec![0],
        partition_key: vec![],
        options: vec![],
    };
    Arc::new(TableLayout::new(Arc::new(schema), PRIMARY.into(), &cdchost_mysql_row::ValueRules::default()).unwrap())
}

pub(super) struct Stream {
    pub(super) log: Transactions,
    end: u32,
    number: u64,
}

impl Stream {
    pub(super) fn new(buffer_max: u64) -> Self {
        Self::from(Reached::Gtids(GtidSet::default()), buffer_max)
    }

    pub(super) fn from(reached: Reached, buffer_max: u64) -> Self {
        let mut tables = LogTables::default();
        tables.add(layout("a"), true, false);
        tables.add(layout("b"), false, true);
        let start = LogStart {
            server: UUID,
            executed: reached,
            known: Reached::Gtids(GtidSet::default()),
            seq: FIRST,
            patterns: TablePatterns::parse(&["shop.*"]).unwrap(),
            lower_case_names: false,
            buffer_max,
            prepared: [].into(),
        };
        let mut stream = Self { log: Transactions::new(start, tables), end: 4, number: 0 };
        stream.connect();
        stream
    }

    pub(super) fn connect(&mut self) {
        self.end = 4;
        self.take(EventKind::Rotate, &[&4u64.to_le_bytes()[..], b"binlog.000001"].concat()).unwrap();
    }

    pub(super) fn take(&mut self, kind: EventKind, body: &[u8]) -> Result<Seen, ConnectorError> {
        self.end += u32::try_from(body.len()).unwrap() + 23;
        self.take_at(self.end, kind, body)
    }

    pub(super) fn take_at(&mut self, end: u32, kind: EventKind, body: &[u8]) -> Result<Seen, ConnectorError> {
        let event_type = match kind {
            EventKind::WriteRows => 30,
            EventKind::UpdateRows => 31,
            EventKind::DeleteRows => 32,
            _ => 0,
        };
        let header = EventHeader {
            timestamp: 1_700_000_000,
            event_type,
            server_id: 1,
            event_bytes: u32::try_from(body.len()).unwrap() + 23,
            end_position: if kind == EventKind::Rotate { 0 } else { end },
            flags: 0,
        };
        self.log.take(&Event { header, kind, body })
    }

    pub(super) fn gtid(&mut self, number: u64) {
        self.number = number;
        self.take(EventKind::Gtid, &[&[1][..], &UUID.0, &number.to_le_bytes()].concat()).unwrap();
    }

    pub(super) fn begin(&mut self, number: u64) {
        self.gtid(number);
        self.query("BEGIN").unwrap();
        self.map();
    }

    pub(super) fn map(&mut self) {
        for (id, table) in [(7u8, "a"), (8, "b"), (9, "other")] {
            let mut map = vec![id, 0, 0, 0, 0, 0, 1, 0, 4];
            map.extend_from_slice(b"shop\0");
            map.push(u8::try_from(table.len()).unwrap());
            map.extend_from_slice(table.as_bytes());
            // Two columns, INT and VARCHAR of 80 bytes, none of them nullable.
            map.extend_from_slice(&[0, 2, 3, 15, 2, 80, 0, 0]);
            self.take(EventKind::TableMap, &map).unwrap();
        }
    }

    pub(super) fn query(&mut self, text: &str) -> Result<Seen, ConnectorError> {
        let mut body = vec![0; 13];
        body[8] = 4;
        body.extend_from_slice(b"shop\0");
        body.extend_from_slice(text.as_bytes());
        self.take(EventKind::Query, &body)
    }

    pub(super) fn rows(&mut self, kind: EventKind, table_id: u8, images: &[(i32, &str)]) {
        let mut body = vec![table_id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 3];
        if kind == EventKind::UpdateRows {
            body.push(3);
        }
        for (id, text) in images {
            body.push(0);
            body.extend_from_slice(&id.to_le_bytes());
            body.push(u8::try_from(text.len()).unwrap());
            body.extend_from_slice(text.as_bytes());
        }
        self.take(kind, &body).unwrap();
    }

    pub(super) fn commit(&mut self) {
        assert_eq!(self.take(EventKind::Xid, &[0; 8]).unwrap(), Seen::TransactionEnd);
    }

    pub(super) fn handed_on(&mut self) -> Vec<ChangeBatch> {
        std::mem::take(self.log.tables.ready())
    }

    pub(super) fn flushed(&mut self) -> Vec<ChangeBatch> {
        assert!(self.log.is_between());
        self.log.tables.flush().unwrap();
        self.handed_on()
    }
}

pub(super) fn ids(batches: &[ChangeBatch]) -> Vec<i32> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    let values = |batch: &ChangeBatch| batch.columns().column(0).as_primitive::<Int32Type>().values().to_vec();
    batches.iter().flat_map(values).collect()
}

#[test]
fn a_transaction_is_handed_on_at_its_end() {
    let mut stream = Stream::new(1 << 20);
    stream.begin(5);
    stream.rows(EventKind::WriteRows, 7, &[(1, "x"), (2, "y")]);
    stream.rows(EventKind::UpdateRows, 7, &[(1, "x"), (3, "z")]);
    stream.rows(EventKind::DeleteRows, 7, &[(2, "y")]);
    assert!(!stream.log.is_between() && stream.handed_on().is_empty());
    assert_eq!(*stream.log.executed(), Reached::Gtids(GtidSet::default()));
    stream.commit();
    let batches = stream.flushed();
    assert_eq!(batches.len(), 1);
    let batch = &batches[0];
    let ops = [Op::Insert, Op::Insert, Op::UpdateBefore, Op::UpdateAfter, Op::Delete].map(|op| op as u8);
    assert_eq!(batch.ops()[..], ops);
    assert_eq!(ids(&batches), [1, 2, 1, 3, 2]);
    assert_eq!(batch.meta().ordinal[..], [0, 1, 2, 2, 3]);
    assert_eq!(batch.meta().change_seq[..], [1001, 1003, 1005, 1005, 1007]);
    let run = &batch.meta().transactions[0];
    assert_eq!(run.id.as_ref().unwrap().to_string(), format!("{UUID}:5"));
    assert_eq!((run.rows, run.commit_time), (5, 1_700_000_000_000_000));
    assert!(stream.log.executed().has(&TransactionName::Gtid(UUID.into(), 5)));
    assert_eq!(stream.log.seq(), 1008);
}

#[test]
fn what_a_lost_connection_left_half_is_taken_back() {
    let mut stream = Stream::new(1 << 20);
    stream.begin(1);
    stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
    stream.commit();
    stream.begin(2);
    stream.rows(EventKind::WriteRows, 7, &[(2, "x")]);
    stream.log.reconnected().unwrap();
    assert_eq!(stream.log.seq(), 1002);
    stream.connect();
    stream.begin(2);
    stream.rows(EventKind::WriteRows, 7, &[(2, "x")]);
    stream.commit();
    let batches = stream.flushed();
    assert_eq!(ids(&batches), [1, 2]);
    assert_eq!(batches[0].meta().change_seq[..], [1001, 1003]);
    assert_eq!(batches[0].meta().ordinal[..], [0, 0]);
}

#[test]
fn batches_cut_inside_of_a_transaction_wait_for_its_end() {
    let mut stream = Stream::new(1 << 30);
    stream.begin(1);
    stream.rows(EventKind::WriteRows, 7, &[(0, "x")]);
    stream.commit();
    stream.begin(2);
    let images: Vec<(i32, &str)> = (1..9_001).map(|id| (id, "y")).collect();
    stream.rows(EventKind::WriteRows, 7, &images);
    assert!(stream.handed_on().is_empty());
    // Lost: what belongs to the first transaction stays.
    stream.log.reconnected().unwrap();
    assert_eq!(ids(&stream.flushed()), [0]);
    stream.connect();
    stream.begin(2);
    stream.rows(EventKind::WriteRows, 7, &images);
    stream.commit();
    let mut batches = stream.handed_on();
    assert!(batches.iter().all(|batch| batch.rows() <= 8_192));
    batches.extend(stream.flushed());
    assert_eq!(ids(&batches), (1..9_001).collect::<Vec<_>>());
    let last = batches.last().unwrap();
    assert_eq!(last.meta().ordinal.last(), Some(&8_999));
}

#[test]
fn a_transaction_above_the_limit_streams_on() {
    let mut stream = Stream::new(1 << 10);
    stream.begin(1);
    let images: Vec<(i32, &str)> = (0..9_000).map(|id| (id, "y")).collect();
    stream.rows(EventKind::WriteRows, 7, &images);
    stream.rows(EventKind::WriteRows, 7, &[(9_000, "y")]);
    assert!(!stream.handed_on().is_empty() && !stream.log.is_between());
    let error = stream.log.reconnected().unwrap_err();
    assert_eq!(error.verdict, Verdict::Restart);
}

#[test]
fn mute_tables_take_numbers_and_hand_nothing_on() {
    let mut stream = Stream::new(1 << 20);
    stream.begin(1);
    stream.rows(EventKind::UpdateRows, 8, &[(1, "x"), (2, "y")]);
    stream.rows(EventKind::WriteRows, 9, &[(1, "not captured")]);
    stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
    stream.commit();
    let batches = stream.flushed();
    assert_eq!(ids(&batches), [1]);
    assert_eq!(batches[0].meta().change_seq[..], [1003]);
    stream.log.tables.set_emits(1);
    stream.begin(2);
    stream.rows(EventKind::WriteRows, 8, &[(5, "x")]);
    stream.commit();
    assert_eq!(ids(&stream.flushed()), [5]);
}

#[test]
fn a_transaction_that_comes_again_is_not_handed_on_again() {
    let mut stream = Stream::new(1 << 20);
    for _ in 0..2 {
        stream.begin(3);
        stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
        stream.commit();
    }
    assert_eq!(ids(&stream.flushed()), [1]);
    assert_eq!(stream.log.seq(), 1002);
}

#[test]
fn rows_of_several_transactions_share_a_batch() {
    let mut stream = Stream::new(1 << 20);
    for number in 1..4 {
        stream.begin(number);
        stream.rows(EventKind::WriteRows, 7, &[(i32::try_from(number).unwrap(), "x")]);
        stream.commit();
    }
    let batches = stream.flushed();
    assert_eq!(batches.len(), 1);
    let numbers: Vec<u64> = batches[0].meta().transactions.iter().map(|run| run.id.as_ref().unwrap().number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn statements_are_judged() {
    let mut stream = Stream::new(1 << 20);
    stream.gtid(1);
    assert_eq!(stream.query("ALTER TABLE other.x ADD c INT").unwrap(), Seen::TransactionEnd);
    stream.gtid(2);
    let comment = "ALTER TABLE a ADD INDEX (v) -- START TRANSACTION";
    assert_eq!(stream.query(comment).unwrap(), Seen::TransactionEnd);
    assert_eq!(stream.log.ignored().get("index"), Some(&1));
    stream.gtid(3);
    let error = stream.query("ALTER TABLE a ADD c VARCHAR(20) DEFAULT 'secret'").unwrap_err();
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Schema));
    assert!(error.message.contains("shop.a") && error.message.contains("VARCHAR(20)"), "{}", error.message);
    assert!(!error.message.contains("secret"), "{}", error.message);
    for way in ["\"!shop.a\"", "an empty checkpoint store and an empty target"] {
        assert!(error.instruction.contains(way), "{}", error.instruction);
    }
    let mut stream = Stream::new(1 << 20);
    stream.gtid(1);
    let error = stream.query("CREATE TABLE fresh (id INT)").unwrap_err();
    assert_eq!(error.verdict, Verdict::Reopen);
    stream.log.start.known.add(&TransactionName::Gtid(UUID.into(), 1), &BinlogPosition::default());
    assert_eq!(stream.query("CREATE TABLE fresh (id INT)").unwrap(), Seen::TransactionEnd);
    assert_eq!(stream.log.ignored().get("table-gone-since"), Some(&1));
    // `b` was looked at when the run began, `a` was not.
    stream.log.start.known.add(&TransactionName::Gtid(UUID.into(), 2), &BinlogPosition::default());
    stream.gtid(2);
    assert_eq!(stream.query("ALTER TABLE b ADD c INT").unwrap(), Seen::TransactionEnd);
    assert!(stream.log.has_passed_known());
    stream.gtid(3);
    assert!(stream.query("ALTER TABLE b ADD c INT").is_err());
}

#[test]
fn what_a_statement_changed_in_place_of_rows_stops_where_it_may_be_captured() {
    for text in ["UPDATE a SET v = 'x'", "ANALYZE DELETE FROM a", "SELECT `Dx`.`f`()", "CALL p()"] {
        let mut stream = Stream::new(1 << 20);
        stream.begin(1);
        let error = stream.query(text).unwrap_err();
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-statement-format"), "{text}");
        assert!(error.instruction.contains("an empty target"), "{}", error.instruction);
    }
    let mut stream = Stream::new(1 << 20);
    stream.begin(1);
    assert_eq!(stream.query("UPDATE elsewhere.x SET v = 'x'").unwrap(), Seen::Event);
    assert_eq!(stream.log.ignored().get("rows-by-statement-elsewhere"), Some(&1));
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_panic() {
    let mut stream = Stream::new(1 << 20);
    assert!(stream.take(EventKind::Xid, &[0; 8]).is_err(), "an end without a beginning");
    stream.begin(1);
    assert!(stream.take(EventKind::Gtid, &[0; 25]).is_err(), "a beginning inside");
    assert!(stream.take(EventKind::WriteRows, &[7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 1, 0]).is_err(), "not all columns");
    assert!(stream.take(EventKind::WriteRows, &[7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 3, 0, 1]).is_err(), "half a row");
    assert!(stream.take(EventKind::WriteRows, &[6, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 3, 0]).is_err(), "no such table");
    assert!(stream.take(EventKind::Incident, &[]).is_err());
}

#[test]
fn positions_come_from_events_rotations_and_heartbeats() {
    let mut stream = Stream::new(1 << 20);
    stream.begin(1);
    stream.commit();
    assert_eq!(stream.log.position().to_string(), format!("binlog.000001:{}", stream.end));
    stream.take(EventKind::Heartbeat, b"binlog.000002").unwrap();
    assert_eq!(stream.log.position().to_string(), format!("binlog.000002:{}", stream.end));
}

#[test]
fn a_prepared_transaction_may_change_no_captured_table_whether_it_is_read_yet_or_not() {
    for (table, is_refused) in [(7, true), (8, true), (9, false)] {
        let mut stream = Stream::new(1 << 20);
        stream.begin(1);
        stream.rows(EventKind::WriteRows, table, &[(1, "x")]);
        let prepared = stream.take(EventKind::XaPrepare, &[0; 14]);
        match prepared {
            Err(error) => assert_eq!((is_refused, error.code.as_str()), (true, "mysql-xa"), "{error:?}"),
            Ok(seen) => assert_eq!((is_refused, seen), (false, Seen::TransactionEnd)),
        }
    }
}

#[test]
fn without_gtids_transactions_are_known_by_their_place() {
    let at = |offset| BinlogPosition::new("binlog.000001", offset);
    let mut stream = Stream::from(Reached::Place(at(4)), 1 << 20);
    let anonymous = [&[1][..], &[0; 24]].concat();
    stream.take(EventKind::AnonymousGtid, &anonymous).unwrap();
    stream.map();
    stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
    stream.take(EventKind::Xid, &[0; 8]).unwrap();
    let first_end = u64::from(stream.end);
    assert_eq!(*stream.log.executed(), Reached::Place(at(first_end)));
    // A part of the next one comes, and is taken back: it begins where the first one ended.
    stream.take(EventKind::AnonymousGtid, &anonymous).unwrap();
    stream.map();
    stream.rows(EventKind::WriteRows, 7, &[(2, "y")]);
    assert_eq!(*stream.log.executed(), Reached::Place(at(first_end)));
    stream.log.reconnected().unwrap();
    assert_eq!((stream.log.position(), stream.log.executed()), (&at(first_end), &Reached::Place(at(first_end))));
    stream.log.tables.flush().unwrap();
    let batches = std::mem::take(stream.log.tables.ready());
    let ids: Vec<String> = batches
        .iter()
        .flat_map(|batch| &batch.meta().transactions)
        .filter_map(|run| run.id.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(ids, [format!("{UUID}:binlog.000001:4")]);
    // GTIDs that begin are another kind of place.
    let error = stream.take(EventKind::Gtid, &[&[1][..], &UUID.0, &7u64.to_le_bytes()].concat()).unwrap_err();
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-gtid-transaction"));
    let mut named = Stream::new(1 << 20);
    let error = named.take(EventKind::AnonymousGtid, &anonymous).unwrap_err();
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-anonymous-transaction"));
}

/// Events that were packed as one all end where that one does.
#[test]
fn unpacked_transactions_are_one_step_and_are_taken_back_like_others() {
    let at = |offset: u32| BinlogPosition::new("binlog.000001", offset.into());
    let mut stream = Stream::from(Reached::Place(at(4)), 1 << 20);
    let anonymous = [&[1][..], &[0; 24]].concat();
    let map = b"\x07\0\0\0\0\0\x01\0\x04shop\0\x01a\0\x02\x03\x0f\x02\x50\0\0";
    let rows = b"\x07\0\0\0\0\0\x01\0\x02\0\x02\x03\0\x05\0\0\0\x01x";
    for round in 0..2 {
        stream.take(EventKind::AnonymousGtid, &anonymous).unwrap();
        let end = stream.end + 500;
        stream.take_at(end, EventKind::TableMap, map).unwrap();
        stream.take_at(end, EventKind::WriteRows, rows).unwrap();
        assert_eq!(*stream.log.executed(), Reached::Place(at(4)));
        if round == 0 {
            stream.log.reconnected().unwrap();
            assert_eq!((stream.log.position(), stream.log.seq()), (&at(4), FIRST));
            stream.connect();
        } else {
            assert_eq!(stream.take_at(end, EventKind::Xid, &[0; 8]).unwrap(), Seen::TransactionEnd);
            assert_eq!((stream.log.position(), stream.log.executed()), (&at(end), &Reached::Place(at(end))));
        }
    }
    assert_eq!(ids(&stream.flushed()), [5]);
}

#[test]
fn transactions_with_tags_are_counted_by_themselves() {
    let mut stream = Stream::new(1 << 20);
    let message = |number: u8| {
        let uuid = [9 << 1; 16];
        let fields = [&[0, 2, 2][..], &uuid, &[4, number << 2, 6, 8], b"blue"].concat();
        [&[2, u8::try_from(fields.len() + 3).unwrap() << 1, 0][..], &fields].concat()
    };
    stream.begin(1);
    stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
    stream.commit();
    stream.take(EventKind::TaggedGtid, &message(1)).unwrap();
    stream.query("BEGIN").unwrap();
    stream.map();
    stream.rows(EventKind::WriteRows, 7, &[(2, "x")]);
    stream.commit();
    let batches = stream.flushed();
    let runs = batches.iter().flat_map(|batch| &batch.meta().transactions);
    let named: Vec<String> = runs.filter_map(|run| run.id.as_ref().map(ToString::to_string)).collect();
    assert_eq!(named, [format!("{UUID}:1"), format!("{UUID}:blue:1")]);
    assert_eq!(stream.log.executed().to_string(), format!("{UUID}:1:blue:1"));
    let error = stream.take(EventKind::TaggedGtid, &[2, 6, 0]).unwrap_err();
    assert_eq!(error.code, "mysql-malformed-log");
}
