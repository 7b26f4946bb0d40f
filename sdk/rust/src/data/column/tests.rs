//! Columns are refused when their buffers cannot hold what they say, and seen as they are when they can.

use super::*;

fn column(ty: LogicalType, rows: usize, null_count: u32, buffers: [&[u8]; 3]) -> Result<Column> {
    let [validity, offsets, data] = buffers.map(<[u8]>::to_vec);
    Column::new(ty, rows, RawColumn { null_count, validity, offsets, data })
}

const TEXT: LogicalType = LogicalType::Text { max: None };

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let offsets = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let cases: Vec<(&str, Result<Column>)> = vec![
        ("data too short", column(LogicalType::Int32, 2, 0, [&[], &[], &[0; 7]])),
        ("data too long", column(LogicalType::Int32, 2, 0, [&[], &[], &[0; 12]])),
        ("bits too short", column(LogicalType::Boolean, 9, 0, [&[], &[], &[0]])),
        ("nulls without bits", column(LogicalType::Int8, 1, 1, [&[], &[], &[0]])),
        ("more nulls than rows", column(LogicalType::Int8, 1, 2, [&[0], &[], &[0]])),
        ("offsets too few", column(TEXT, 2, 0, [&[], &offsets(&[0, 1]), b"a"])),
        ("offsets fall", column(TEXT, 2, 0, [&[], &offsets(&[0, 2, 1]), b"ab"])),
        ("offsets leave the data", column(TEXT, 1, 0, [&[], &offsets(&[0, 2]), b"a"])),
        ("offsets begin below", column(TEXT, 1, 0, [&[], &offsets(&[-1, 1]), b"a"])),
    ];
    for (why, made) in cases {
        let error = made.expect_err(why);
        assert_eq!(error.code, "column-broken", "{why}");
    }
}

#[test]
fn a_view_of_another_type_is_refused_by_the_name_of_the_column() {
    use crate::harness::Table;
    use crate::{ReadPlan, row};
    let table = Table::new("shop.orders").key("id", LogicalType::Int32);
    let batch = table.rows(1).insert(row![7]).batch(&Arc::new(ReadPlan::all(table.schema()))).unwrap();
    let error = batch.columns()[0].as_i64().unwrap_err();
    assert_eq!(error.message, "as_i64 asked of column shop.orders.id of type Int32");
    assert_eq!(error.table.as_ref().map(ToString::to_string).as_deref(), Some("shop.orders"));
    let alone = column(LogicalType::Int8, 1, 0, [&[], &[], &[0]]).unwrap();
    assert_eq!(alone.as_i64().unwrap_err().message, "as_i64 asked of a column of type Int8");
}

#[test]
fn numbers_are_seen_without_a_copy() {
    let data: Vec<u8> = [1_i64, -2, i64::MIN].iter().flat_map(|value| value.to_le_bytes()).collect();
    let address = data.as_ptr();
    let column = Column::new(LogicalType::Int64, 3, RawColumn { data, ..RawColumn::default() }).unwrap();
    let values = column.as_i64().unwrap();
    assert_eq!(values, [1, -2, i64::MIN]);
    if address.align_offset(8) == 0 {
        assert_eq!(values.as_ptr().cast::<u8>(), address);
    }
}

#[test]
fn nulls_are_told_by_their_bits() {
    let column = column(LogicalType::Uint8, 3, 1, [&[0b101], &[], &[1, 2, 3]]).unwrap();
    assert_eq!((0..3).map(|row| column.is_null(row)).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn texts_are_cut_at_their_offsets_and_only_between_characters() {
    let offsets = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let texts = column(TEXT, 3, 0, [&[], &offsets(&[0, 2, 2, 5]), "aé€".get(1..).unwrap().as_bytes()]).unwrap();
    let texts = texts.as_text().unwrap();
    assert_eq!([texts.get(0), texts.get(1), texts.get(2)], ["é", "", "€"]);
    let within = column(TEXT, 2, 0, [&[], &offsets(&[0, 1, 2]), "é".as_bytes()]).unwrap();
    assert_eq!(within.as_text().unwrap_err().code, "column-broken");
    let invalid = column(TEXT, 1, 0, [&[], &offsets(&[0, 1]), &[0xff]]).unwrap();
    assert_eq!(invalid.as_text().unwrap_err().code, "column-broken");
    assert_eq!(invalid.as_bytes().unwrap().get(0), [0xff]);
}

#[test]
fn a_view_of_another_type_is_refused() {
    let column = column(LogicalType::Decimal { precision: 39, scale: 0 }, 1, 0, [&[], &[], &[7; 32]]).unwrap();
    assert_eq!(column.as_decimal128().unwrap_err().code, "column-type");
    assert_eq!(column.as_decimal256().unwrap(), [[7; 32]]);
    assert_eq!(column.as_text().unwrap_err().code, "column-type");
}

#[test]
fn no_rows_need_no_buffers() {
    let column = column(TEXT, 0, 0, [&[], &[], &[]]).unwrap();
    assert!(column.as_text().unwrap().is_empty());
}
