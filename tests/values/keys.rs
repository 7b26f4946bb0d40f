//! Keys of every type, read page by page in the server's own order.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cdchost_config::{ByteSize, ChunkConfig, MysqlConfig, ZeroDate};
use cdchost_connector::SourceEnd;
use cdchost_tests::server::Server;
use libtest_mimic::Trial;

use super::observed::Shared;
use super::taken::Running;
use super::{Origin, config, database, run_in, same_as_server, trial};

/// Texts in an order of their own in most collations; pairs that differ in case or accent alone stand in no key that
/// would hold them for the same.
const TEXTS: &str =
    "'a','B','c ','D','éq','E','f','G','äq','Z','z1','_','0','10','9','ñ','Ñandú','ö','ss','ß1','x y','x-y','X','xa'";
const CHINESE: &str =
    "'a','B','中','国','中国','国中','北京','京','北','人','大','小','A1','上','下','一','二','三','四','五'";
const JAPANESE: &str =
    "'a','B','日','本','日本','ア','ｱ1','カ','カナ','ソ表','表','ひ','らが','な','東','京','東京','x'";

/// Name, type, values.
const KEYS: [(&str, &str, &str); 33] = [
    ("case_insensitive", "VARCHAR(20) COLLATE utf8mb4_general_ci", TEXTS),
    ("unicode", "VARCHAR(20) COLLATE utf8mb4_unicode_ci", TEXTS),
    (
        "binary_text",
        "VARCHAR(20) COLLATE utf8mb4_bin",
        "'a','A','c ','b','B','ä','Ä','ß','ss','😀','z','_','0','1','10','2'",
    ),
    ("three_bytes", "VARCHAR(20) CHARACTER SET utf8", TEXTS),
    ("ascii_text", "CHAR(10) CHARACTER SET ascii", "'a','B','c ','D','0','10','9','_','~','-','x y','x-y'"),
    ("latin1_text", "VARCHAR(20) CHARACTER SET latin1", TEXTS),
    (
        "latin1_german",
        "CHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci",
        "'a','äx','ae','b','o','ö1','oe','ß1','ss','st','u','ü1','z','€'",
    ),
    (
        "latin1_binary",
        "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin",
        "'a','A','ä','Ä','ß','ÿ','€','b','c','d','e','f'",
    ),
    (
        "latin2_czech",
        "VARCHAR(20) CHARACTER SET latin2 COLLATE latin2_czech_cs",
        "'a','á','b','c','č','d','ď','h','ch','i','z','ž'",
    ),
    ("gbk_text", "VARCHAR(20) CHARACTER SET gbk", CHINESE),
    ("gb2312_text", "VARCHAR(20) CHARACTER SET gb2312", CHINESE),
    ("big5_text", "VARCHAR(20) CHARACTER SET big5", "'a','中','國','許','功','蓋','許功','大','小','人','一','二'"),
    ("sjis_text", "CHAR(20) CHARACTER SET sjis", JAPANESE),
    (
        "cp932_binary",
        "VARCHAR(20) CHARACTER SET cp932 COLLATE cp932_bin",
        "_cp932 X'81CA',_cp932 X'EEF9',_cp932 X'8790',_cp932 X'81E0',_cp932 X'8754',_cp932 X'FA4A','a','b','日','本','髙','①'",
    ),
    ("ujis_text", "VARCHAR(20) CHARACTER SET ujis", JAPANESE),
    ("utf16_text", "VARCHAR(20) CHARACTER SET utf16", "'a','B','中','国','😀','x😁','é','Z','z1','0','1'"),
    (
        "utf16le_binary",
        "VARCHAR(20) CHARACTER SET utf16le COLLATE utf16le_bin",
        "'a','A','B','中','国','😀','é','Z','z1','0','1','9'",
    ),
    ("ucs2_text", "VARCHAR(20) CHARACTER SET ucs2", CHINESE),
    ("utf32_text", "VARCHAR(20) CHARACTER SET utf32", CHINESE),
    ("bytes", "VARBINARY(20)", "'a','A','b','a ',0x00,0x0000,0xFF,0xFF00,0x61FF,'ab','b ',0x80,'c','d'"),
    ("fixed_bytes", "BINARY(4)", "'a','A','b',0x01,0x0001,0xFF,0xFF01,0x61FF,'ab','b ',0x80,'c','d'"),
    ("label", "ENUM('z','y','x','ü','a','m')", "1,2,3,4,5,6,0"),
    ("label_latin1", "ENUM('z','ü','a') CHARACTER SET latin1", "1,2,3"),
    ("labels", "SET('c','b','a','ö')", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"),
    ("bits", "BIT(12)", "0,1,2,3,255,256,257,1024,2048,4095"),
    ("wide_bits", "BIT(64)", "0,1,2,9223372036854775807,9223372036854775808,18446744073709551615,255,256"),
    ("year", "YEAR", "0,1901,1970,1999,2000,2024,2155,1950"),
    ("signed", "MEDIUMINT", "-8388608,-1,0,1,8388607,5,-5,100,-100"),
    ("unsigned", "BIGINT UNSIGNED", "0,1,9223372036854775807,9223372036854775808,18446744073709551615,7,8,9"),
    (
        "exact",
        "DECIMAL(65,30)",
        "-1e34,-0.000000000000000000000000000001,0,1e-30,1,1.5,99999999999999999999999999999999999.999999999999999999999999999999",
    ),
    ("floating", "FLOAT", "-3.4e38,-1.5,-0.1,0,0.1,0.2,0.3,1e-40,16777217,1e10"),
    ("time", "TIME(3)", "'-838:59:59','-00:00:00.001','00:00:00','00:00:00.001','12:00:00','838:59:59'"),
    (
        "moment",
        "DATETIME(6)",
        "'0001-01-01 00:00:00','1000-01-01 00:00:00.000001','1970-01-01 00:00:00','2024-02-29 12:34:56.789012','9999-12-31 23:59:59.999999','0000-00-00 00:00:00'",
    ),
];

/// A test for each type: by itself, and as the first part of a key of two.
pub(crate) fn trials(origin: Origin, server: &Arc<Shared<Server>>) -> Vec<Trial> {
    let test = |(name, column, values): (&'static str, &'static str, &'static str)| {
        let server = Arc::clone(server);
        trial(format!("{}: key of {column}", origin.name), move || async move {
            pages(server.get()?, name, column, values).await
        })
    };
    KEYS.into_iter().map(test).collect()
}

async fn pages(server: &Server, name: &str, column: &str, values: &str) -> Result<()> {
    let name = format!("keys_{name}");
    let rows: Vec<&str> = values.split(',').collect();
    let insert = |number: usize| {
        let rows: Vec<String> = rows.iter().map(|value| format!("({value}, {number})")).collect();
        format!("INSERT INTO two VALUES {}", rows.join(", "))
    };
    let mut statements = vec![
        format!("CREATE TABLE one (k {column} NOT NULL PRIMARY KEY, n INT)"),
        format!("CREATE TABLE two (k {column} NOT NULL, n INT NOT NULL, PRIMARY KEY (k, n))"),
    ];
    statements.extend((0..4).map(insert));
    database(server, &name, &statements).await?;
    run_in(server, &name, &["INSERT INTO one SELECT * FROM two WHERE n = 0".to_owned()]).await?;
    let config = MysqlConfig {
        chunk: ChunkConfig { rows: 3, bytes: ByteSize(8 << 20) },
        zero_date: ZeroDate::Text,
        ..config(server, &name)
    };
    let taken = Running::start(&config, SourceEnd::Snapshot).await?.until_the_end().await?;
    ensure!(taken.events == 5 * rows.len(), "{} rows were read in place of {}", taken.events, 5 * rows.len());
    same_as_server(server, &name, &taken, true).await
}
