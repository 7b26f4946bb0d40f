//! Whole character sets: every code that is a character, in rows by their higher bytes.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cdchost_tests::server::Server;
use libtest_mimic::Trial;

use super::observed::{Filled, Shared, shared};
use super::{Origin, looks};

/// Sets of one byte a character.
const SINGLE: [&str; 25] = [
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek",
    "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "swe7",
    "tis620",
];
/// Sets of one byte or two, and those with codes of three bytes besides.
const DOUBLE: [&str; 8] = ["big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ujis", "eucjpms"];
const TRIPLE: [&str; 2] = ["ujis", "eucjpms"];
/// Sets whose characters are told from Unicode: the first code of each row of 256, and how many rows.
const UNICODE: [(&str, &[(u32, u32)]); 7] = [
    ("gb18030", &[(0, 256), (0x1_0000, 16), (0x2_F800, 4), (0x10_FF00, 1)]),
    ("ucs2", &[(0, 256)]),
    ("utf16", &[(0, 256), (0x1_F600, 4), (0x10_FF00, 1)]),
    ("utf16le", &[(0, 256), (0x1_F600, 4), (0x10_FF00, 1)]),
    ("utf32", &[(0, 256), (0x1_F600, 4), (0x10_FF00, 1)]),
    ("utf8", &[(0, 256)]),
    ("utf8mb4", &[(0, 256), (0x1_F600, 4), (0x10_FF00, 1)]),
];
/// Sets that a family does not have.
const LACKING: [(&str, &str); 1] = [("mariadb", "gb18030")];

/// A test for each set.
pub(crate) fn trials(origin: Origin, server: &Arc<Shared<Server>>) -> Vec<Trial> {
    let sets = SINGLE.iter().chain(&DOUBLE).copied().chain(UNICODE.map(|(name, _)| name));
    let sets: Vec<&str> = sets.filter(|name| !LACKING.contains(&(origin.family, name))).collect();
    let tables = sets.iter().map(|name| table(name)).collect();
    let observed = shared(server, "charsets", tables, false);
    let test = |name: &'static str| {
        let observed = Arc::clone(&observed);
        looks(format!("{}: all of {name}", origin.name), move || check(observed.get()?, name))
    };
    sets.into_iter().map(test).collect()
}

fn check(observed: &super::observed::Observed, name: &str) -> Result<()> {
    let rows = observed.read(name);
    // MariaDB takes fewer codes of sjis and cp932 for characters.
    let expected = if SINGLE.contains(&name) { 1 } else { 40 };
    ensure!(rows.len() >= expected, "only {} rows", rows.len());
    rows.into_iter().try_for_each(|id| observed.check(name, id))
}

fn table(name: &str) -> Filled {
    let insert = match UNICODE.iter().find(|(set, _)| *set == name) {
        Some((_, blocks)) => from_unicode(name, blocks),
        None => from_codes(name),
    };
    Filled { name: name.to_owned(), column: format!("LONGTEXT CHARACTER SET {name}"), insert }
}

/// All codes that are one character each.
fn from_codes(name: &str) -> String {
    let mut ranges = vec![(0, 0xFF)];
    if DOUBLE.contains(&name) {
        ranges.push((0x8000, 0xFFFF));
    }
    if TRIPLE.contains(&name) {
        ranges.push((0x8F_8000, 0x8F_FFFF));
    }
    let ranges: Vec<String> = ranges.iter().map(|(first, last)| numbers(*first, last - first + 1)).collect();
    format!(
        "INSERT INTO {name} (id, v) SELECT {{id}} + code DIV 256, \
         GROUP_CONCAT(CONVERT(CHAR(code) USING {name}) ORDER BY code SEPARATOR '') FROM ({}) AS codes \
         WHERE HEX(CONVERT(CONVERT(CHAR(code) USING {name}) USING utf32)) NOT IN ('0000003F', '') \
         AND LENGTH(CONVERT(CONVERT(CHAR(code) USING {name}) USING utf32)) = 4 GROUP BY code DIV 256",
        ranges.join(" UNION ALL ")
    )
}

/// All characters of blocks of Unicode that the set has.
fn from_unicode(name: &str, blocks: &[(u32, u32)]) -> String {
    let blocks: Vec<String> = blocks.iter().map(|(first, rows)| numbers(*first, rows * 256)).collect();
    let character = "CONVERT(UNHEX(LPAD(HEX(code), 8, '0')) USING utf32)";
    format!(
        "INSERT INTO {name} (id, v) SELECT {{id}} + code DIV 256, \
         GROUP_CONCAT(CONVERT({character} USING {name}) ORDER BY code SEPARATOR '') FROM ({}) AS codes \
         WHERE code NOT BETWEEN 0xD800 AND 0xDFFF AND CONVERT(CONVERT({character} USING {name}) USING utf32) = {character} \
         COLLATE utf32_bin GROUP BY code DIV 256",
        blocks.join(" UNION ALL ")
    )
}

/// A query for so many numbers, at most 65,536, from one on.
fn numbers(first: u32, count: u32) -> String {
    let digits: Vec<String> = (0..16).map(|digit| format!("SELECT {digit} AS d")).collect();
    let digits = digits.join(" UNION ALL ");
    format!(
        "SELECT code FROM (SELECT {first} + a.d * 4096 + b.d * 256 + c.d * 16 + e.d AS code \
         FROM ({digits}) AS a JOIN ({digits}) AS b JOIN ({digits}) AS c JOIN ({digits}) AS e) AS all_{first} \
         WHERE code < {}",
        first + count
    )
}
