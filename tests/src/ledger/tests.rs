//! Lists of lines beside one log, each with what is to be found.

use super::*;

/// `OP KEY VALUE TRANSACTION ORDINAL`.
fn change(text: &str) -> (String, Vec<String>, String, u64) {
    let words: Vec<&str> = text.split(' ').collect();
    let row = vec![words[1].to_owned(), words[2].to_owned()];
    let op = match words[0] {
        "i" => "insert",
        "u" => "update-after",
        "d" => "delete",
        _ => "read",
    };
    (op.to_owned(), row, words[3].to_owned(), words[4].parse().unwrap())
}

/// Three transactions: 1 has two changes, 2 deletes and inserts a row again, 3 has one change.
const LOG: [&str; 6] = ["u a 1 t1 0", "u b 1 t1 1", "d a 1 t2 0", "i a 2 t2 1", "u b 2 t3 0", "u a 3 t3 1"];

fn log() -> Vec<Change> {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in ["a", "b"] {
        rows.insert(key.to_owned(), vec![key.to_owned(), "0".to_owned()]);
    }
    let changes = LOG.iter().map(|text| {
        let (op, row, transaction, ordinal) = change(text);
        let before = rows.remove(&row[0]);
        if op != "delete" {
            rows.insert(row[0].clone(), row.clone());
        }
        let op = ["insert", "update-after", "delete"].into_iter().find(|name| *name == op).unwrap();
        let position = format!("f:{transaction}");
        Change { op, key: row[0].clone(), transaction, ordinal, position, before, row }
    });
    changes.collect()
}

fn lines(texts: &[&str]) -> Vec<Line> {
    let mut seq = 0;
    let lines = texts.iter().enumerate().map(|(at, text)| {
        let (op, row, transaction, ordinal) = change(text);
        let transaction = (op != "read").then_some(transaction);
        seq += i64::from(op != "read");
        let position = transaction.as_ref().map(|transaction| format!("f:{transaction}"));
        Line { op, key: row[0].clone(), row, change_seq: seq, transaction, ordinal, position, place: (0, at) }
    });
    lines.collect()
}

/// Name, lines, and what is found at which key.
type Case<'a> = (&'a str, &'a [&'a str], &'a [(Fault, &'a str)]);

#[test]
fn what_stands_there_is_judged() {
    use Fault::{Changed, Disordered, Doubled, Extra, Lost, Read};
    let [ua, ub, da, ia, ub2, ua3] = LOG;
    let cases: [Case<'_>; 17] = [
        ("all, none read", &LOG, &[]),
        ("read before", &["r a 0 - 0", "r b 0 - 1", ua, ub, da, ia, ub2, ua3], &[]),
        ("read among its changes", &[ua, ub, "r a 1 - 0", "r b 1 - 1", da, ia, ub2, ua3], &[]),
        ("read behind", &[ua, ub, da, ia, ub2, ua3, "r b 2 - 0", "r a 3 - 1"], &[]),
        ("the last two transactions", &["r b 1 - 0", da, ia, ub2, ua3], &[]),
        ("nothing changed since", &["r a 3 - 0", "r b 2 - 1"], &[]),
        ("a part of the first transaction", &[ub, da, ia, ub2, ua3], &[(Lost, "a")]),
        ("a gap", &[ua, ub, ub2, ua3], &[(Lost, "a"), (Lost, "a")]),
        ("a gap that later changes hide", &[ua, ub, da, ua3, ub2], &[(Lost, "a")]),
        ("the end is missing", &[ua, ub, da, ia, ua3], &[(Lost, "b")]),
        ("doubled", &[ua, ua, ub, da, ia, ub2, ua3], &[(Doubled, "a")]),
        ("a change of its own", &[ua, ub, da, ia, ub2, ua3, "u b 3 t4 0"], &[(Extra, "b")]),
        ("another value", &[ua, ub, da, "i a 9 t2 1", ub2, ua3], &[(Changed, "a")]),
        ("another order", &[ua, ub, ia, da, ub2, ua3], &[(Disordered, "a")]),
        ("read twice", &["r b 0 - 0", ua, ub, "r b 1 - 0", da, ia, ub2, ua3], &[(Read, "b")]),
        ("read between delete and insert", &[ua, ub, da, "r a 1 - 0", ia, ub2, ua3], &[(Read, "a"), (Read, "a")]),
        ("read too early", &[ua, ub, "r b 0 - 0", da, ia, ub2, ua3], &[(Read, "b"), (Read, "b")]),
    ];
    for (name, texts, expected) in cases {
        let found = check(&log(), &lines(texts));
        let short: Vec<_> = found.iter().map(|finding| (finding.fault, finding.key.as_str())).collect();
        assert_eq!(short, expected, "{name}: {found:#?}");
    }
}

#[test]
fn positions_and_numbers_are_held_to() {
    let mut moved = lines(&LOG);
    moved[3].position = Some("f:elsewhere".to_owned());
    assert_eq!(check(&log(), &moved)[0].fault, Fault::Changed);
    let mut fallen = lines(&LOG);
    fallen[5].change_seq = 1;
    assert_eq!(check(&log(), &fallen)[0].fault, Fault::Disordered);
}
