//! Every type of the contract, with its extremes and NULL.

use std::sync::Arc;

use cdchost_sdk::data::RawColumn;
use cdchost_sdk::{Batch, LogicalType, ReadPlan, RowMeta, Writer};

use super::kit::{Warehouse, bits, schema, texts};

/// Values of one column; none = NULL.
fn fixed<const N: usize>(values: [Option<[u8; N]>; 4]) -> RawColumn {
    RawColumn {
        null_count: values.iter().filter(|value| value.is_none()).count() as u32,
        validity: bits(values.iter().map(Option::is_some)),
        offsets: Vec::new(),
        data: values.iter().flat_map(|value| value.unwrap_or([0; N])).collect(),
    }
}

fn decimal256(digits: i128) -> [u8; 32] {
    let mut wide = [if digits < 0 { 0xff } else { 0 }; 32];
    wide[..16].copy_from_slice(&digits.to_le_bytes());
    wide
}

/// A type, its name, and least, greatest, an odd value, and NULL.
#[expect(clippy::too_many_lines, reason = "a table of data")]
fn columns() -> Vec<(&'static str, LogicalType, RawColumn)> {
    use LogicalType::*;
    let nines = 10i128.pow(38) - 1;
    let micros = |least: i64, greatest: i64, odd: i64| {
        fixed([Some(least.to_le_bytes()), Some(greatest.to_le_bytes()), Some(odd.to_le_bytes()), None])
    };
    let (year_1000, year_9999) = (-30_610_224_000_000_000, 253_402_300_799_000_000);
    vec![
        ("bool", Boolean, RawColumn { null_count: 1, validity: vec![0b0111], offsets: vec![], data: vec![0b0010] }),
        ("i8", Int8, fixed([Some(i8::MIN.to_le_bytes()), Some(i8::MAX.to_le_bytes()), Some([0xff]), None])),
        ("i16", Int16, fixed([Some(i16::MIN.to_le_bytes()), Some(i16::MAX.to_le_bytes()), Some([0xff; 2]), None])),
        ("i32", Int32, fixed([Some(i32::MIN.to_le_bytes()), Some(i32::MAX.to_le_bytes()), Some([0xff; 4]), None])),
        ("i64", Int64, fixed([Some(i64::MIN.to_le_bytes()), Some(i64::MAX.to_le_bytes()), Some([0xff; 8]), None])),
        ("u8", Uint8, fixed([Some([0]), Some([u8::MAX]), Some([128]), None])),
        ("u16", Uint16, fixed([Some([0; 2]), Some([0xff; 2]), Some([0, 128]), None])),
        ("u32", Uint32, fixed([Some([0; 4]), Some([0xff; 4]), Some([0, 0, 0, 128]), None])),
        ("u64", Uint64, fixed([Some([0; 8]), Some([0xff; 8]), Some([0, 0, 0, 0, 0, 0, 0, 128]), None])),
        (
            "f32",
            Float32,
            fixed([Some(f32::MIN.to_le_bytes()), Some(f32::MAX.to_le_bytes()), Some(0.1f32.to_le_bytes()), None]),
        ),
        (
            "f64",
            Float64,
            fixed([Some(f64::MIN.to_le_bytes()), Some(f64::MAX.to_le_bytes()), Some(5e-324f64.to_le_bytes()), None]),
        ),
        (
            "dec9",
            Decimal { precision: 9, scale: 2 },
            fixed([
                Some((-999_999_999i128).to_le_bytes()),
                Some(999_999_999i128.to_le_bytes()),
                Some(1i128.to_le_bytes()),
                None,
            ]),
        ),
        (
            "dec18",
            Decimal { precision: 18, scale: 18 },
            fixed([
                Some((1 - 10i128.pow(18)).to_le_bytes()),
                Some((10i128.pow(18) - 1).to_le_bytes()),
                Some(1i128.to_le_bytes()),
                None,
            ]),
        ),
        (
            "dec38",
            Decimal { precision: 38, scale: 10 },
            fixed([Some((-nines).to_le_bytes()), Some(nines.to_le_bytes()), Some((-1i128).to_le_bytes()), None]),
        ),
        (
            "dec65",
            Decimal { precision: 65, scale: 30 },
            fixed([Some(decimal256(i128::MIN)), Some(decimal256(i128::MAX)), Some(decimal256(-5)), None]),
        ),
        ("text", Text { max: Some(9) }, texts(&[Some(""), Some("grüße\u{1F600}"), Some("a\"b\\c\n\t'"), None])),
        ("bytes", Bytes { max: None }, texts(&[Some(&b""[..]), Some(&[0, 255, 128]), Some(b"abc"), None])),
        ("json", Json, texts(&[Some("null"), Some("{\"a\": [1, 2.50, \"x\"]}"), Some("\"\""), None])),
        (
            "date",
            Date,
            fixed([
                Some((-354_285i32).to_le_bytes()),
                Some(2_932_896i32.to_le_bytes()),
                Some((-1i32).to_le_bytes()),
                None,
            ]),
        ),
        ("time0", Time { fraction: 0 }, micros(-3_020_399_000_000, 3_020_399_000_000, -1_000_000)),
        ("time6", Time { fraction: 6 }, micros(-3_020_399_000_000, 3_020_398_999_999, -1)),
        ("ts0", Timestamp { fraction: 0 }, micros(year_1000, year_9999, -1_000_000)),
        ("ts3", Timestamp { fraction: 3 }, micros(year_1000, year_9999 + 999_000, -1_000)),
        ("ts6", Timestamp { fraction: 6 }, micros(year_1000, year_9999 + 999_999, -1)),
        ("ltz0", TimestampUtc { fraction: 0 }, micros(1_000_000, 2_147_483_647_000_000, 86_400_000_000)),
        ("ltz6", TimestampUtc { fraction: 6 }, micros(1_000_000, 2_147_483_647_499_999, 86_400_000_001)),
        ("geo", Geometry, texts(&[Some(&[0; 25][..]), Some(&[0xff; 25]), Some(b""), None])),
    ]
}

#[test]
fn every_type_is_written_with_its_extremes() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    let mut fields = vec![("id", LogicalType::Int32, false)];
    let values = columns();
    fields.extend(values.iter().map(|(name, ty, _)| (*name, ty.clone(), true)));
    let all = schema("all_types", &fields);
    run.create(&all).unwrap();
    let ids = RawColumn { data: (0..4i32).flat_map(i32::to_le_bytes).collect(), ..RawColumn::default() };
    let mut raw = vec![ids];
    raw.extend(values.into_iter().map(|(_, _, column)| column));
    let plan = ReadPlan::all(&all).with_meta(RowMeta { change_seq: true, ..RowMeta::default() });
    let sequences =
        RawColumn { data: [9i64; 4].iter().flat_map(|n| n.to_le_bytes()).collect(), ..RawColumn::default() };
    let batch = Batch::new(Arc::clone(&all), Arc::new(plan), vec![4; 4], raw, vec![sequences]).unwrap();
    run.writer(0, |writer| writer.write(batch)).unwrap();
    let items = run.prepare(1).unwrap();
    run.commit(1, &items).unwrap();
    assert_eq!(warehouse.snapshots("all_types")[0].total_record_count, Some(4));
    warehouse.keep("types");
}

/// Every type that can be a key, alone and as the second column of one.
#[test]
fn every_type_can_be_a_key() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    for (name, ty, column) in columns() {
        let mut keyed =
            (*schema(&format!("key_{name}"), &[("id", LogicalType::Int32, false), (name, ty, false)])).clone();
        keyed.primary_key = vec![1, 0];
        let keyed = Arc::new(keyed);
        run.create(&keyed).unwrap();
        let ids = RawColumn { data: (0..4i32).flat_map(i32::to_le_bytes).collect(), ..RawColumn::default() };
        let sequences =
            RawColumn { data: [9i64; 4].iter().flat_map(|n| n.to_le_bytes()).collect(), ..RawColumn::default() };
        // NULL cannot be part of a key: the fourth row has what the buffers hold there.
        let column = RawColumn { null_count: 0, validity: Vec::new(), ..column };
        let plan = ReadPlan::all(&keyed).with_meta(RowMeta { change_seq: true, ..RowMeta::default() });
        let batch =
            Batch::new(Arc::clone(&keyed), Arc::new(plan), vec![4; 4], vec![ids, column], vec![sequences]).unwrap();
        run.writer(0, |writer| writer.write(batch)).unwrap();
    }
    let items = run.prepare(1).unwrap();
    run.commit(1, &items).unwrap();
    for (name, _, _) in columns() {
        assert_eq!(warehouse.snapshots(&format!("key_{name}"))[0].total_record_count, Some(4), "{name}");
    }
    warehouse.keep("keys");
}

#[test]
fn null_where_the_table_has_none_names_the_rows() {
    let warehouse = Warehouse::new();
    let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
    let strict = schema("strict", &[("id", LogicalType::Int32, false), ("note", LogicalType::Json, false)]);
    run.create(&strict).unwrap();
    let error =
        run.write(&strict, &[(2, cdchost_sdk::Op::Insert, 1, Some("a")), (4, cdchost_sdk::Op::Insert, 2, None)]);
    let error = error.unwrap_err();
    assert_eq!(error.blame, cdchost_sdk::Blame::Data);
    assert_eq!((error.rows.len(), error.rows[0].row, error.rows[0].reason.as_str()), (1, 1, "column note is null"));
}
