use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_buffer::BooleanBuffer;

use crate::*;

/// Frozen: rows and state of this key live here for ever.
const GROUP_OF_258: u32 = 115;

fn schema() -> Arc<TableSchema> {
    let field = |name: &str, ty| Field {
        name: name.into(),
        ty,
        nullable: name != "id",
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: TableId::new("shop", "orders"),
        version: SchemaVersion(1),
        fields: vec![field("id", LogicalType::Int64), field("note", LogicalType::Text { max: None })],
        primary_key: vec![0],
        partition_key: vec![],
        options: vec![],
    })
}

fn run(rows: u32, number: u64) -> TransactionRun {
    let id = TransactionId { prefix: "u:".into(), number };
    TransactionRun { rows, id: Some(id), position: None, commit_time: number as i64 }
}

/// Rows as (op, id, note); transaction lengths as given.
fn batch(rows: &[(Op, i64, Option<&str>)], runs: &[u32]) -> Result<ChangeBatch, BatchError> {
    let schema = schema();
    let columns = RecordBatch::try_new(
        schema.arrow(),
        vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.1))),
            Arc::new(StringArray::from_iter(rows.iter().map(|r| r.2))),
        ],
    )
    .unwrap();
    let meta = RowMeta {
        change_seq: (0..rows.len()).map(|i| 100 + 2 * i as i64).collect(),
        ordinal: (0..rows.len()).map(|i| i as u32).collect(),
        transactions: runs.iter().enumerate().map(|(i, &n)| run(n, i as u64)).collect(),
    };
    ChangeBatch::new(schema, columns, rows.iter().map(|r| r.0 as u8).collect(), meta)
}

fn shown(batch: &ChangeBatch) -> Vec<(u8, i64, i64)> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let ids = batch.columns().column(0).as_primitive::<Int64Type>();
    (0..batch.rows()).map(|r| (batch.ops()[r], ids.value(r), batch.meta().change_seq[r])).collect()
}

#[test]
fn an_update_that_changes_the_key_becomes_delete_and_insert() {
    use Op::*;
    let rows = [(UpdateBefore, 1, Some("a")), (UpdateAfter, 1, None), (UpdateBefore, 1, None), (UpdateAfter, 2, None)];
    let mended = batch(&rows, &[4]).unwrap().restore_pairs();
    assert_eq!(shown(&mended), [(1, 1, 100), (2, 1, 102), (3, 1, 104), (0, 2, 107)]);
}

#[test]
fn halves_that_lost_each_other_become_delete_or_insert() {
    use Op::*;
    let rows = [(UpdateBefore, 1, None), (UpdateAfter, 1, None), (UpdateBefore, 2, None), (UpdateAfter, 2, None)];
    let whole = batch(&rows, &[1, 3]).unwrap();
    let torn = whole.filter(&BooleanBuffer::from(vec![false, true, true, false])).restore_pairs();
    assert_eq!(shown(&torn), [(0, 1, 103), (3, 2, 104)]);
    assert_eq!(torn.meta().transactions, [run(2, 1)]);
}

#[test]
fn taking_rows_keeps_each_in_its_transaction() {
    use Op::*;
    let rows: Vec<_> = (0..6).map(|id| (Insert, id, None)).collect();
    let picked = batch(&rows, &[1, 2, 3]).unwrap().take(&[5, 0, 1, 2]);
    assert_eq!(shown(&picked).iter().map(|r| r.1).collect::<Vec<_>>(), [5, 0, 1, 2]);
    assert_eq!(picked.meta().transactions, [run(1, 2), run(1, 0), run(2, 1)]);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    use Op::*;
    assert_eq!(batch(&[(UpdateBefore, 1, None)], &[1]).unwrap_err(), BatchError::Pair { row: 0 });
    assert_eq!(batch(&[(UpdateAfter, 1, None)], &[1]).unwrap_err(), BatchError::Pair { row: 0 });
    let short = BatchError::Length { rows: 1, part: "transactions", found: 0 };
    assert_eq!(batch(&[(Insert, 1, None)], &[]).unwrap_err(), short);
}

#[test]
fn before_images_can_be_left_out() {
    use Op::*;
    let rows = [(Insert, 1, None), (UpdateBefore, 1, None), (UpdateAfter, 1, None), (Delete, 1, None)];
    let slim = batch(&rows, &[1, 3]).unwrap().without_update_before();
    assert_eq!(shown(&slim).iter().map(|r| r.0).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(slim.meta().transactions, [run(1, 0), run(2, 1)]);
}

#[test]
fn key_bytes_follow_the_frozen_layout() {
    let schema = schema();
    let whole = TableSchema { primary_key: vec![], ..(*schema).clone() };
    let one = batch(&[(Op::Insert, 258, Some("ab")), (Op::Insert, 1, None)], &[2]).unwrap();
    let mut key = Vec::new();
    KeyEncoder::of_primary_key(&schema).columns(one.columns()).encode(0, &mut key);
    assert_eq!(key, [1, 2, 1, 0, 0, 0, 0, 0, 0]);
    key.clear();
    let keys = KeyEncoder::of_primary_key(&whole);
    keys.columns(one.columns()).encode(0, &mut key);
    keys.columns(one.columns()).encode(1, &mut key);
    assert_eq!(key, [1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, b'a', b'b', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(key_group(&key[..9]), GROUP_OF_258);
}

#[test]
fn a_batch_comes_apart_by_its_bytes_and_updates_stay_whole() {
    use Op::*;
    let (small, large) = ("x".repeat(10), "x".repeat(1000));
    let rows = [
        (Insert, 1, Some(small.as_str())),
        (UpdateBefore, 2, Some(large.as_str())),
        (UpdateAfter, 2, Some(large.as_str())),
        (Insert, 3, Some(large.as_str())),
        (Insert, 4, Some(small.as_str())),
        (Insert, 5, Some(small.as_str())),
    ];
    let whole = batch(&rows, &[2, 4]).unwrap();
    let keys = |pieces: &[ChangeBatch]| {
        let keys = |piece: &ChangeBatch| piece.columns().column(0).as_primitive::<Int64Type>().values().to_vec();
        pieces.iter().map(keys).collect::<Vec<_>>()
    };
    assert_eq!(keys(&whole.clone().pieces(1 << 20)), [vec![1, 2, 2, 3, 4, 5]]);
    let pieces = whole.pieces(500);
    assert_eq!(keys(&pieces), [vec![1], vec![2, 2], vec![3], vec![4, 5]]);
    let seqs: Vec<i64> = pieces.iter().flat_map(|piece| piece.meta().change_seq.to_vec()).collect();
    assert_eq!(seqs, [100, 102, 104, 106, 108, 110]);
}
