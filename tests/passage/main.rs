//! Transforms and routes end to end on a real server: what is masked and moved is right, also over kills; and what the
//! commands say of it before anything runs.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cdchost_tests::journal::Journal;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::project;
use cdchost_tests::server::{PASSWORD, Server};
use cdchost_tests::watchdog::Folder;
use mysql_async::prelude::Queryable as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const LIMIT: Duration = Duration::from_secs(120);
const KEY: &str = "a key of the tests";

const STEPS: &str = r#"
[[transform]]
table = "passage.customers_.*"
plugin = "mask"
key = "${file:mask-key}"
hash = ["email"]
redact = ["note"]

[[route]]
table = "passage.customers_(.*)"
to = "ods.customers"

[[route]]
table = "passage.orders"
plugin = "split"
column = "region"
to = "ods.orders_{value}"
others = "ods.orders"
"#;

/// A server with three tables, and a pipeline over them with the steps above.
async fn stage(folder: &Folder, sink: (&str, &str)) -> Result<(Server, Pipeline)> {
    let server = Server::start()?;
    server
        .run(&[
            "CREATE DATABASE passage",
            "USE passage",
            "CREATE TABLE customers_1 (id INT PRIMARY KEY, email VARCHAR(50), note VARCHAR(50))",
            "CREATE TABLE customers_2 LIKE customers_1",
            "CREATE TABLE orders (id INT PRIMARY KEY, region VARCHAR(10), n INT NOT NULL)",
            "INSERT INTO customers_1 VALUES (2, 'a@b', 'secret words'), (4, NULL, NULL)",
            "INSERT INTO customers_2 VALUES (1, 'a@b', 'secret words')",
            "INSERT INTO orders VALUES (1, 'eu', 0), (2, 'us', 0), (3, NULL, 0), (4, '..', 0)",
        ])
        .await?;
    fs::write(folder.join("mask-key"), KEY)?;
    let spec = PipelineSpec {
        sink: sink.0.to_owned(),
        sink_options: sink.1.to_owned(),
        interval: "200ms".to_owned(),
        ..PipelineSpec::into_lake(&server.address(), "passage")
    };
    let pipeline = Pipeline::new(folder.path(), &spec)?;
    OpenOptions::new().append(true).open(pipeline.file())?.write_all(STEPS.as_bytes())?;
    Ok((server, pipeline))
}

/// HMAC-SHA-256 by its definition.
fn hmac(text: &str) -> String {
    let mut block = [0_u8; 64];
    block[..KEY.len()].copy_from_slice(KEY.as_bytes());
    let inner = Sha256::digest([block.map(|byte| byte ^ 0x36).as_slice(), text.as_bytes()].concat());
    let outer = Sha256::digest([block.map(|byte| byte ^ 0x5c).as_slice(), &inner].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One round of changes: inserts, updates that move rows between targets, deletes.
async fn change(server: &Server, round: u32) -> Result<()> {
    let id = 100 + round;
    let regions = ["eu", "us", "asia"];
    let (region, next) = (regions[round as usize % 3], regions[(round as usize + 1) % 3]);
    server
        .run(&[
            "USE passage",
            &format!("INSERT INTO customers_{} VALUES ({id}, 'm{round}@x', 'n')", 1 + round % 2),
            &format!("INSERT INTO orders VALUES ({id}, '{region}', 0)"),
            &format!("UPDATE orders SET n = n + 1, region = '{next}' WHERE id IN (1, {id})"),
            &format!("UPDATE customers_1 SET email = 'r{round}@x' WHERE id = 2"),
            &format!("DELETE FROM orders WHERE id = {}", id - 1),
            &format!("DELETE FROM customers_2 WHERE id = {}", id - 3),
        ])
        .await
}

/// Rows of a target by key, as its lines leave them. A line that stands twice fails.
fn rows(out: &Path, table: &str) -> Result<BTreeMap<i64, Value>> {
    let mut lines: Vec<(i64, Value)> = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(out.join("ods").join(table)).with_context(|| format!("target {table}"))? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            let line: Value = serde_json::from_str(line)?;
            ensure!(seen.insert(line.to_string()), "a line stands twice: {line}");
            ensure!(!line.to_string().contains("secret words"), "a note is not redacted");
            lines.push((line["change-seq"].as_i64().context("change-seq")?, line));
        }
    }
    // What a snapshot read is older than a change of its number.
    lines.sort_by_key(|(seq, line)| (*seq, line["op"] != "read"));
    let mut rows = BTreeMap::new();
    for (_, line) in lines {
        let id = line["row"]["id"].as_i64().context("id")?;
        match line["op"].as_str() {
            Some("delete") => rows.remove(&id),
            _ => rows.insert(id, line["row"].clone()),
        };
    }
    Ok(rows)
}

#[tokio::test]
async fn what_arrives_is_masked_and_moved_whatever_is_killed() -> Result<()> {
    let folder = Folder::new("passage")?;
    let (server, mut pipeline) = stage(&folder, ("file", "path = \"lake/out\"\nmetadata = [\"change-seq\"]\n")).await?;
    let program = project::program()?;
    for round in 0..12_u32 {
        if round.is_multiple_of(3) {
            pipeline.start(program, &[], &[])?;
        }
        change(&server, round).await?;
        match round % 3 {
            // What is committed here is not read again from the tables: the kills that follow fall into the stream.
            1 => {
                pipeline.wait_until_caught_up(LIMIT)?;
                pipeline.checkpoint(LIMIT)?;
            }
            // In the midst of what the round before and this one brought.
            2 => pipeline.kill()?,
            _ => drop(pipeline.wait_until("data flows", LIMIT, |status| status["state"] == "running")?),
        }
    }
    pipeline.start(program, &[], &[])?;
    let status = pipeline.wait_until_caught_up(LIMIT)?;
    pipeline.checkpoint(LIMIT)?;
    let tables = status["tables"].as_array().context("tables")?;
    let targets = |table: &str| tables.iter().find(|t| t["table"] == table).map(|t| t["targets"].clone());
    assert_eq!(targets("passage.customers_2"), Some(serde_json::json!(["ods.customers"])));
    ensure!(pipeline.stop(LIMIT)?.success(), "{}", pipeline.last_lines());
    let is_told = |pipeline: &Pipeline| -> Result<bool> {
        Ok(Journal::new(&pipeline.log()).read()?.iter().any(|event| event.name == "path-changed"))
    };
    ensure!(!is_told(&pipeline)?, "nothing of the path was changed");
    let file = fs::read_to_string(pipeline.file())?;
    fs::write(pipeline.file(), file.replace("others = \"ods.orders\"", "others = \"ods.more\""))?;
    pipeline.start(program, &[], &[])?;
    pipeline.wait_until_caught_up(LIMIT)?;
    ensure!(pipeline.stop(LIMIT)?.success(), "{}", pipeline.last_lines());
    ensure!(is_told(&pipeline)?, "a run through another path says so");

    let out = pipeline.lake().join("out");
    let mut connection = server.connect().await?;
    let query =
        "SELECT id, email, note FROM passage.customers_1 UNION ALL SELECT id, email, note FROM passage.customers_2";
    let customers: Vec<(i64, Option<String>, Option<String>)> = connection.query(query).await?;
    let masked = |(id, email, note): (i64, Option<String>, Option<String>)| {
        (id, serde_json::json!({ "id": id, "email": email.map(|e| hmac(&e)), "note": note.map(|_| "***") }))
    };
    assert_eq!(rows(&out, "customers")?, customers.into_iter().map(masked).collect());

    let orders: Vec<(i64, Option<String>, i64)> = connection.query("SELECT id, region, n FROM passage.orders").await?;
    for (table, region) in [("orders_eu", "eu"), ("orders_us", "us"), ("orders_asia", "asia"), ("orders", "")] {
        let here = |found: &Option<String>| match found.as_deref() {
            Some("eu" | "us" | "asia") => found.as_deref() == Some(region),
            _ => region.is_empty(),
        };
        let expected = orders.iter().filter(|(_, found, _)| here(found));
        let expected: BTreeMap<_, _> =
            expected.map(|(id, region, n)| (*id, serde_json::json!({ "id": id, "region": region, "n": n }))).collect();
        assert_eq!(rows(&out, table)?, expected, "{table}");
    }
    Ok(())
}

fn cdchost(folder: &Folder, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(project::program()?);
    command.args(arguments).arg("--plugins").arg(project::plugins()?).arg("pipeline.toml");
    command.env("CDCHOST_TEST_PASSWORD", PASSWORD).current_dir(folder.path()).stdin(Stdio::null());
    Ok(command.output()?)
}

#[tokio::test]
async fn a_check_says_where_rows_go_and_how_a_server_is_healed() -> Result<()> {
    let folder = Folder::new("passage-check")?;
    let (server, _pipeline) = stage(&folder, ("file", "path = \"lake/out\"\n")).await?;
    server.run(&["SET GLOBAL binlog_row_image = 'MINIMAL'"]).await?;
    let wrong = cdchost(&folder, &["check", "--json"])?;
    let told: Value = serde_json::from_slice(&wrong.stdout)?;
    assert_eq!((wrong.status.code(), &told["startable"]), (Some(3), &Value::Bool(false)));
    let healing = told["findings"][0]["instruction"].as_str().context("what heals it")?;
    assert_eq!(healing, "SET GLOBAL binlog_row_image = 'FULL'");
    server.run(&[healing]).await?;

    let right = cdchost(&folder, &["check", "--json"])?;
    let told: Value = serde_json::from_slice(&right.stdout)?;
    ensure!(right.status.success(), "{told:#}");
    let table = |name: &str| told["tables"].as_array().into_iter().flatten().find(|t| t["source"] == name).cloned();
    let customers = table("passage.customers_2").context("customers_2")?;
    assert_eq!(customers["targets"][0]["table"], "ods.customers");
    assert_eq!(customers["targets"][0]["key"], serde_json::json!(["id"]));
    assert_eq!(customers["targets"][0]["columns"][1]["type"], "text(64)");
    let orders = table("passage.orders").context("orders")?;
    assert_eq!((&orders["by-row"], &orders["targets"]), (&Value::Bool(true), &serde_json::json!([])));

    // Tables that differ cannot be one.
    server.run(&["ALTER TABLE passage.customers_2 ADD COLUMN more INT"]).await?;
    let differing = cdchost(&folder, &["check"])?;
    let said = String::from_utf8(differing.stdout)?;
    assert_eq!(differing.status.code(), Some(2), "{said}");
    assert!(said.contains("are both routed to ods.customers, and differ: they have 3 and 4 columns"), "{said}");
    let file = fs::read_to_string(folder.path().join("pipeline.toml"))?;
    let route = 1 + file.lines().position(|line| line == "[[route]]").context("a route")?;
    let refused = said.lines().find(|line| line.contains("are both routed to")).context("what is refused")?;
    assert!(refused.starts_with(&format!("pipeline.toml:{route}:")), "the route is in line {route}: {refused}");
    names_are_refused_together(&server).await
}

/// All tables whose names the lake cannot have are said at once, by a check and by a first start.
async fn names_are_refused_together(server: &Server) -> Result<()> {
    server
        .run(&[
            "CREATE DATABASE names",
            "USE names",
            "CREATE TABLE `a$b` (id INT PRIMARY KEY)",
            "CREATE TABLE `c.d` (id INT PRIMARY KEY)",
            "CREATE TABLE e (id INT PRIMARY KEY, _LEVEL INT, _KEY_id INT)",
            "CREATE TABLE f (id INT PRIMARY KEY, e INT, CONSTRAINT gone FOREIGN KEY (e) REFERENCES e (id) ON DELETE CASCADE)",
        ])
        .await?;
    let folder = Folder::new("passage-names")?;
    Pipeline::new(folder.path(), &PipelineSpec::into_lake(&server.address(), "names"))?;
    for arguments in [["check"].as_slice(), &["run", "--until", "snapshot"]] {
        let output = cdchost(&folder, arguments)?;
        let said = String::from_utf8([output.stdout, output.stderr].concat())?;
        assert_eq!(output.status.code(), Some(2), "{said}");
        for name in ["names.a$b", "names.c.d", "names.e", "\"_LEVEL\", \"_KEY_id\"", "leave the table out with `!`"] {
            assert!(said.contains(name), "{name}: {said}");
        }
        assert!(said.contains("such changes will be missing in the target") && said.contains("gone"), "{said}");
        assert!(said.contains("3 errors") && !said.contains("names.f cannot"), "{said}");
    }
    Ok(())
}

/// Names in the file that no table has: said by a check, by a first start, and by one that goes on with a changed file.
#[tokio::test]
async fn names_that_no_table_has_start_nothing() -> Result<()> {
    let folder = Folder::new("passage-unmet")?;
    let (_server, pipeline) = stage(&folder, ("file", "path = \"lake/out\"\n")).await?;
    let right = fs::read_to_string(pipeline.file())?;
    let run = ["run", "--until", "caught-up"];
    for has_run in [false, true] {
        for (name, typo, says) in [
            (
                "hash = [\"email\"]",
                "hash = [\"e_mail\"]",
                "transform mask: hash names the column \"e_mail\", which none of its tables has, did you mean email?",
            ),
            (
                "redact = [\"note\"]",
                "redact = [\"n*\", \"remarks\"]",
                "redact names the column \"remarks\", which none of its tables has; they have email, id, note",
            ),
            (
                "customers_.*",
                "costumers_.*",
                "transform mask: the pattern \"passage.costumers_.*\" matches none of the tables that are captured: passage.customers_1, passage.customers_2, passage.orders",
            ),
            (
                "passage.orders\"\nplugin",
                "passage.order\"\nplugin",
                "route split: the pattern \"passage.order\" matches none",
            ),
        ] {
            fs::write(pipeline.file(), right.replacen(name, typo, 1))?;
            for arguments in [["check"].as_slice(), &run] {
                let output = cdchost(&folder, arguments)?;
                let said = String::from_utf8([output.stdout, output.stderr].concat())?;
                assert_eq!(output.status.code(), Some(2), "{said}");
                assert!(said.contains(says), "{arguments:?}, {says}: {said}");
            }
            assert_eq!(pipeline.lake().join("out").exists(), has_run);
        }
        fs::write(pipeline.file(), &right)?;
        let output = cdchost(&folder, &run)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// A pattern of the source that no table has, beside one that has some, is said; and signals of one instant are one.
#[tokio::test]
async fn a_pattern_beside_others_is_named_and_two_signals_at_once_drain() -> Result<()> {
    let folder = Folder::new("passage-pattern")?;
    let (_server, mut pipeline) = stage(&folder, ("file", "path = \"lake/out\"\n")).await?;
    let file = fs::read_to_string(pipeline.file())?.replace("[\"passage.*\"]", "[\"passage.*\", \"passage.nixda\"]");
    fs::write(pipeline.file(), file)?;
    let output = cdchost(&folder, &["check"])?;
    let said = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success(), "{said}");
    let named = "this pattern of `tables` matches no table that the account can see";
    assert!(said.lines().any(|line| line.contains(named) && line.contains("passage.nixda")), "{said}");

    pipeline.start(project::program()?, &[], &[])?;
    pipeline.wait_until("something is committed", LIMIT, |status| status["epoch"]["committed"].is_u64())?;
    pipeline.signal("TERM")?;
    pipeline.signal("TERM")?;
    let ended = pipeline.wait_for_end(LIMIT)?;
    let log = fs::read_to_string(pipeline.log())?;
    ensure!(ended.success() && log.contains("\"state\":\"stopped\""), "{ended}: {log}");
    assert!(log.lines().any(|line| line.contains(named) && line.contains("passage.nixda")), "{log}");
    Ok(())
}

/// As many writers as the file may ask for, at two sinks, and lanes beside them.
#[tokio::test]
async fn as_many_writers_as_may_be_are_run() -> Result<()> {
    let folder = Folder::new("passage-many")?;
    let metadata = "metadata = [\"change-seq\"]\n";
    let (_server, pipeline) = stage(&folder, ("file", &format!("path = \"lake/out\"\n{metadata}"))).await?;
    let file = fs::read_to_string(pipeline.file())?.replace("parallelism = 2", "parallelism = 128");
    let file = file.replace("plugin = \"mask\"", "plugin = \"mask\"\nparallelism = 16");
    let second = "\n[[sink]]\nid = \"second\"\nplugin = \"file\"\nallow.store = [\"lake\"]\npath = \"lake/second\"\n";
    fs::write(pipeline.file(), file + second + metadata)?;
    let output = cdchost(&folder, &["run", "--until", "snapshot"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && !said.contains("pipeline-restarting") && !said.contains("one by one"), "{said}");
    for out in ["out", "second"] {
        assert_eq!(rows(&pipeline.lake().join(out), "customers")?.len(), 3);
    }
    Ok(())
}

#[tokio::test]
async fn printed_lines_are_the_rows_and_nothing_else() -> Result<()> {
    let folder = Folder::new("passage-print")?;
    let (_server, pipeline) = stage(&folder, ("print", "allow.stdout = true\n")).await?;
    let file = fs::read_to_string(pipeline.file())?.replace("allow.store = [\"lake\"]\n", "");
    fs::write(pipeline.file(), file.replace("parallelism = 2", "parallelism = 2\nguarantee = \"at-least-once\""))?;
    let output = cdchost(&folder, &["run", "--until", "snapshot"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let tables: Vec<&str> = lines.iter().filter_map(|line| line["table"].as_str()).collect();
    let count = |table: &str| tables.iter().filter(|name| **name == table).count();
    assert_eq!((lines.len(), count("ods.customers"), count("ods.orders"), count("ods.orders_us")), (7, 3, 2, 1));
    Ok(())
}

/// A reader that has its lines and goes, as `head` does.
#[tokio::test]
async fn an_output_whose_reader_has_gone_is_said_in_words() -> Result<()> {
    let folder = Folder::new("passage-pipe")?;
    let (_server, pipeline) = stage(&folder, ("print", "allow.stdout = true\n")).await?;
    let file = fs::read_to_string(pipeline.file())?.replace("allow.store = [\"lake\"]\n", "");
    fs::write(pipeline.file(), file.replace("parallelism = 2", "parallelism = 2\nguarantee = \"at-least-once\""))?;
    let mut command = Command::new(project::program()?);
    command.args(["run", "--until", "snapshot", "--plugins"]).arg(project::plugins()?).arg("pipeline.toml");
    command.env("CDCHOST_TEST_PASSWORD", PASSWORD).current_dir(folder.path()).stdin(Stdio::null());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(process.stdout.take());
    let output = process.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("standard output takes no more lines: what reads it has gone"), "{said}");
    Ok(())
}

/// Tables that rows choose are shown to the sinks as far as they are known, and names of options that fit no table are told.
#[tokio::test]
async fn a_check_shows_sinks_the_tables_that_rows_will_choose() -> Result<()> {
    let folder = Folder::new("passage-choices")?;
    let keys = |name: &str, column: &str| format!("partition-keys.\"ods.{name}\" = [\"{column}\"]\n");
    let options = format!("warehouse = \"lake/wh\"\n{}{}", keys("orders_*", "n"), keys("customer", "id"));
    let (_server, pipeline) = stage(&folder, ("paimon", &options)).await?;
    let file = fs::read_to_string(pipeline.file())?;
    for (values, table) in [("", "ods.orders_value"), ("values = [\"eu\"]\n", "ods.orders_eu")] {
        fs::write(pipeline.file(), file.replace("column = \"region\"\n", &format!("column = \"region\"\n{values}")))?;
        let output = cdchost(&folder, &["check"])?;
        let said = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("table {table} cannot be divided by column n")), "{said}");
        let unmet = "names \"ods.customer\", which fits none of the tables that it gets, did you mean ods.customers?";
        assert!(said.contains(unmet) && said.contains("1 error:"), "{said}");
    }
    // Where no row chooses its table, it is an error.
    let split = file.find("[[route]]\ntable = \"passage.orders\"").context("the route by row")?;
    fs::write(pipeline.file(), file[..split].replace(&keys("orders_*", "n"), ""))?;
    let output = cdchost(&folder, &["check"])?;
    let said = String::from_utf8(output.stdout)?;
    assert!(output.status.code() == Some(2) && said.contains("names \"ods.customer\", which fits none"), "{said}");
    Ok(())
}
