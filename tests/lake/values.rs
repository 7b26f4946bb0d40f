//! Every type with its odd values: read from the table, inserted and updated through the log.

use std::time::Duration;

use cdchost_tests::lake::LakeReader;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::project;
use cdchost_tests::server::Server;
use cdchost_tests::verdict;
use cdchost_tests::watchdog::Folder;

const LIMIT: Duration = Duration::from_secs(120);

/// A type, and values for it as SQL.
const TYPES: [(&str, &[&str]); 38] = [
    ("TINYINT", &["-128", "-1", "0", "127"]),
    ("TINYINT UNSIGNED", &["0", "128", "255"]),
    ("TINYINT(1)", &["0", "1", "2", "-128"]),
    ("SMALLINT", &["-32768", "32767"]),
    ("SMALLINT UNSIGNED", &["0", "65535"]),
    ("MEDIUMINT", &["-8388608", "-1", "8388607"]),
    ("MEDIUMINT UNSIGNED", &["0", "8388608", "16777215"]),
    ("INT", &["-2147483648", "2147483647"]),
    ("INT UNSIGNED", &["0", "2147483648", "4294967295"]),
    ("BIGINT", &["-9223372036854775808", "9223372036854775807"]),
    ("BIGINT UNSIGNED", &["0", "9223372036854775808", "18446744073709551615"]),
    ("DECIMAL(1,0)", &["-9", "0", "9"]),
    ("DECIMAL(10,2)", &["-99999999.99", "-0.01", "0", "0.10", "99999999.99"]),
    ("DECIMAL(38,10)", &["-9999999999999999999999999999.9999999999", "0.0000000001"]),
    ("DECIMAL(65,30)", &["-99999999999999999999999999999999999.999999999999999999999999999999", "1e-30"]),
    ("FLOAT", &["16777217", "-0e0", "0.1", "3.4028234e38", "-1.17549435e-38"]),
    ("DOUBLE", &["0.1", "-0e0", "1.7976931348623157e308", "2.2250738585072014e-308", "9007199254740993"]),
    ("CHAR(10)", &["''", "'a'", "'  a'", "'é🦀'", "'tab\tnl\n'"]),
    ("VARCHAR(255)", &["''", "'a  '", "'\"\\\\\"'", "REPEAT('🦀', 255)", "CHAR(0, 1, 31)"]),
    ("VARCHAR(20) CHARACTER SET ascii", &["''", "'~'"]),
    ("TINYTEXT", &["''", "REPEAT('x', 255)"]),
    ("TEXT", &["''", "REPEAT('ü', 30000)"]),
    ("MEDIUMTEXT", &["''", "REPEAT('abc', 100000)"]),
    ("LONGTEXT", &["''", "REPEAT('0123456789', 50000)"]),
    ("BINARY(8)", &["''", "0x00", "0x6100", "0xFFFFFFFFFFFFFFFF"]),
    ("VARBINARY(300)", &["''", "0x00", "0x0020", "REPEAT(0xFF, 300)"]),
    ("TINYBLOB", &["''", "REPEAT(0x00, 255)"]),
    ("BLOB", &["''", "REPEAT(0xC3, 60000)"]),
    ("MEDIUMBLOB", &["''", "REPEAT(0x0D0A, 100000)"]),
    ("LONGBLOB", &["''", "REPEAT(0xDEADBEEF, 100000)"]),
    ("DATE", &["'1000-01-01'", "'1582-10-10'", "'1969-12-31'", "'2000-02-29'", "'9999-12-31'"]),
    ("TIME", &["'-838:59:59'", "'-00:00:01'", "'00:00:00'", "'838:59:59'"]),
    ("TIME(6)", &["'-838:59:58.999999'", "'-00:00:00.000001'", "'23:59:59.999999'"]),
    ("DATETIME", &["'1000-01-01 00:00:00'", "'2024-03-31 02:30:00'", "'9999-12-31 23:59:59'"]),
    ("DATETIME(3)", &["'1969-12-31 23:59:59.999'", "'2000-02-29 12:00:00.001'"]),
    ("DATETIME(6)", &["'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"]),
    ("TIMESTAMP NULL", &["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"]),
    ("TIMESTAMP(6) NULL", &["'1970-01-01 00:00:01.000001'", "'2024-10-27 01:30:00.123456'"]),
];

/// Statements that put all values in: keys from `first` on, the last one NULL.
fn inserts(first: usize) -> Vec<String> {
    let insert = |(table, (_, values)): (usize, &(&str, &[&str]))| {
        let rows = values.iter().chain(&["NULL"]).enumerate();
        let rows: Vec<String> = rows.map(|(at, value)| format!("({}, {value})", first + at)).collect();
        format!("INSERT INTO v.t{table} VALUES {}", rows.join(", "))
    };
    TYPES.iter().enumerate().map(insert).collect()
}

async fn run(server: &Server, statements: Vec<String>) {
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    server.run(&statements).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_arrives_as_the_server_has_it() {
    let server = Server::start().unwrap();
    let folder = Folder::new("values").unwrap();
    let create =
        |(table, (ty, _)): (usize, &(&str, _))| format!("CREATE TABLE v.t{table} (id INT PRIMARY KEY, v {ty})");
    run(&server, vec!["CREATE DATABASE v".to_owned()]).await;
    run(&server, TYPES.iter().enumerate().map(create).collect()).await;
    run(&server, inserts(0)).await;
    let mut pipeline = Pipeline::new(folder.path(), &PipelineSpec::into_lake(&server.address(), "v")).unwrap();
    pipeline.start(project::program().unwrap(), &[], &[]).unwrap();
    pipeline.wait_until_caught_up(LIMIT).unwrap();
    // Through the log: the same values inserted, and put in place of others and of NULL.
    run(&server, inserts(100)).await;
    run(&server, inserts(200)).await;
    let shift = |table| format!("UPDATE v.t{table} AS a JOIN v.t{table} AS b ON b.id = 299 - a.id SET a.v = b.v");
    run(&server, (0..TYPES.len()).map(shift).collect()).await;
    let rotate = "UPDATE v.t{} AS a JOIN v.t{} AS b ON b.id = a.id + 1 - 100 SET a.v = b.v WHERE a.id >= 200";
    run(&server, (0..TYPES.len()).map(|table| rotate.replace("{}", &table.to_string())).collect()).await;
    pipeline.wait_until_at_the_end_of(&server, LIMIT).await.unwrap();
    pipeline.checkpoint(LIMIT).unwrap();
    let mut readers = [LakeReader::pypaimon().unwrap(), LakeReader::java().unwrap()];
    let verdict = verdict::compare(&server, &pipeline, "v", &mut readers).await.unwrap();
    assert_eq!(verdict.shown, [""; 0]);
    assert_eq!(verdict.equal, TYPES.len());
    assert!(pipeline.stop(LIMIT).unwrap().success());
}
