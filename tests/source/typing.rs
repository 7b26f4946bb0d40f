//! All types, in the snapshot and in the stream: both give what the server says, and the same of it.

use anyhow::Result;
use cdchost_connector::SourceEnd;

use super::collector::start;
use super::folding::differences;
use super::{config, database};

const COLUMNS: &str = "id BIGINT UNSIGNED PRIMARY KEY, i8 TINYINT, u8 TINYINT UNSIGNED, b TINYINT(1), i16 SMALLINT, \
    u16 SMALLINT UNSIGNED, i24 MEDIUMINT, u24 MEDIUMINT UNSIGNED, i32 INT, u32 INT UNSIGNED ZEROFILL, i64 BIGINT, \
    u64 BIGINT UNSIGNED, f FLOAT, d DOUBLE, d1 DECIMAL(18,4), d2 DECIMAL(38,10), d3 DECIMAL(65,30), d4 DECIMAL(5,5), \
    c CHAR(10), v VARCHAR(300), v3 VARCHAR(20) CHARACTER SET utf8, a CHAR(5) CHARACTER SET ascii, t TEXT, lt LONGTEXT, \
    bi BINARY(8), vb VARBINARY(300), bl BLOB, da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), dt DATETIME, dt6 DATETIME(6), \
    ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, y YEAR, e ENUM('a','it''s','ü',''), \
    s SET('x','y','z w','ä'), j JSON";

const ROWS: [&str; 6] = [
    "(1,-128,0,-1,-32768,0,-8388608,0,-2147483648,0,-9223372036854775808,0,-3.4e38,-1.7e308,-99999999999999.9999,\
     -9999999999999999999999999999.9999999999,-99999999999999999999999999999999999.999999999999999999999999999999,\
     -0.99999,'','','','','','','','','','1000-01-01','-838:59:59','-838:59:59.000','-00:00:00.000001',\
     '1000-01-01 00:00:00','1000-01-01 00:00:00.000001','1970-01-01 00:00:01','1970-01-01 00:00:01.001',0,'a','','null')",
    "(18446744073709551615,127,255,127,32767,65535,8388607,16777215,2147483647,4294967295,9223372036854775807,\
     18446744073709551615,16777217,0.1,99999999999999.9999,9999999999999999999999999999.9999999999,\
     99999999999999999999999999999999999.999999999999999999999999999999,0.99999,'größe 😀  ',REPEAT('ß',300),'日本語','ab ',\
     REPEAT('x',70000),REPEAT('é',1000),x'0102030405060700',REPEAT(x'00ff',150),REPEAT(x'00',70000),'9999-12-31','838:59:59',\
     '838:59:59.000','838:59:58.999999','9999-12-31 23:59:59','9999-12-31 23:59:59.999999','2038-01-19 03:14:07',\
     '2038-01-19 03:14:07.999',2155,'it''s','x,y,z w,ä','{\"a\":[1,2.5,\"x\\\\n\\\\u0001\"],\"b\":{\"c\":null}}')",
    "(3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,\
     NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
    "(4,0,1,0,0,1,-1,1,-1,1,-1,1,0.1,-0.0,0,0.0000000001,0.000000000000000000000000000001,0.00001,'  x','a\\0b','y','z','','',\
     x'00',x'',x'','2024-02-29','00:00:00','-00:00:00.001','12:34:56.789012','2024-02-29 12:34:56','2024-02-29 12:34:56.5',\
     '2001-09-09 01:46:40','2001-09-09 01:46:40.25',1901,'ü','z w','[]')",
    "(5,5,5,1,5,5,5,5,5,5,5,5,1e-10,1e100,123.4567,123.4567,-123.4567,0.5,'trailing   ','trailing   ','','','','',\
     x'ff',x'ff00',x'00ff','1582-10-10','-01:00:00','-12:00:00.5','-01:02:03.000004','1582-10-10 00:00:00',\
     '0001-01-01 00:00:00.000001','2024-06-01 00:00:00','2024-06-01 00:00:00',2024,'','x', \
     JSON_OBJECT('t',CAST('12:34:56.5' AS TIME(6)),'d',CAST('2024-01-02' AS DATE),'dt',CAST('2024-01-02 03:04:05' AS DATETIME),\
     'dec',CAST('1.50' AS DECIMAL(10,2)),'n',-1,'big',18446744073709551615,'f',1e300,'g',1.0,'bin',x'00ff10'))",
    "(6,6,6,1,6,6,6,6,6,6,6,6,6.5,6.25,6,6,6,0.6,'6','6','6','6','6','6',x'06',x'06',x'06','2006-06-06','06:06:06',\
     '06:06:06','06:06:06','2006-06-06 06:06:06','2006-06-06 06:06:06','2006-06-06 06:06:06','2006-06-06 06:06:06',2006,'a',\
     'x,z w',JSON_ARRAY(1e15,1e14,123456789012345678,0.1,1e-5,-2.5e-20,'\"',TRUE))",
];

/// Makes the table `t` and, outside of it, nothing.
async fn table(name: &str) -> Result<()> {
    database(name, &[&format!("CREATE TABLE t ({COLUMNS}) CHARSET=utf8mb4")]).await
}

fn inserts() -> Vec<String> {
    ROWS.iter().map(|row| format!("INSERT INTO t VALUES {row}")).collect()
}

async fn run_in(name: &str, statements: &[String]) -> Result<()> {
    let mut all = vec![format!("USE {name}"), "SET SESSION sql_mode = ''".to_owned()];
    all.extend_from_slice(statements);
    super::server().run(&all.iter().map(String::as_str).collect::<Vec<_>>()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_holds_what_the_server_says() -> Result<()> {
    table("types_snapshot").await?;
    run_in("types_snapshot", &inserts()).await?;
    let target = start(&config("types_snapshot"), SourceEnd::Snapshot, None).await?.until_the_end().await?;
    assert_eq!(differences("types_snapshot", &target).await?, Vec::<String>::new());
    assert_eq!(target.rows("types_snapshot", "t").len(), ROWS.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_holds_what_the_server_says() -> Result<()> {
    table("types_stream").await?;
    let mut running = start(&config("types_stream"), SourceEnd::Never, None).await?;
    run_in("types_stream", &inserts()).await?;
    running.until("all rows", |taken| (taken.target.log.len() >= ROWS.len()).then_some(())).await?;
    let target = running.stop().await?;
    assert_eq!(differences("types_stream", &target).await?, Vec::<String>::new());
    assert_eq!(target.rows("types_stream", "t").len(), ROWS.len());
    Ok(())
}
