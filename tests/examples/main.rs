//! Every example runs, and its lake holds what its `expected/` says.
#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cdchost_tests::lake::LakeReader;
use cdchost_tests::project;
use cdchost_tests::server::{ACCOUNT, PASSWORD, Server};
use cdchost_tests::watchdog::Folder;

/// The examples that a test below runs. A folder that is not among them fails, so none is forgotten.
const RUN: [&str; 1] = ["mysql-to-paimon"];

#[test]
fn every_example_is_run() {
    let folders = fs::read_dir(project::root().join("examples")).unwrap();
    let names: BTreeSet<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, RUN.iter().map(ToString::to_string).collect());
    for name in names {
        for part in ["README.md", "pipeline.toml", "expected"] {
            assert!(project::root().join("examples").join(&name).join(part).exists(), "{name} has no {part}");
        }
    }
}

#[tokio::test]
async fn mysql_to_paimon() {
    let example = project::root().join("examples/mysql-to-paimon");
    let server = Server::start().unwrap();
    let folder = Folder::new("example").unwrap();
    run_sql(&server, &example.join("setup.sql")).await;
    run(&server, &example, folder.path());
    run_sql(&server, &example.join("changes.sql")).await;
    run(&server, &example, folder.path());
    let mut readers = [LakeReader::pypaimon().unwrap(), LakeReader::java().unwrap()];
    for entry in fs::read_dir(example.join("expected")).unwrap() {
        let file = entry.unwrap().path();
        for reader in &mut readers {
            compare(&file, &folder.join("lake/warehouse"), reader);
        }
    }
}

async fn run_sql(server: &Server, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let statements: Vec<&str> = text.split(";\n").map(str::trim).filter(|s| !s.is_empty()).collect();
    server.run(&statements).await.unwrap();
}

/// Runs the pipeline until the lake holds all that the server has.
fn run(server: &Server, example: &Path, folder: &Path) {
    let mut command = Command::new(project::program().unwrap());
    command.args(["run", "--until", "caught-up", "--plugins"]).arg(project::plugins().unwrap());
    command.arg(example.join("pipeline.toml")).stdin(Stdio::null());
    command.env("SHOP_MYSQL", server.address()).env("SHOP_USER", ACCOUNT).env("SHOP_PASSWORD", PASSWORD);
    command.env("SHOP_FOLDER", folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compares the rows of `DATABASE.TABLE.jsonl` with the table's, as JSON values, in any order.
fn compare(file: &Path, warehouse: &Path, reader: &mut LakeReader) {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let (database, table) = name.split_once('.').unwrap();
    let path: PathBuf = warehouse.join(format!("{database}.db")).join(table);
    let mut found = BTreeSet::new();
    let count = reader
        .each(&path, None, |row| {
            found.insert(serde_json::Value::from(row.clone()).to_string());
            Ok(())
        })
        .unwrap();
    let text = fs::read_to_string(file).unwrap();
    let expected: BTreeSet<_> =
        text.lines().map(|line| line.parse::<serde_json::Value>().unwrap().to_string()).collect();
    assert_eq!(found, expected, "{name} read by {}", reader.name());
    assert_eq!(count, expected.len(), "{name} read by {}", reader.name());
}
