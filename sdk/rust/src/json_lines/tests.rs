//! Each type has one form in JSON, and the form keeps the value.

use std::sync::Arc;

use super::*;
use crate::harness::{Cell, Rows, Table};
use crate::{LogicalType, ReadPlan, row};

fn lines(rows: &Rows, metadata: &[Metadata]) -> Result<String> {
    let all = RowMeta { change_seq: true, commit_time: true, transaction: true, ordinal: true, position: true };
    let plan = Arc::new(ReadPlan::all(rows.schema()).with_meta(all));
    let mut out = Vec::new();
    encode(&rows.batch(&plan).unwrap(), metadata, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn value(ty: LogicalType, cell: Cell) -> Result<String> {
    let rows = Table::new("d.t").column("v", ty).rows(1).insert(vec![cell]);
    let line = lines(&rows, &[])?;
    serde_json::from_str::<serde_json::Value>(&line).expect("each line is a JSON document");
    let value = line.strip_prefix(r#"{"op":"insert","table":"d.t","row":{"v":"#).unwrap();
    Ok(value.strip_suffix("}}\n").unwrap().to_owned())
}

#[test]
fn each_type_has_its_form() {
    let second = 1_000_000;
    for (ty, cell, expect) in [
        (LogicalType::Boolean, Cell::from(true), "true"),
        (LogicalType::Boolean, Cell::from(false), "false"),
        (LogicalType::Int8, Cell::from(-128), "-128"),
        (LogicalType::Int64, Cell::from(i64::MIN), "-9223372036854775808"),
        (LogicalType::Uint64, Cell::from(u64::MAX), "18446744073709551615"),
        (LogicalType::Float32, Cell::from(f64::from(0.1_f32)), "0.1"),
        (LogicalType::Float64, Cell::from(0.1 + 0.2), "0.30000000000000004"),
        (LogicalType::Float64, Cell::from(1e300), "1e+300"),
        (LogicalType::Float64, Cell::from(-0.0), "-0.0"),
        (LogicalType::Decimal { precision: 10, scale: 2 }, Cell::from(-5), r#""-0.05""#),
        (LogicalType::Decimal { precision: 65, scale: 0 }, Cell::from(i128::MAX), &format!("\"{}\"", i128::MAX)),
        (LogicalType::Text { max: None }, Cell::from("a\"b\\c\nd\u{1}é"), r#""a\"b\\c\nd\u0001é""#),
        (LogicalType::Text { max: None }, Cell::from(""), r#""""#),
        (LogicalType::Bytes { max: None }, Cell::from(&[][..]), r#""""#),
        (LogicalType::Bytes { max: None }, Cell::from(&[0xff][..]), r#""/w==""#),
        (LogicalType::Bytes { max: None }, Cell::from(&[0, 1][..]), r#""AAE=""#),
        (LogicalType::Geometry, Cell::from(&b"Man"[..]), r#""TWFu""#),
        (LogicalType::Json, Cell::from("{\"a\": [1, \"\\n\"]}"), "{\"a\": [1, \"\\n\"]}"),
        (LogicalType::Json, Cell::from("[1,\r\n2]"), "[1,  2]"),
        (LogicalType::Date, Cell::from(-1), r#""1969-12-31""#),
        (LogicalType::Time { fraction: 0 }, Cell::from(-3_020_399 * i128::from(second)), r#""-838:59:59""#),
        (LogicalType::Time { fraction: 3 }, Cell::from(1_500_000), r#""00:00:01.500""#),
        (LogicalType::Timestamp { fraction: 0 }, Cell::from(0), r#""1970-01-01T00:00:00""#),
        (LogicalType::TimestampUtc { fraction: 6 }, Cell::from(1), r#""1970-01-01T00:00:00.000001Z""#),
        (LogicalType::Int32, Cell::Null, "null"),
        (LogicalType::Text { max: None }, Cell::Null, "null"),
    ] {
        assert_eq!(value(ty.clone(), cell).unwrap(), expect, "{ty:?}");
    }
}

#[test]
fn what_has_no_form_is_refused_by_row_without_its_value() {
    for (ty, good, bad) in [
        (LogicalType::Float64, Cell::from(1.0), Cell::from(f64::NAN)),
        (LogicalType::Float32, Cell::from(1.0), Cell::from(f64::INFINITY)),
        (LogicalType::Json, Cell::from("1"), Cell::from("{secret")),
    ] {
        let rows = Table::new("d.t").column("v", ty).rows(1).insert(vec![good]).insert(vec![bad]);
        let error = lines(&rows, &[]).unwrap_err();
        assert_eq!(error.code, "value-without-json");
        assert_eq!(error.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [1]);
        assert!(!error.rows[0].reason.contains("secret") && error.rows[0].reason.contains("\"v\""));
    }
}

#[test]
fn lines_carry_op_table_row_and_the_metadata_asked_for() {
    let table = Table::new("shop.order \"items\"").key("id", LogicalType::Int32);
    let rows = table.rows(7).read(row![1]).update(row![1], row![1]).delete(row![1]);
    let metadata =
        [Metadata::ChangeSeq, Metadata::Transaction, Metadata::Ordinal, Metadata::Position, Metadata::CommitTime];
    let lines = lines(&rows, &metadata).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ops: Vec<_> = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["read", "update-before", "update-after", "delete"]);
    assert!(lines.iter().all(|line| line["table"] == "shop.order \"items\"" && line["row"]["id"] == 1));
    assert_eq!(lines[0]["transaction"], serde_json::Value::Null);
    assert_eq!(lines[1]["change-seq"], lines[2]["change-seq"]);
    let last = serde_json::json!({
        "op": "delete", "table": "shop.order \"items\"", "row": { "id": 1 }, "change-seq": 9,
        "transaction": "00000000-0000-0000-0000-000000000001:9", "ordinal": 0, "position": "binlog.000001:9",
        "commit-time": "1970-01-01T00:00:09.000000Z",
    });
    assert_eq!(lines[3], last);
}
