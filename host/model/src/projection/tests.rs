use arrow_array::{Array, Int64Array, StringArray};

use super::*;
use crate::{Field, LogicalType, RowMeta, SchemaVersion, TableId, TransactionRun};

fn schema(fields: &[(&str, LogicalType, bool)], key: &[u32]) -> Arc<TableSchema> {
    let field = |(name, ty, nullable): &(&str, LogicalType, bool)| Field {
        name: (*name).into(),
        ty: ty.clone(),
        nullable: *nullable,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: TableId::new("d", "t"),
        version: SchemaVersion(1),
        fields: fields.iter().map(field).collect(),
        primary_key: key.to_vec(),
        partition_key: Vec::new(),
        options: Vec::new(),
    })
}

const TEXT: LogicalType = LogicalType::Text { max: None };

/// Rows of (op, id, name); change-seqs are 10, 20, … a row change.
fn batch(rows: &[(Op, i64, &str)]) -> ChangeBatch {
    let schema = schema(&[("id", LogicalType::Int64, false), ("name", TEXT, true)], &[0]);
    let mut change = 0;
    let seqs = rows.iter().map(|row| {
        change += i64::from(row.0 != Op::UpdateAfter);
        change * 10
    });
    let meta = RowMeta {
        change_seq: seqs.collect(),
        ordinal: (0..rows.len() as u32).collect(),
        transactions: vec![TransactionRun { rows: rows.len() as u32, id: None, position: None, commit_time: 0 }],
    };
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    let names = StringArray::from_iter_values(rows.iter().map(|row| row.2));
    let columns = RecordBatch::try_new(schema.arrow(), vec![Arc::new(ids), Arc::new(names)]).unwrap();
    ChangeBatch::new(schema, columns, rows.iter().map(|row| row.0 as u8).collect(), meta).unwrap()
}

/// The name becomes the first column and the key, computed anew; the id passes on under another name.
fn projection() -> Projection {
    let output = schema(&[("name", TEXT, false), ("number", LogicalType::Int64, false)], &[0]);
    Projection::new(output, vec![OutputColumn::Computed, OutputColumn::Pass(0)])
}

fn names(names: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

fn shown(batch: &ChangeBatch) -> Vec<(u8, String, i64, i64)> {
    let names = batch.columns().column(0).as_any().downcast_ref::<StringArray>().unwrap();
    let ids = batch.columns().column(1).as_any().downcast_ref::<Int64Array>().unwrap();
    let row = |row| (batch.ops()[row], names.value(row).to_owned(), ids.value(row), batch.meta().change_seq[row]);
    (0..batch.rows()).map(row).collect()
}

fn edit(computed: &[Option<&str>]) -> Edit {
    Edit { computed: vec![names(computed)], ..Edit::default() }
}

#[test]
fn computed_columns_stand_beside_those_that_pass() {
    let input = batch(&[(Op::Insert, 1, "a"), (Op::Delete, 2, "b")]);
    let out = projection().edit(&input, edit(&[Some("A"), Some("B")])).unwrap();
    assert_eq!(shown(&out), [(0, "A".into(), 1, 10), (3, "B".into(), 2, 20)]);
    assert_eq!(out.schema().fields[1].name, "number");
}

#[test]
fn halves_whose_new_keys_differ_become_delete_and_insert() {
    let input = batch(&[(Op::UpdateBefore, 1, "a"), (Op::UpdateAfter, 1, "b"), (Op::Insert, 2, "c")]);
    let same = projection().edit(&input, edit(&[Some("k"), Some("k"), Some("c")])).unwrap();
    assert_eq!(same.ops().to_vec(), [1, 2, 0]);
    let other = projection().edit(&input, edit(&[Some("k"), Some("l"), Some("c")])).unwrap();
    assert_eq!(shown(&other), [(3, "k".into(), 1, 10), (0, "l".into(), 1, 11), (0, "c".into(), 2, 20)]);
}

#[test]
fn a_half_that_was_filtered_away_leaves_a_delete_or_an_insert() {
    let input = batch(&[(Op::UpdateBefore, 1, "a"), (Op::UpdateAfter, 1, "a")]);
    for (keep, op, seq) in [([true, false], 3, 10), ([false, true], 0, 11)] {
        let keep = Some(BooleanBuffer::from(keep.to_vec()));
        let out = projection().edit(&input, Edit { keep, ..edit(&[Some("k"), Some("k")]) }).unwrap();
        assert_eq!(shown(&out), [(op, "k".into(), 1, seq)]);
    }
    let keep = Some(BooleanBuffer::from(vec![false, false]));
    let none = projection().edit(&input, Edit { keep, ..edit(&[Some("k"), Some("k")]) }).unwrap();
    assert_eq!((none.rows(), none.meta().transactions.len()), (0, 0));
}

#[test]
fn ops_may_be_others() {
    let input = batch(&[(Op::Delete, 1, "a")]);
    let ops = Some(vec![Op::Insert as u8].into());
    let out = projection().edit(&input, Edit { ops, ..edit(&[Some("a")]) }).unwrap();
    assert_eq!(out.ops().to_vec(), [0]);
}

#[test]
fn other_rows_have_the_metadata_of_their_origins() {
    let input = batch(&[(Op::Insert, 1, "a"), (Op::Insert, 2, "b")]);
    let with = Replacement {
        ops: vec![0, 0, 0].into(),
        columns: vec![names(&[Some("x"), Some("y"), Some("z")]), Arc::new(Int64Array::from(vec![7, 8, 9]))],
        origins: vec![0, 1, 1],
    };
    let out = projection().replace(&input, with).unwrap();
    assert_eq!(shown(&out), [(0, "x".into(), 7, 10), (0, "y".into(), 8, 20), (0, "z".into(), 9, 20)]);
    assert_eq!(out.meta().transactions[0].rows, 3);
}

#[test]
fn what_does_not_fit_is_refused() {
    let input = batch(&[(Op::Insert, 1, "a"), (Op::Insert, 2, "b")]);
    let refused = |edit| projection().edit(&input, edit).unwrap_err();
    let length = |part, found| BatchError::Length { rows: 2, part, found };
    let good = || edit(&[Some("a"), Some("b")]);
    assert_eq!(refused(Edit { keep: Some(vec![true].into()), ..good() }), length("keep", 1));
    assert_eq!(refused(Edit { ops: Some(vec![0].into()), ..good() }), length("ops", 1));
    assert_eq!(refused(Edit { ops: Some(vec![0, 5].into()), ..good() }), BatchError::Op { row: 1, byte: 5 });
    assert_eq!(refused(edit(&[Some("a")])), length("a computed column", 1));
    assert_eq!(refused(edit(&[Some("a"), None])), BatchError::Null { column: "name".into() });
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    for computed in [vec![], vec![numbers]] {
        let error = refused(Edit { computed, ..Edit::default() });
        assert!(matches!(error, BatchError::Column { .. }), "{error}");
    }
    let two = refused(Edit { computed: vec![names(&[Some("a"), Some("b")]), names(&[None, None])], ..Edit::default() });
    assert!(matches!(two, BatchError::Length { rows: 0, found: 1, .. }), "{two}");
    for origins in [vec![1, 0], vec![0, 2]] {
        let columns = vec![names(&[Some("x"), Some("y")]), Arc::new(Int64Array::from(vec![7, 8])) as ArrayRef];
        let with = Replacement { ops: vec![0, 0].into(), columns, origins };
        assert!(matches!(projection().replace(&input, with).unwrap_err(), BatchError::Origin { .. }));
    }
}
