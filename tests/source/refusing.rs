//! What the source refuses, and with which words.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use cdchost_config::{MysqlConfig, Secret};
use cdchost_connector::{ConnectorError, SourceEnd, StopClass, Verdict};

use cdchost_tests::server::Server;
use mysql_async::prelude::Queryable;

use super::collector::start;
use super::mariadb::start_server;
use super::{config, config_of, database, database_on, server};

/// What opening says.
pub(crate) async fn refused(config: &MysqlConfig) -> ConnectorError {
    match start(config, SourceEnd::Never, None).await {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_cannot_be_carried_are_named_all_at_once() -> Result<()> {
    let name = "refuse_tables";
    let whole = "CREATE TABLE w (id INT PRIMARY KEY) ENGINE = MERGE UNION = (refuse_tables.part) INSERT_METHOD = LAST";
    database(
        name,
        &[
            "CREATE TABLE keyless (a INT) ENGINE = MyISAM",
            "CREATE TABLE blank (id ENUM('a', '') PRIMARY KEY)",
            "CREATE TABLE hidden (id SET('a', 'really😀') PRIMARY KEY, e ENUM('x?') CHARACTER SET latin1)",
            "CREATE TABLE hole (id INT PRIMARY KEY) ENGINE = BLACKHOLE",
            "CREATE TABLE part (id INT PRIMARY KEY) ENGINE = MyISAM",
            "CREATE TABLE fine (id INT PRIMARY KEY)",
            "CREATE TABLE uniq (a INT NOT NULL, b INT, UNIQUE (b), UNIQUE k (a))",
            // No query can be made to use the shorter one.
            "CREATE TABLE unseen (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE l (b, c), UNIQUE k (a) INVISIBLE)",
        ],
    )
    .await?;
    let misfit = [
        "CREATE TABLE misfit (a VARCHAR(5)) ENGINE = MyISAM",
        "CREATE TABLE broken (id INT PRIMARY KEY) ENGINE = MERGE UNION = (misfit)",
    ];
    database("refuse_merge", &[whole, misfit[0], misfit[1]]).await?;
    let error = refused(&config(name)).await;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Config));
    for part in [
        "table refuse_tables.keyless has neither",
        "the key of table refuse_tables.blank has column `id`",
        "column `id` of table refuse_tables.hidden has a label with `?`",
        "table refuse_tables.hole is of engine BLACKHOLE",
        "table refuse_tables.part is a part of the MERGE table refuse_merge.w",
    ] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert_eq!(error.message.lines().count(), 5, "{}", error.message);
    let mut rest = config(name);
    rest.tables.push(format!("!{name}.(keyless|blank|hidden|hole|part)"));
    let target = start(&rest, SourceEnd::Snapshot, None).await?.until_the_end().await?;
    assert_eq!(target.batches, 0);
    Ok(())
}

/// A configuration for `database` with an account that is made anew, with these rights alone.
async fn with_rights(database: &str, account: &str, grants: &[&str]) -> Result<MysqlConfig> {
    let drop = format!("DROP USER IF EXISTS {account}");
    let create = format!("CREATE USER {account} IDENTIFIED WITH mysql_native_password BY 'x'");
    server().run(&[&[drop.as_str(), &create], grants].concat()).await?;
    Ok(MysqlConfig { username: account.into(), password: Secret::new("x"), ..config(database) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_rights_are_named() -> Result<()> {
    let name = "refuse_rights";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    let poor = with_rights(name, "poor", &["GRANT INSERT ON refuse_rights.* TO poor"]).await?;
    let error = refused(&poor).await;
    assert_eq!(error.class, StopClass::Source, "{error:?}");
    for part in ["REPLICATION CLIENT", "REPLICATION SLAVE"] {
        assert!(error.message.contains(part) && error.instruction.contains("GRANT"), "{error:?}");
    }
    assert!(error.message.contains("refuse_rights.t"), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_not_there_and_accounts_that_are_wrong() -> Result<()> {
    let gone = config_of("127.0.0.1:1", "x");
    let error = refused(&gone).await;
    assert_eq!((error.verdict, error.class), (Verdict::Restart, StopClass::Source), "{error:?}");
    let wrong = MysqlConfig { password: Secret::new("s3cret-canary"), ..config("x") };
    let error = refused(&wrong).await;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Config), "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret-canary"));
    let none = config("refuse_no_such_database");
    let error = refused(&none).await;
    assert!(error.message.contains("refuse_no_such_database"), "{error:?}");
    Ok(())
}

/// Runs statements behind a finished snapshot; gives the error they lead to.
async fn stopped_by(name: &str, statements: &[&str]) -> Result<ConnectorError> {
    stopped_on(server(), name, statements).await
}

async fn stopped_on(server: &Server, name: &str, statements: &[&str]) -> Result<ConnectorError> {
    database_on(
        server,
        name,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
            "CREATE TABLE other (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1,'a')",
        ],
    )
    .await?;
    let mut running = start(&config_of(&server.address(), name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let enter = format!("USE {name}");
    let mut all = vec![enter.as_str()];
    all.extend(statements);
    server.run(&all).await?;
    running.until_its_error().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_tables_stop_the_run() -> Result<()> {
    let rows: [(&str, &[&str]); 8] = [
        ("refuse_engine", &["ALTER TABLE t ENGINE = 'BLACKHOLE'"]),
        ("refuse_index", &["ALTER TABLE t DROP INDEX `PRIMARY`"]),
        ("refuse_alter", &["ALTER TABLE t ADD c VARCHAR(20) DEFAULT 'secret'"]),
        ("refuse_truncate", &["TRUNCATE t"]),
        ("refuse_drop", &["DROP TABLE t"]),
        ("refuse_rename", &["RENAME TABLE t TO x"]),
        ("refuse_database", &["DROP DATABASE refuse_database"]),
        ("refuse_key", &["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v, id)"]),
    ];
    for (name, statements) in rows {
        let error = stopped_by(name, statements).await?;
        assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Schema), "{error:?}");
        let table = error.table.clone().expect("the table is named");
        assert_eq!(table.database, name);
        assert!(error.message.contains("binlog.") && !error.message.contains("secret"), "{}", error.message);
        let mild = format!("add \"!{table}\" to `tables`");
        assert!(error.instruction.contains(&mild) && error.instruction.contains("empty target"), "{error:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_the_log_does_not_hold_stop_the_run() -> Result<()> {
    let error =
        stopped_by("refuse_statement", &["SET SESSION binlog_format = 'STATEMENT'", "UPDATE t SET v = 'x'"]).await?;
    assert_eq!(error.code, "mysql-statement-format", "{error:?}");
    let error =
        stopped_by("refuse_image", &["SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE t SET v = 'x'"]).await?;
    assert_eq!(error.code, "mysql-row-image", "{error:?}");
    let error = stopped_by(
        "refuse_xa",
        &["XA START 'x'", "UPDATE t SET v = 'x'", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"],
    )
    .await?;
    assert_eq!(error.code, "mysql-xa", "{error:?}");
    Ok(())
}

/// They stop every pipeline of their server, so it has none beside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_place_of_rows_stop_the_run() -> Result<()> {
    let own = Server::start()?;
    let function = "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = 'x'; RETURN 1; END";
    for (name, call) in [("refuse_select", "SELECT f()"), ("refuse_set", "SET @x = f()"), ("refuse_do", "DO f()")] {
        let trust = "SET GLOBAL log_bin_trust_function_creators = ON";
        let error = stopped_on(&own, name, &[trust, function, "SET SESSION binlog_format = 'STATEMENT'", call]).await?;
        assert_eq!(error.code, "mysql-statement-format", "{call}: {error:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_dates_are_named_in_both_phases() -> Result<()> {
    let zero = [
        "SET SESSION sql_mode = ''",
        "CREATE TABLE z (id INT PRIMARY KEY, d DATE NOT NULL)",
        "INSERT INTO z VALUES (1, '2024-00-10')",
    ];
    database("refuse_zero", &zero).await?;
    let running = start(&config("refuse_zero"), SourceEnd::Never, None).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.class, error.code.as_str()), (StopClass::Data, "mysql-zero-date"), "{error:?}");
    assert!(error.message.contains("`d` of table refuse_zero.z"), "{error:?}");
    database("refuse_zero_stream", &zero[..2]).await?;
    let mut running = start(&config("refuse_zero_stream"), SourceEnd::Never, None).await?;
    running.until_done("refuse_zero_stream").await?;
    server().run(&["SET SESSION sql_mode = ''", "INSERT INTO refuse_zero_stream.z VALUES (1, 0)"]).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.class, error.code.as_str()), (StopClass::Data, "mysql-zero-date"), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_concerns_no_row_is_counted_and_passes() -> Result<()> {
    let name = "refuse_nothing";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))"]).await?;
    database("refuse_elsewhere", &["CREATE TABLE x (id INT PRIMARY KEY)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    server()
        .run(&[
            "USE refuse_nothing",
            "ALTER TABLE t ADD INDEX i (v), COMMENT 'x'",
            "DROP INDEX i ON t",
            "ANALYZE TABLE t",
            "ALTER TABLE refuse_elsewhere.x ADD c INT",
            "DROP TABLE refuse_elsewhere.x",
            "CREATE TEMPORARY TABLE tmp (a INT)",
            "INSERT INTO t VALUES (1, 'a')",
        ])
        .await?;
    running.until("the row", |taken| (taken.target.log.len() == 1).then_some(())).await?;
    // Other tests' statements are counted too, where they might concern any table.
    let counts = [("index", 1), ("option", 1)];
    let all = |ignored: &BTreeMap<_, u64>| counts.iter().all(|(reason, count)| ignored.get(*reason) == Some(count));
    running.until_progress(|progress| all(&progress.ignored)).await?;
    running.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purged_log_is_a_gap() -> Result<()> {
    let own = cdchost_tests::server::Server::start()?;
    own.run(&["CREATE DATABASE gap", "CREATE TABLE gap.t (id INT PRIMARY KEY)"]).await?;
    let config = config_of(&own.address(), "gap");
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done("gap").await?;
    let cut = running.cut().await?;
    running.kill().await;
    own.run(&["INSERT INTO gap.t VALUES (1)", "FLUSH BINARY LOGS"]).await?;
    own.purge_logs().await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    // A new server with the same address has none of ours.
    let other = cdchost_tests::server::Server::start()?;
    let short = MysqlConfig {
        hosts: vec![other.address()],
        reconnect_timeout: std::time::Duration::from_millis(300),
        ..config
    };
    let error = start(&short, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::SourceGap), "{error:?}");
    assert_eq!(error.code, "mysql-lost-transactions");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_sees_part_of_a_table_is_refused() -> Result<()> {
    let name = "refuse_part";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY, hidden INT)"]).await?;
    let grants = [
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO partly",
        "GRANT SELECT (id) ON refuse_part.t TO partly",
    ];
    let partly = with_rights(name, "partly", &grants).await?;
    let error = refused(&partly).await;
    assert!(error.message.contains("may not read table refuse_part.t"), "{error:?}");
    Ok(())
}

/// After a reset the server counts its transactions from one again: what they are numbered says nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_reset_is_noticed() -> Result<()> {
    let server = Server::start()?;
    let create = "CREATE TABLE reset.t (id INT PRIMARY KEY, v VARCHAR(255))";
    server.run(&["CREATE DATABASE reset", create]).await?;
    for id in 0..50 {
        server.run(&[&format!("INSERT INTO reset.t VALUES ({id}, REPEAT('x', 200))")]).await?;
    }
    let config = config_of(&server.address(), "reset");
    let mut running = start(&config, SourceEnd::Never, None).await?;
    running.until_done("reset").await?;
    let cut = running.cut().await?;
    running.stop().await?;
    server.run(&["RESET MASTER", "CREATE DATABASE other"]).await?;
    for number in 0..60 {
        server.run(&[&format!("CREATE DATABASE other{number}")]).await?;
    }
    server.run(&["DELETE FROM reset.t WHERE id = 7"]).await?;
    let error = start(&config, SourceEnd::Never, Some(&cut)).await?.until_its_error().await?;
    assert_eq!((error.class, error.code.as_str()), (StopClass::SourceGap, "mysql-log-reset"), "{error:?}");
    Ok(())
}

/// What an XA transaction changed is in the log where it was prepared, which may be before this pipeline began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xa_transactions_on_captured_tables_stop_the_run() -> Result<()> {
    for server in [Server::start()?, start_server()?] {
        server.run(&["CREATE DATABASE xa", "CREATE TABLE xa.t (id INT PRIMARY KEY)", "CREATE DATABASE other"]).await?;
        server.run(&["CREATE TABLE other.t (id INT PRIMARY KEY)"]).await?;
        let config = config_of(&server.address(), "xa");
        let prepare = async |name: &str, table: &str, id: u32| {
            let insert = format!("INSERT INTO {table} VALUES ({id})");
            let around = ["START", "END", "PREPARE"].map(|word| format!("XA {word} '{name}'"));
            server.run(&[&around[0], &insert, &around[1], &around[2]]).await
        };
        prepare("early", "xa.t", 1).await?;
        let mut running = start(&config, SourceEnd::Never, None).await?;
        running.until_done("xa").await?;
        // Elsewhere they are of no concern, also if a checkpoint lies between their two halves.
        prepare("elsewhere", "other.t", 1).await?;
        prepare("back", "other.t", 2).await?;
        running.until_caught_up(&server).await?;
        let cut = running.cut().await?;
        running.stop().await?;
        let mut running = start(&config, SourceEnd::Never, Some(&cut)).await?;
        server.run(&["XA COMMIT 'elsewhere'", "XA ROLLBACK 'back'"]).await?;
        running.until_caught_up(&server).await?;
        server.run(&["XA COMMIT 'early'"]).await?;
        let error = running.until_its_error().await?;
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-xa"), "{error:?}");
        let mut running = start(&config, SourceEnd::Never, None).await?;
        running.until_done("xa").await?;
        prepare("late", "xa.t", 2).await?;
        let error = running.until_its_error().await?;
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, "mysql-xa"), "{error:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_in_latin1_are_not_missed() -> Result<()> {
    let name = "refuse_latin1";
    database(name, &["CREATE TABLE `t\u{e4}\u{20ac}` (id INT PRIMARY KEY)"]).await?;
    let mut running = start(&config(name), SourceEnd::Never, None).await?;
    running.until_done(name).await?;
    let mut connection = server().connect().await?;
    connection.query_drop("SET NAMES latin1").await?;
    connection.query_drop(b"ALTER TABLE refuse_latin1.`t\xe4\x80` ADD c INT".as_slice()).await?;
    let error = running.until_its_error().await?;
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Schema), "{error:?}");
    assert_eq!(error.table.map(|table| table.table), Some("t\u{e4}\u{20ac}".into()));
    Ok(())
}

/// Not all character sets are known here, and in some a character's second byte may be that of a backslash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_in_other_character_sets_are_not_missed() -> Result<()> {
    let by_statement = "SET SESSION binlog_format = 'STATEMENT'";
    let cases: [(&str, &str, &str, &[u8]); 10] = [
        ("sjis", "t", "", b"ALTER TABLE t COMMENT '\x95\x5c', ADD c INT, COMMENT '\x95\x5c'"),
        ("sjis", "\u{8868}t", "", b"ALTER TABLE `\x95\x5ct` ADD c INT"),
        ("cp1251", "\u{442}\u{416}", "", b"TRUNCATE TABLE `\xf2\xc6`"),
        ("cp1251", "\u{442}\u{416}", "", b"RENAME TABLE `\xf2\xc6` TO x"),
        ("cp1251", "\u{442}\u{416}", by_statement, b"DELETE FROM \xf2\xc6"),
        // Bytes that are UTF-8 too.
        ("cp1251", "\u{420}\u{b0}", "", b"DROP TABLE `\xd0\xb0`"),
        ("koi8r", "\u{442}1", "", b"TRUNCATE TABLE `\xd41`"),
        ("greek", "\u{3b1}", "", b"TRUNCATE TABLE `\xe1`"),
        ("ujis", "\u{3042}t", "", b"TRUNCATE TABLE `\xa4\xa2t`"),
        ("euckr", "\u{ac00}", "", b"TRUNCATE TABLE `\xb0\xa1`"),
    ];
    for (place, (set, table, before, statement)) in cases.into_iter().enumerate() {
        let name = format!("refuse_set_{place}");
        database(&name, &[&format!("CREATE TABLE `{table}` (id INT PRIMARY KEY)")]).await?;
        let mut running = start(&config(&name), SourceEnd::Never, None).await?;
        running.until_done(&name).await?;
        let mut connection = server().connect().await?;
        connection.query_drop(format!("USE {name}")).await?;
        for before in [before, &format!("SET NAMES {set}")].into_iter().filter(|before| !before.is_empty()) {
            connection.query_drop(before).await?;
        }
        connection.query_drop(statement).await?;
        let error = running.until_its_error().await.with_context(|| format!("{set} {table}"))?;
        let code = if before.is_empty() { "mysql-table-changed" } else { "mysql-statement-format" };
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Stop, code), "{set}: {error:?}");
        assert!(error.message.contains(&format!("{name}.{table}")), "{set}: {error:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_among_changing_tables_is_never_a_final_stop() -> Result<()> {
    let name = "refuse_changing";
    database(name, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await?;
    let changing: Vec<_> = ["x", "y", "z"].map(|table| tokio::spawn(come_and_go(table))).into();
    for _ in 0..40 {
        match start(&config(name), SourceEnd::Never, None).await {
            Ok(running) => running.kill().await,
            Err(error) => assert_eq!(error.verdict, Verdict::Restart, "{error:?}"),
        }
    }
    for task in changing {
        assert!(!task.is_finished(), "tables changed all the time");
        task.abort();
    }
    Ok(())
}

async fn come_and_go(table: &'static str) -> Result<()> {
    let mut connection = server().connect().await?;
    connection.query_drop("USE refuse_changing").await?;
    loop {
        connection.query_drop(format!("CREATE TABLE {table} (id INT PRIMARY KEY) ENGINE = MyISAM")).await?;
        connection.query_drop(format!("ALTER TABLE {table} ADD c INT")).await?;
        connection.query_drop(format!("DROP TABLE {table}")).await?;
    }
}
