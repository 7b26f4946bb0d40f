//! The sink in the kit that every sink goes through.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use cdchost_sdk::harness::{Check, World, check_readme, check_sink};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use super::kit::Warehouse;
use crate::Paimon;
use crate::format::schema::LakeSchema;

fn warehouse(world: &World) -> Warehouse {
    Warehouse { world: world.clone(), ..Warehouse::new() }
}

fn tables(world: &World) -> Vec<(String, LakeSchema)> {
    let paths = world.paths("lake");
    let names = paths.iter().filter_map(|path| path.strip_prefix("wh/shop.db/")?.strip_suffix("/schema/schema-0"));
    let schema = |name: &str| world.object("lake", &format!("wh/shop.db/{name}/schema/schema-0")).unwrap();
    names.map(|name| (name.to_owned(), LakeSchema::parse(&schema(name)).unwrap())).collect()
}

fn text(column: &ArrayRef, row: usize) -> String {
    match column.data_type() {
        _ if column.is_null(row) => "null".into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        _ => column.as_string::<i32>().value(row).to_owned(),
    }
}

/// The rows of one file: key, then sequence number, kind and the whole row.
fn read_file(bytes: Vec<u8>, key_count: usize) -> Vec<(Vec<String>, (i64, i8, String))> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap().build().unwrap();
    let row_of = |batch: &RecordBatch, row: usize| {
        let values: Vec<_> = batch.columns()[2..].iter().map(|column| text(column, row)).collect();
        let sequence = batch.column(0).as_primitive::<Int64Type>().value(row);
        let kind = batch.column(1).as_primitive::<Int8Type>().value(row);
        (values[..key_count].to_vec(), (sequence, kind, values.join("|")))
    };
    reader
        .flat_map(|batch| {
            let batch = batch.unwrap();
            (0..batch.num_rows()).map(|row| row_of(&batch, row)).collect::<Vec<_>>()
        })
        .collect()
}

fn visible(world: &World) -> Vec<String> {
    let warehouse = warehouse(world);
    let mut rows = Vec::new();
    for (name, schema) in tables(world) {
        let Some(snapshot) = warehouse.snapshots(&name).pop() else { continue };
        let mut newest: BTreeMap<Vec<String>, (i64, i8, String)> = BTreeMap::new();
        for entry in warehouse.live_files(&name, &snapshot) {
            let path = format!("wh/shop.db/{name}/bucket-{}/{}", entry.bucket, entry.file.name);
            for (key, version) in read_file(world.object("lake", &path).unwrap(), schema.primary_keys.len()) {
                let held = newest.entry(key).or_insert_with(|| version.clone());
                if held.0 <= version.0 {
                    *held = version;
                }
            }
        }
        rows.extend(newest.into_values().filter(|row| row.1 != 3).map(|row| format!("{name}|{}", row.2)));
    }
    rows
}

fn left_over(world: &World) -> Vec<String> {
    let warehouse = warehouse(world);
    tables(world).iter().flat_map(|(name, _)| warehouse.unnamed_data_files(name)).collect()
}

#[test]
fn the_contract_is_kept_wherever_the_process_dies() {
    for bucket_count in [1, 3] {
        let config = json!({"warehouse": "lake/wh", "table": {"bucket": bucket_count}});
        check_sink::<Paimon>(&Check { config, roots: &["lake"], visible: &visible, left_over: &left_over });
    }
}

#[test]
fn the_readme_has_the_options_that_there_are() {
    check_readme::<Paimon>(env!("CARGO_MANIFEST_DIR"));
}

/// What the user is told at a start, and what stands to be read, speak alike of tables without a key.
#[test]
fn contract_and_readme_say_the_same_of_tables_without_a_key() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let deletes = crate::CONTRACT.iter().find(|(what, _)| *what == "deletes").unwrap().1;
    for words in ["take new rows only", "an error that names the rows"] {
        assert!(deletes.contains(words) && readme.contains(words), "{words}: {deletes}");
    }
    let options = serde_json::to_string(&<crate::Paimon as cdchost_sdk::Sink>::manifest().config_schema).unwrap();
    for key in ["snapshot.num-retained = 10", "snapshot.time-retained"] {
        assert!(options.contains(key) && readme.contains(key), "{key}");
    }
}
