use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use cdchost_model::{Field, LogicalType, SchemaVersion, SourcePosition, TableId, TransactionId, TransactionRun};

use super::*;

fn schema(columns: u32) -> Arc<TableSchema> {
    let field = |index: u32| Field {
        name: format!("c{index}"),
        ty: LogicalType::Int64,
        nullable: false,
        native_type: String::new(),
        default_value: None,
        comment: None,
    };
    Arc::new(TableSchema {
        table: TableId::new("d", "t"),
        version: SchemaVersion(1),
        fields: (0..columns).map(field).collect(),
        primary_key: Vec::new(),
        partition_key: Vec::new(),
        options: Vec::new(),
    })
}

/// Two rows of a transaction and one of a snapshot; column c holds 10c, 10c+1, 10c+2.
fn batch() -> ChangeBatch {
    let schema = schema(3);
    let columns = (0..3).map(|c| Arc::new(Int64Array::from(vec![10 * c, 10 * c + 1, 10 * c + 2])) as ArrayRef);
    let columns = RecordBatch::try_new(schema.arrow(), columns.collect()).unwrap();
    let run = |rows, known: bool| TransactionRun {
        rows,
        id: known.then(|| TransactionId { prefix: "u:".into(), number: 7 }),
        position: known.then(|| SourcePosition { file: "f".into(), offset: 4 }),
        commit_time: i64::from(rows),
    };
    let meta = RowMeta {
        change_seq: vec![5, 6, 7].into(),
        ordinal: vec![0, 1, 0].into(),
        transactions: vec![run(2, true), run(1, false)],
    };
    ChangeBatch::new(schema, columns, vec![0, 3, 4].into(), meta).unwrap()
}

#[test]
fn only_what_was_asked_for_is_handed_over_in_that_order() {
    let plan = TablePlan::new(9, vec![2, 0], Wanted::empty(), &schema(3)).unwrap();
    let host = HostBatch::new(&batch(), &plan).unwrap();
    let (columns, meta) = host.columns();
    let wit = host.wit(&columns, &meta);
    assert_eq!((wit.schema, wit.rows, wit.ops), (9, 3, &[0, 3, 4][..]));
    let firsts: Vec<_> = wit.columns.iter().map(|column| column.data.first().copied()).collect();
    assert_eq!(firsts, [Some(20), Some(0)]);
    assert!(wit.meta.is_empty());
}

#[test]
fn metadata_comes_in_the_order_of_the_flags() {
    let plan = TablePlan::new(1, Vec::new(), Wanted::all(), &schema(3)).unwrap();
    let host = HostBatch::new(&batch(), &plan).unwrap();
    let (_, meta) = host.columns();
    let [change_seq, commit_time, transaction, ordinal, position] = meta.as_slice() else { panic!("{}", meta.len()) };
    assert_eq!(change_seq.data.chunks(8).map(|c| c[0]).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(commit_time.data.chunks(8).map(|c| c[0]).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!((transaction.data, transaction.null_count, transaction.validity), (&b"u:7u:7"[..], 1, &[0b011][..]));
    assert_eq!(ordinal.data.chunks(4).map(|c| c[0]).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(position.data, b"f:4f:4");
}

#[test]
fn a_plan_beyond_the_schema_is_refused() {
    let plan = |columns: &[u32]| TablePlan::new(1, columns.to_vec(), Wanted::empty(), &schema(3)).map(|_| ());
    assert_eq!(plan(&[0, 3]), Err("asks for column 3 of 3".into()));
    assert_eq!(plan(&[1, 0, 1]), Err("asks for column 1 twice".into()));
    assert_eq!(plan(&[2, 1, 0]), Ok(()));
}
