//! Tables without a key, and tables that columns divide, written by the sink as it is and read by other people's readers.

use std::fs;
use std::path::Path;

use cdchost_plugin_paimon::Paimon;
use cdchost_sdk::harness::{Cell, Harness, Table, World};
use cdchost_sdk::{LogicalType, SchemaChange, row};
use cdchost_tests::lake::LakeReader;
use cdchost_tests::watchdog::Folder;
use serde_json::{Map, Value, json};

const TEXT: LogicalType = LogicalType::Text { max: None };

fn harness(options: Value) -> Harness<Paimon> {
    let mut options = options;
    options["warehouse"] = "lake/wh".into();
    let mut harness = Harness::new(World::new(&["lake"]), options).with_parallelism(2);
    harness.start().unwrap();
    harness
}

fn create(harness: &mut Harness<Paimon>, table: &Table) {
    harness.change_table(None, SchemaChange::CreateTable, Some(table)).unwrap();
}

/// Puts the whole store into a folder.
fn copy(world: &World, folder: &Path) {
    for path in world.paths("lake") {
        let file = folder.join(&path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, world.object("lake", &path).unwrap()).unwrap();
    }
}

/// Rows as one reader spells them, in an order that does not depend on it.
fn rows(reader: &mut LakeReader, folder: &Path, name: &str) -> Vec<Map<String, Value>> {
    let mut rows = Vec::new();
    let table = folder.join("wh/shop.db").join(name);
    let read = reader.each(&table, None, |cells| {
        rows.push(cells.clone());
        Ok(())
    });
    read.unwrap_or_else(|error| panic!("{}: {name}: {error:#}", reader.name()));
    rows.sort_by_key(|cells| (cells["id"].as_i64(), cells["v"].to_string()));
    rows
}

fn readers() -> [LakeReader; 2] {
    [LakeReader::pypaimon().unwrap(), LakeReader::java().unwrap()]
}

/// `id` and `v` of rows.
fn shown(rows: &[Map<String, Value>]) -> Vec<(i64, &str)> {
    rows.iter().map(|cells| (cells["id"].as_i64().unwrap(), cells["v"].as_str().unwrap_or("NULL"))).collect()
}

#[test]
fn rows_without_a_key_are_all_there() {
    let folder = Folder::new("append").unwrap();
    let mut harness = harness(json!({"table": {"bucket": 4}}));
    let table = Table::new("shop.log").column("id", LogicalType::Int32).column("v", TEXT);
    create(&mut harness, &table);
    // Two of the same stay two, in one epoch and in several, by one writer and by both.
    harness.write(0, table.rows(1).read(row![1, "a"]).read(row![1, "a"]).insert(row![2, Cell::Null])).unwrap();
    harness.write(1, table.rows(4).insert(row![1, "a"])).unwrap();
    harness.checkpoint().unwrap();
    harness.write(1, table.rows(5).insert(row![1, "a"]).insert(row![3, "c"])).unwrap();
    let checkpoint = harness.checkpoint().unwrap();
    // A run that comes after a crash commits the same epoch again, and nothing is doubled.
    harness.start().unwrap();
    harness.commit_elsewhere(9, &checkpoint).unwrap();
    harness.write(0, table.rows(7).insert(row![4, "d"])).unwrap();
    harness.checkpoint().unwrap();
    copy(harness.world(), folder.path());
    for reader in &mut readers() {
        let expected = [(1, "a"), (1, "a"), (1, "a"), (1, "a"), (2, "NULL"), (3, "c"), (4, "d")];
        assert_eq!(shown(&rows(reader, folder.path(), "log")), expected, "{}", reader.name());
    }
    let refused = harness.write(0, table.rows(8).insert(row![5, "e"]).delete(row![5, "e"])).unwrap_err();
    assert!(refused.message.contains("shop.log") && refused.message.contains("has no key"), "{refused}");
    assert_eq!(refused.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [1]);
    let refused = harness.write(0, table.rows(8).update(row![1, "a"], row![1, "b"])).unwrap_err();
    assert!(refused.message.contains("updated or deleted"), "{refused}");
}

/// A type that a table may be divided by, and values of it that all have a folder of their own.
fn divisors() -> Vec<(&'static str, LogicalType, Vec<Cell>)> {
    const AT: i64 = 1_706_745_599_000_000;
    let decimal = |precision, scale| LogicalType::Decimal { precision, scale };
    vec![
        ("boolean", LogicalType::Boolean, row![false, true]),
        ("int8", LogicalType::Int8, row![-128, 0, 127]),
        ("uint8", LogicalType::Uint8, row![0, 255]),
        ("int16", LogicalType::Int16, row![-32_768, 32_767]),
        ("uint16", LogicalType::Uint16, row![0, 65_535]),
        ("int32", LogicalType::Int32, row![i32::MIN, 0, i32::MAX]),
        ("uint32", LogicalType::Uint32, row![0, 4_294_967_295_i64]),
        ("int64", LogicalType::Int64, row![i64::MIN, i64::MAX]),
        ("uint64", LogicalType::Uint64, row![0, u64::MAX]),
        ("decimal", decimal(10, 2), row![-5, 0, 9_999_999_999_i64]),
        ("wide_decimal", decimal(38, 10), row![-1, 10_i128.pow(38) - 1]),
        ("text", TEXT, row!["a", "grüße, welt", "a b", "1234567", "longer than a slot"]),
        ("odd_text", TEXT, row!["a/b", "k=v", "100%", "a:b?c*d", "[x]{y}^\\\"'#"]),
        ("date", LogicalType::Date, row![-719_162, -1, 0, 19_753, 2_932_896]),
        ("datetime", LogicalType::Timestamp { fraction: 0 }, row![0_i64, AT, -1_000_000]),
        ("datetime3", LogicalType::Timestamp { fraction: 3 }, row![1_000_i64, AT + 120_000]),
        ("datetime6", LogicalType::Timestamp { fraction: 6 }, row![1_i64, AT + 120_000, AT]),
        ("timestamp", LogicalType::TimestampUtc { fraction: 0 }, row![0_i64, AT, AT + 1_000_000]),
        ("timestamp6", LogicalType::TimestampUtc { fraction: 6 }, row![1_i64, AT + 1_000, AT + 60_000_000]),
    ]
}

#[test]
fn rows_lie_in_the_partition_of_their_values() {
    let folder = Folder::new("partitions").unwrap();
    let mut harness = harness(json!({"table": {"bucket": 2}, "partition-keys": {"shop.*by_*": ["p"]}}));
    let mut expected = Vec::new();
    for (name, ty, values) in divisors() {
        let keyed = Table::new(&format!("shop.by_{name}")).key("id", LogicalType::Int32).key("p", ty.clone());
        let keyed = keyed.column("v", TEXT);
        create(&mut harness, &keyed);
        let (mut first, mut second, mut rows) = (keyed.rows(1), keyed.rows(100), Vec::new());
        for (id, value) in (0..).zip(&values) {
            let cells = |id: i32, text: &str| vec![Cell::from(id), value.clone(), Cell::from(text)];
            first = first.read(cells(id, "read")).insert(cells(id + 50, "gone")).insert(cells(id + 70, "kept"));
            second = second.update(cells(id, "read"), cells(id, "changed")).delete(cells(id + 50, "gone"));
            // It moves to the partition of the first value.
            let moved = vec![Cell::from(id + 70), values[0].clone(), Cell::from("moved")];
            second = second.delete(cells(id + 70, "kept")).insert(moved);
            rows.push((i64::from(id), "changed"));
            rows.push((i64::from(id) + 70, "moved"));
        }
        rows.sort_unstable();
        expected.push((format!("by_{name}"), rows));
        harness.write(0, first).unwrap();
        harness.checkpoint().unwrap();
        harness.write(0, second.without_before()).unwrap();
        // And without a key, where NULL may stand.
        let log = Table::new(&format!("shop.log_by_{name}")).column("id", LogicalType::Int32).column("p", ty);
        let log = log.column("v", TEXT);
        create(&mut harness, &log);
        let all = values.iter().chain([&Cell::Null, &Cell::Null]);
        let lines = (0..)
            .zip(all)
            .fold(log.rows(1), |lines, (id, value)| lines.insert(vec![Cell::from(id), value.clone(), Cell::from("x")]));
        expected.push((format!("log_by_{name}"), (0..values.len() as i64 + 2).map(|id| (id, "x")).collect()));
        harness.write(1, lines).unwrap();
        harness.checkpoint().unwrap();
    }
    copy(harness.world(), folder.path());
    let [mut python, mut java] = readers();
    for (name, expected) in &expected {
        let (one, other) = (rows(&mut python, folder.path(), name), rows(&mut java, folder.path(), name));
        assert_eq!(shown(&one), *expected, "{name} by pypaimon");
        assert_eq!(shown(&other), *expected, "{name} by Java");
    }
    let names = |table: &str| {
        let found = fs::read_dir(folder.path().join("wh/shop.db").join(table)).unwrap();
        let mut names: Vec<_> = found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.contains('='));
        names.sort();
        names
    };
    assert_eq!(
        names("log_by_date"),
        ["p=0001-01-01", "p=1969-12-31", "p=1970-01-01", "p=2024-01-31", "p=9999-12-31", "p=__DEFAULT_PARTITION__"]
    );
    assert_eq!(names("by_decimal"), ["p=-0.05", "p=0.00", "p=99999999.99"]);
}

#[test]
fn what_cannot_be_divided_is_refused_in_words() {
    let keyed = || Table::new("shop.t").key("id", LogicalType::Int32).column("day", LogicalType::Date);
    for (partition, table, words) in [
        (json!({"shop.t": ["day"]}), keyed(), "is no part of its key (id)"),
        (json!({"shop.t": ["id"]}), keyed(), "all columns of its key (id)"),
        (json!({"shop.t": ["month"]}), keyed(), "has no column month"),
        (json!({"shop.t": ["id"], "shop.*": ["id"]}), keyed(), "both fit table shop.t"),
        (json!({"*": ["f"]}), Table::new("shop.t").column("f", LogicalType::Float64), "cannot be divided by column f"),
    ] {
        let mut harness = harness(json!({"partition-keys": partition}));
        let refused = harness.change_table(None, SchemaChange::CreateTable, Some(&table)).unwrap_err();
        assert!(refused.message.contains(words), "{refused}");
        assert_eq!(harness.world().paths("lake"), [""; 0]);
    }
}
