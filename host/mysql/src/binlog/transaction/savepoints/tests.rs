//! Transactions rolled back in the log, wholly and in part.

use cdchost_connector::Verdict;
use cdchost_mysql_wire::binlog::EventKind;

use super::super::tests::{Stream, ids};

/// What a stream gets.
enum Step {
    Row(i32),
    Say(&'static str),
}

use Step::{Row, Say};

/// Runs steps as a transaction behind one that has a row 0, and gives what is handed on after its end.
fn run(steps: &[Step]) -> Stream {
    let mut stream = Stream::new(1 << 20);
    stream.begin(1);
    stream.rows(EventKind::WriteRows, 7, &[(0, "x")]);
    stream.commit();
    stream.begin(2);
    for step in steps {
        match step {
            Row(id) => stream.rows(EventKind::WriteRows, 7, &[(*id, "x")]),
            Say(text) => drop(stream.query(text).unwrap()),
        }
    }
    stream
}

#[test]
fn rows_behind_a_savepoint_are_taken_back() {
    let cases: [(&[Step], &[i32]); 9] = [
        (&[Row(1), Say("SAVEPOINT `s`"), Row(2), Say("ROLLBACK TO `s`")], &[1]),
        (&[Say("SAVEPOINT `s`"), Row(2), Say("ROLLBACK TO `s`")], &[]),
        (&[Row(1), Say("SAVEPOINT `A ``b`"), Row(2), Say("ROLLBACK TO `a ``B`"), Row(3)], &[1, 3]),
        (&[Row(1), Say("SAVEPOINT `s`"), Row(2), Say("SAVEPOINT `s`"), Row(3), Say("ROLLBACK TO `s`")], &[1, 2]),
        (
            &[
                Say("SAVEPOINT `a`"),
                Row(1),
                Say("SAVEPOINT `b`"),
                Row(2),
                Say("SAVEPOINT `c`"),
                Row(3),
                Say("ROLLBACK TO `b`"),
                Row(4),
                Say("ROLLBACK TO `b`"),
                Row(5),
            ],
            &[1, 5],
        ),
        (&[Row(1), Say("SAVEPOINT `s`"), Say("RELEASE SAVEPOINT `s`"), Row(2)], &[1, 2]),
        (&[Row(1), Say("SAVEPOINT `s`"), Say("ROLLBACK TO `s`"), Row(2)], &[1, 2]),
        (&[Say("SAVEPOINT `ä`"), Say("ROLLBACK TO `unknown`"), Row(2)], &[2]),
        (&[Say("SAVEPOINT `s`"), Row(1), Row(2), Say("ROLLBACK TO `s`"), Row(3), Row(4)], &[3, 4]),
    ];
    for (place, (steps, expected)) in cases.iter().enumerate() {
        let mut stream = run(steps);
        stream.commit();
        let batches = stream.flushed();
        assert_eq!(ids(&batches), [&[0], *expected].concat(), "case {place}");
        // As if what is gone had never been.
        let count = expected.len();
        let ordinals: Vec<u32> = batches.iter().flat_map(|batch| batch.meta().ordinal.to_vec()).skip(1).collect();
        assert_eq!(ordinals, (0..).take(count).collect::<Vec<_>>(), "case {place}");
        assert_eq!(stream.log.seq(), 1_000 + 2 * (count as i64 + 1), "case {place}");
        let told: u32 = batches.iter().flat_map(|batch| &batch.meta().transactions).map(|run| run.rows).sum();
        assert_eq!(told as usize, count + 1, "case {place}");
    }
}

#[test]
fn a_transaction_that_is_rolled_back_wholly_leaves_nothing() {
    let mut stream = run(&[Row(1), Say("SAVEPOINT `s`"), Row(2), Say("ROLLBACK")]);
    assert!(stream.log.is_between());
    stream.begin(3);
    stream.rows(EventKind::WriteRows, 7, &[(3, "x")]);
    stream.commit();
    let batches = stream.flushed();
    assert_eq!(ids(&batches), [0, 3]);
    assert_eq!(batches[0].meta().change_seq[..], [1_001, 1_003]);
    assert_eq!(batches[0].meta().ordinal[..], [0, 0]);
    assert!(stream.log.executed().to_string().ends_with(":1-3"), "{}", stream.log.executed());
}

#[test]
fn a_place_that_is_not_sure_stops_where_captured_rows_came() {
    let cases: [&[Step]; 4] = [
        &[Row(1)],
        &[Row(1), Say("SAVEPOINT `other`"), Row(2)],
        // To the server these are one name.
        &[Say("SAVEPOINT `s\u{e9}`"), Row(1), Say("SAVEPOINT `se`"), Row(2)],
        &[Say("SAVEPOINT `a`"), Say("SAVEPOINT `se`"), Row(1), Say("SAVEPOINT `s\u{e9}`"), Row(2)],
    ];
    for (place, steps) in cases.iter().enumerate() {
        let mut stream = run(steps);
        let error = stream.query("ROLLBACK TO `se`").unwrap_err();
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-rollback"), "case {place}");
        assert!(error.instruction.contains("an empty target"), "{}", error.instruction);
    }
    // A place that is gone with a part that was taken back.
    let mut stream = run(&[Say("SAVEPOINT `a`"), Row(1), Say("SAVEPOINT `b`"), Row(2), Say("ROLLBACK TO `a`"), Row(3)]);
    assert_eq!(stream.query("ROLLBACK TO `b`").unwrap_err().code, "mysql-rollback");
}

#[test]
fn batches_that_are_cut_are_taken_back_unless_they_were_handed_on() {
    let images: Vec<(i32, &str)> = (1..9_001).map(|id| (id, "y")).collect();
    for kept in [100, 8_192, 8_500] {
        let mut stream = Stream::new(1 << 30);
        stream.begin(1);
        stream.rows(EventKind::WriteRows, 7, &[(0, "x")]);
        stream.commit();
        stream.begin(2);
        stream.rows(EventKind::WriteRows, 7, &images[..kept]);
        stream.query("SAVEPOINT `s`").unwrap();
        stream.rows(EventKind::WriteRows, 7, &images);
        stream.rows(EventKind::WriteRows, 7, &images);
        stream.query("ROLLBACK TO `s`").unwrap();
        stream.rows(EventKind::WriteRows, 7, &[(-1, "z")]);
        stream.commit();
        let mut batches = stream.handed_on();
        batches.extend(stream.flushed());
        let expected: Vec<i32> = (0..=i32::try_from(kept).unwrap()).chain([-1]).collect();
        assert_eq!(ids(&batches), expected);
        let ordinals: Vec<u32> = batches.iter().flat_map(|batch| batch.meta().ordinal.to_vec()).collect();
        assert_eq!(ordinals[1..], (0..=u32::try_from(kept).unwrap()).collect::<Vec<_>>());
        let seqs: Vec<i64> = batches.iter().flat_map(|batch| batch.meta().change_seq.to_vec()).collect();
        assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 2));
    }
    for end in ["ROLLBACK", "ROLLBACK TO `s`"] {
        let mut stream = Stream::new(1 << 10);
        stream.begin(1);
        stream.query("SAVEPOINT `s`").unwrap();
        stream.rows(EventKind::WriteRows, 7, &images);
        assert!(!stream.handed_on().is_empty());
        stream.query("SAVEPOINT `late`").unwrap();
        stream.rows(EventKind::WriteRows, 7, &[(9_001, "y")]);
        stream.query("ROLLBACK TO `late`").unwrap();
        let error = stream.query(end).unwrap_err();
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-rollback"), "{end}");
        assert!(error.instruction.contains("transaction.max-buffer"), "{}", error.instruction);
    }
}

/// A key that a window collects drops the chunk's row. One whose change was taken back must not.
#[test]
fn keys_of_what_is_taken_back_are_not_collected() {
    let mut stream = Stream::new(1 << 20);
    stream.log.windows.arm(0, 0);
    stream.begin(1);
    stream.rows(EventKind::WriteRows, 7, &[(1, "x")]);
    let one = stream.log.windows.pending();
    stream.query("SAVEPOINT `s`").unwrap();
    stream.rows(EventKind::WriteRows, 7, &[(2, "x"), (3, "x")]);
    stream.query("ROLLBACK TO `s`").unwrap();
    assert_eq!((one, stream.log.windows.pending()), (1, 1));
    let bytes = stream.log.windows.key_bytes();
    stream.rows(EventKind::WriteRows, 7, &[(4, "x")]);
    assert_eq!(stream.log.windows.key_bytes(), 2 * bytes);
    stream.query("ROLLBACK").unwrap();
    assert_eq!((stream.log.windows.pending(), stream.log.windows.key_bytes()), (0, 0));
}
