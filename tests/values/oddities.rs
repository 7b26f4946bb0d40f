//! What the log has beyond plain values: documents in part, columns that the server hides, labels that it cannot show,
//! text that is none.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cdchost_connector::SourceEnd;
use cdchost_tests::server::Server;
use libtest_mimic::Trial;

use super::observed::Shared;
use super::taken::Running;
use super::{Origin, config, database, run_in, same_as_server, trial};

/// A table, what the snapshot reads of it, what the log says, and how many rows and changes that is in all.
struct Story {
    name: &'static str,
    /// Servers that can do it.
    family: &'static str,
    before: &'static [&'static str],
    changes: &'static [&'static str],
    events: usize,
}

const STORIES: [Story; 6] = [
    Story {
        name: "documents in part",
        family: "mysql",
        before: &[
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), doc JSON, doc2 JSON, g INT AS (JSON_LENGTH(doc)))",
            "INSERT INTO t (id, a, doc, doc2) VALUES (1, 'one', '{\"name\":\"Monica\",\"tags\":[\"x\",\"yyyyyyyyyyyy\"],\"n\":1}', '{\"keep\":true}'),
             (2, 'two', '{\"a\":\"aaaaaaaaaaaaa\",\"c\":\"ccccccccccccc\",\"ab\":[\"abababab\",\"bababab\"]}', NULL),
             (3, 'three', '[1,2,3,4,[5,{\"deep\":[6]}]]', '{}'), (4, NULL, '{\"ключ\":\"значение\",\"q\\\\\"uote.d\":{\"[x]\":[1.5,true,null]}}', '[]'),
             (5, 'big', JSON_OBJECT('k', REPEAT('x', 70000), 'l', JSON_ARRAY(1, 2)), JSON_ARRAY())",
        ],
        changes: &[
            "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            "UPDATE t SET doc = JSON_SET(doc, '$.name', 'Mon') WHERE id = 1",
            "UPDATE t SET doc = JSON_REPLACE(doc, '$.tags[1]', 'z'), a = 'one2' WHERE id = 1",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.c'), doc2 = JSON_OBJECT('new', 1) WHERE id = 2",
            "UPDATE t SET doc = JSON_ARRAY_INSERT(doc, '$[1]', 99) WHERE id = 3",
            "UPDATE t SET doc = JSON_ARRAY_APPEND(doc, '$[5][1].deep', JSON_OBJECT('x', 1e-5)) WHERE id = 3",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$[5][0]', '$[0]') WHERE id = 3",
            "UPDATE t SET doc = JSON_SET(doc, '$.ab', JSON_ARRAY('ab_updated'), '$.aa', 1, '$.b', 2) WHERE id = 2",
            "UPDATE t SET doc = JSON_SET(doc, '$.\"q\\\\\"uote.d\".\"[x]\"[1]', CAST('2024-01-02' AS DATE), '$.\"ключ\"', 'ß') WHERE id = 4",
            "UPDATE t SET doc = JSON_INSERT(doc, '$.\"new.key\"', CAST(1.50 AS DECIMAL(10,2)), '$.\"\"', 'empty') WHERE id = 4",
            "UPDATE t SET doc = JSON_SET(doc, '$.l[2]', 3, '$.m', REPEAT('y', 300)) WHERE id = 5",
            "UPDATE t SET a = 'no document touched' WHERE id = 3",
            "UPDATE t SET doc = NULL, doc2 = JSON_SET(doc2, '$.keep', FALSE) WHERE id = 1",
            "UPDATE t SET doc = '{}', doc2 = NULL WHERE id = 1",
            "SET SESSION binlog_row_value_options = ''",
            "UPDATE t SET doc = JSON_SET(doc, '$.n', 2) WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
        ],
        events: 5 + 14 + 1,
    },
    Story {
        name: "documents in part, by paths of all spellings",
        family: "mysql",
        before: &[
            "CREATE TABLE t (id INT PRIMARY KEY, doc JSON)",
            r#"INSERT INTO t VALUES
             (1, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (2, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (3, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (4, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (5, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (6, '{"a":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (7, '{"a":[],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (8, '[[1,2],[3,[4,5]],{"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]'),
             (9, '{"a":[[1,2,3],[4,5,6]],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (10, '{"x":{"y":[{"z":[1,2,3]},{"z":[4]}]},"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (11, '{"a":[{"n":1},{"n":2}],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (12, '{"a":5,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (13, '{"a":5,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (14, '{"a":5,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (15, '{"a":{"b":[1,2]},"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (16, '{"to":1,"last":[1,2,3],"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (17, '{"é\\"q\\\\ \\n":{"ключ":[1,2]},"$x1":1,"1a":2,"a b":{"":3},"😀":4,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
             (18, '{"a\\u2028b":1,"z\\u200d":1,"\\u007f":1,"\\u0000":1,"\\u001f":1,"/":1,"\\t\\b\\f\\r":1,"$[0]":1,"$":1,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}')"#,
        ],
        changes: &[
            "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[last]') WHERE id = 1",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[ last - 1 ]') WHERE id = 2",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last]', 9, '$.a[last-2]', 'eight') WHERE id = 3",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[last]', '$.a[last]') WHERE id = 4",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last-9]', 79) WHERE id = 5",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last-3]', 79, '$.a[9]', 80) WHERE id = 6",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last]', 1, '$.a[last-1]', 2, '$.a[last-2]', 3, '$.a[1]', 4) WHERE id = 7",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[last-2]', '$.a[last-2]') WHERE id = 7",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$[1][last][last-1]', '$[last-2][0]') WHERE id = 8",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[last][last-1]', '$.a[last][last]', '$.a[last-1][0]') WHERE id = 9",
            "UPDATE t SET doc = JSON_REMOVE(JSON_SET(doc, '$.x.y[last].z[last]', 5, '$.x.y[0].z[0]', 11, '$.x.new', JSON_OBJECT('k', 1), '$.x.new.l', 2), '$.x.y[last-1].z[last]') WHERE id = 10",
            "UPDATE t SET doc = JSON_REMOVE(JSON_SET(JSON_REPLACE(doc, '$.a[last].n', 20), '$.a[0].m', 1), '$.a[last-1].n') WHERE id = 11",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[0]', 6) WHERE id = 12",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last]', 7) WHERE id = 12",
            "UPDATE t SET doc = JSON_REPLACE(doc, '$[0].a[last]', 8) WHERE id = 12",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[last-3]', 8, '$.a[last]', 9) WHERE id = 12",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$[last].a[last][0]') WHERE id = 12",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[1]', 8) WHERE id = 13",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[0]', '$.pad') WHERE id = 14",
            "UPDATE t SET doc = JSON_SET(doc, '$.a[0].b[last]', 2.5, '$[last].a[last][0].c', 3) WHERE id = 15",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.a[last].b[last]', '$.a[0][0].b[last][0]') WHERE id = 15",
            "UPDATE t SET doc = JSON_SET(doc, '$.to', 3, '$.last[last]', JSON_ARRAY(882516754398678.25e0, 1234567890123456.8e0)) WHERE id = 16",
            "UPDATE t SET doc = JSON_REMOVE(doc, '$.last[0]', '$.last[last][last-1]') WHERE id = 16",
            r#"UPDATE t SET doc = JSON_SET(doc, '$ . "\\u00e9\\"q\\\\ \\n" . "ключ" [ last ]', 5, '$.$x1', 2, '$."1a"', 3, '$ ."a b".""', 4, '$."\\ud83d\\ude00"', 6) WHERE id = 17"#,
            r#"UPDATE t SET doc = JSON_SET(doc, '$."a\\u2028b"', 2, '$."z\\u200d"', 3, '$."\\u007f"', 5, '$."\\u0000"', 6, '$."\\u001f"', 7) WHERE id = 18"#,
            r#"UPDATE t SET doc = JSON_SET(doc, '$."\\/"', 8, '$."\\t\\b\\f\\r"', 10, '$.$', 12, '$."$[0]"', 14) WHERE id = 18"#,
            r#"UPDATE t SET doc = JSON_REMOVE(doc, '$."\\u0000"', '$ . "\\/"[0]', '$."a\\u2028b"') WHERE id = 18"#,
        ],
        events: 18 + 27,
    },
    Story {
        name: "columns of functional indexes",
        family: "mysql",
        before: &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), v INT AS (a * 2) VIRTUAL, s INT AS (a * 3) STORED, \
             INDEX ((a + 1)), INDEX ((UPPER(b))))",
            "CREATE TABLE later (id INT PRIMARY KEY, a INT, b VARCHAR(10))",
            "INSERT INTO t (id, a, b) VALUES (1, 2, 'x'), (2, NULL, NULL)",
            "INSERT INTO later VALUES (1, 2, 'x')",
        ],
        changes: &[
            "INSERT INTO t (id, a, b) VALUES (3, 4, 'y')",
            "UPDATE t SET a = a + 10, b = 'z'",
            "ALTER TABLE later ADD INDEX ((a + 1))",
            "INSERT INTO later VALUES (2, 3, 'y')",
            "UPDATE later SET b = 'w'",
            "DELETE FROM t WHERE id = 1",
        ],
        events: 2 + 1 + 1 + 3 + 1 + 2 + 1,
    },
    Story {
        name: "labels that the server shows with a question mark",
        family: "mysql",
        before: &[
            "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a😀', 'b?', 'ü'), s SET('x😀', 'ä', '?'), l ENUM('é?') CHARACTER SET latin1)",
            "INSERT INTO t VALUES (1, 1, 7, 1), (2, 2, 4, 0)",
        ],
        changes: &["INSERT INTO t VALUES (3, 1, 1, 1), (4, 2, 6, 1)", "UPDATE t SET e = 3, s = 5"],
        events: 2 + 2 + 4,
    },
    Story {
        name: "labels that the server writes behind a backslash",
        family: "",
        before: &[
            r#"CREATE TABLE t (id INT PRIMARY KEY,
                e ENUM('e\\f', 'n\nx', 'r\rx', 'z\0x', 't\tx', 'it''s', 'c"d', '\\', '\Z'),
                s SET('a\\b', '\'', 'n\n') CHARACTER SET latin1)"#,
            "INSERT INTO t VALUES (1, 1, 1), (2, 2, 7), (3, 3, 2), (4, 4, 4), (5, 5, NULL)",
        ],
        changes: &[
            "INSERT INTO t VALUES (6, 6, 3), (7, 7, 5), (8, 8, 6), (9, 9, 0), (10, 4, 1)",
            "UPDATE t SET e = 2, s = 3 WHERE id < 3",
        ],
        events: 5 + 5 + 2,
    },
    Story {
        name: "more than 255 labels",
        family: "",
        before: &[
            "SET @labels = (SELECT GROUP_CONCAT(CONCAT('''l', n, '''') ORDER BY n) FROM (SELECT a.d * 100 + b.d * 10 + c.d AS n FROM \
             (SELECT 0 AS d UNION SELECT 1 UNION SELECT 2) AS a JOIN (SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 \
             UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) AS b JOIN (SELECT 0 AS d \
             UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 \
             UNION SELECT 9) AS c) AS numbers)",
            "SET @create = CONCAT('CREATE TABLE t (id INT PRIMARY KEY, e ENUM(', @labels, '))')",
            "PREPARE made FROM @create",
            "EXECUTE made",
            "INSERT INTO t VALUES (1, 1), (2, 255), (3, 256), (4, 300), (5, 0), (6, NULL)",
        ],
        changes: &["INSERT INTO t SELECT id + 10, e FROM t", "UPDATE t SET e = 257 WHERE id > 10"],
        events: 6 + 6 + 6,
    },
];

/// A test for each story, and those of text that is none.
pub(crate) fn trials(origin: Origin, server: &Arc<Shared<Server>>) -> Vec<Trial> {
    let told = STORIES.iter().filter(|story| story.family.is_empty() || story.family == origin.family);
    let mut trials: Vec<Trial> = told
        .enumerate()
        .map(|(number, story)| {
            let server = Arc::clone(server);
            trial(format!("{}: {}", origin.name, story.name), move || async move {
                tell(server.get()?, &format!("story_{number}"), story).await
            })
        })
        .collect();
    let server = Arc::clone(server);
    trials.push(trial(format!("{}: text without characters stops", origin.name), move || async move {
        unmapped(server.get()?).await
    }));
    trials
}

async fn tell(server: &Server, name: &str, story: &'static Story) -> Result<()> {
    let owned = |statements: &[&str]| statements.iter().map(ToString::to_string).collect::<Vec<_>>();
    database(server, name, &owned(story.before)).await?;
    let mut running = Running::start(&config(server, name), SourceEnd::Never).await?;
    running.until_read().await?;
    run_in(server, name, &owned(story.changes)).await?;
    running.until_events(story.events).await?;
    let taken = running.stop().await?;
    ensure!(taken.events == story.events, "{} rows and changes in place of {}", taken.events, story.events);
    same_as_server(server, name, &taken, false).await
}

/// Bytes that are a code of the set, but no character: named in both phases, without the value.
async fn unmapped(server: &Server) -> Result<()> {
    let name = "unmapped";
    let insert = "INSERT INTO t VALUES (7, CONVERT(x'81AD' USING sjis))".to_owned();
    let create = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(5) CHARACTER SET sjis)".to_owned();
    for in_snapshot in [true, false] {
        database(server, name, std::slice::from_ref(&create)).await?;
        if in_snapshot {
            run_in(server, name, std::slice::from_ref(&insert)).await?;
        }
        let mut running = Running::start(&config(server, name), SourceEnd::Never).await?;
        if !in_snapshot {
            running.until_read().await?;
            run_in(server, name, std::slice::from_ref(&insert)).await?;
        }
        let error = running.until_its_error().await?;
        ensure!(error.code == "mysql-invalid-text", "{error:?}");
        let said = format!("{} | {}", error.message, error.instruction);
        for part in ["unmapped.t", "`v`", "USING sjis"] {
            ensure!(said.contains(part), "{part} is not in: {said}");
        }
        ensure!(!said.contains("81AD") && !said.contains("81ad"), "a value is in: {said}");
    }
    Ok(())
}
