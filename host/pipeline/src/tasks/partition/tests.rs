use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use cdchost_model::{Field, LogicalType, Op, RowMeta, SchemaVersion, TableSchema, TransactionRun};

use super::*;

fn batch(rows: &[(Op, i64)]) -> ChangeBatch {
    let field = Field {
        name: "id".into(),
        ty: LogicalType::Int64,
        nullable: false,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    let schema = Arc::new(TableSchema {
        table: TableId::new("shop", "orders"),
        version: SchemaVersion(1),
        fields: vec![field],
        primary_key: vec![0],
        partition_key: vec![],
        options: vec![],
    });
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    let columns = RecordBatch::try_new(schema.arrow(), vec![Arc::new(ids)]).unwrap();
    let count = rows.len() as u32;
    let meta = RowMeta {
        change_seq: (0..i64::from(count)).collect(),
        ordinal: (0..count).collect(),
        transactions: vec![TransactionRun { rows: count, id: None, position: None, commit_time: 0 }],
    };
    ChangeBatch::new(schema, columns, rows.iter().map(|row| row.0 as u8).collect(), meta).unwrap()
}

fn ids(batch: &ChangeBatch) -> Vec<i64> {
    batch.columns().column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn one_writer_gets_the_very_same_columns() {
    let whole = batch(&[(Op::Insert, 1), (Op::Delete, 2)]);
    let before = whole.columns().column(0).to_data().buffers()[0].as_ptr();
    let parts = Spread::new(Ordering::PerKey, 1).parts(whole);
    assert_eq!(parts[0].1.columns().column(0).to_data().buffers()[0].as_ptr(), before, "no copy");
}

#[test]
fn a_key_has_one_writer_and_its_rows_keep_their_order() {
    let rows: Vec<_> = (0..400).map(|i| (Op::Insert, i % 100)).collect();
    let parts = Spread::new(Ordering::PerKey, 3).parts(batch(&rows));
    assert_eq!(parts.iter().map(|(_, part)| part.rows()).sum::<usize>(), 400);
    let mut owner = std::collections::BTreeMap::new();
    for (writer, part) in &parts {
        for id in ids(part) {
            assert_eq!(*owner.entry(id).or_insert(*writer), *writer, "id {id}");
        }
        assert!(part.meta().change_seq.windows(2).all(|pair| pair[0] < pair[1]));
    }
    assert_eq!(parts.len(), 3, "a hundred keys reach every writer");
}

#[test]
fn halves_of_an_update_stay_together() {
    let rows: Vec<_> = (0..200).map(|i| (if i % 2 == 0 { Op::UpdateBefore } else { Op::UpdateAfter }, i / 2)).collect();
    for (_, part) in Spread::new(Ordering::PerKey, 4).parts(batch(&rows)) {
        let (schema, columns, ops, meta) = part.into_parts();
        ChangeBatch::new(schema, columns, ops, meta).expect("every pair is whole");
    }
}

#[test]
fn a_table_has_one_writer_where_the_sink_asks_for_it() {
    let parts = Spread::new(Ordering::PerTable, 4).parts(batch(&[(Op::Insert, 1), (Op::Insert, 2)]));
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].1.rows(), 2);
}

#[test]
fn groups_lie_together_and_every_writer_has_some() {
    for writers in [1, 2, 3, 7, 128] {
        let owners: Vec<_> = (0..KEY_GROUPS).map(|group| writer_of_group(group, writers)).collect();
        assert!(owners.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(owners.last(), Some(&(writers as usize - 1)));
    }
}
