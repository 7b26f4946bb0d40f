//! The server's type texts, one row each.

use super::ColumnKind as K;
use super::*;

fn labels(labels: &[&str]) -> Labels {
    labels.iter().map(|&label| label.into()).collect()
}

#[test]
fn type_texts_are_understood() {
    let rows = [
        ("tinyint", K::Integer { bytes: 1, unsigned: false }),
        ("tinyint(1)", K::Integer { bytes: 1, unsigned: false }),
        ("tinyint(3) unsigned", K::Integer { bytes: 1, unsigned: true }),
        ("smallint(5) unsigned zerofill", K::Integer { bytes: 2, unsigned: true }),
        ("mediumint unsigned", K::Integer { bytes: 3, unsigned: true }),
        ("int(11)", K::Integer { bytes: 4, unsigned: false }),
        ("bigint(20) unsigned", K::Integer { bytes: 8, unsigned: true }),
        ("float(7,3)", K::Float),
        ("double unsigned", K::Double),
        ("decimal(65,30)", K::Decimal { precision: 65, scale: 30 }),
        ("decimal(10,0) unsigned", K::Decimal { precision: 10, scale: 0 }),
        ("char(0)", K::Text { max: Some(0) }),
        ("varchar(255)", K::Text { max: Some(255) }),
        ("longtext", K::Text { max: None }),
        ("binary(16)", K::Binary { length: 16 }),
        ("varbinary(10)", K::Bytes { max: Some(10) }),
        ("blob", K::Bytes { max: None }),
        ("json", K::Json),
        ("date", K::Date),
        ("time(3)", K::Time { fraction: 3 }),
        ("datetime", K::Datetime { fraction: 0 }),
        ("timestamp(6)", K::Timestamp { fraction: 6 }),
        ("year(4)", K::Year),
        ("enum('a','it''s',',)','')", K::Enum(labels(&["a", "it's", ",)", ""]))),
        (
            r"enum('e\\f','n\nx','r\rx','z\0x','\Z','''')",
            K::Enum(labels(&["e\\f", "n\nx", "r\rx", "z\0x", "\u{1a}", "'"])),
        ),
        ("set('x','y')", K::Set(labels(&["x", "y"]))),
    ];
    for (text, kind) in rows {
        assert_eq!(K::parse(text), Some(kind), "{text}");
    }
}

#[test]
fn further_types_are_understood() {
    let rows = [
        ("bit(1)", K::Bit { bits: 1 }),
        ("bit(64)", K::Bit { bits: 64 }),
        ("geometry", K::Geometry),
        ("point", K::Geometry),
        ("geomcollection", K::Geometry),
        ("vector(3)", K::Vector { dimensions: 3 }),
        ("uuid", K::Shown(ShownBytes::Uuid)),
        ("inet6", K::Shown(ShownBytes::Inet6)),
        ("varchar(20) /*M!100301 COMPRESSED*/", K::Text { max: Some(20) }),
        ("datetime(2) /* mariadb-5.3 */", K::Datetime { fraction: 2 }),
        ("varchar(20) character set gbk collate gbk_chinese_ci", K::Text { max: Some(20) }),
        ("enum('a','b') character set latin1 collate latin1_bin", K::Enum(labels(&["a", "b"]))),
    ];
    for (text, kind) in rows {
        assert_eq!(K::parse(text), Some(kind), "{text}");
    }
}

#[test]
fn text_rules_stand_behind_the_type() {
    let rules = TextRules { charset: "gbk", collation: "gbk_bin" };
    for native in ["varchar(20)", "enum('x character set y collate z')"] {
        assert_eq!(TextRules::of(native), None);
        assert_eq!(TextRules::of(&rules.append_to(native)), Some(rules), "{native}");
    }
}

#[test]
fn other_types_are_not() {
    for text in ["bit(0)", "bit(65)", "xml", "vector", "", "enum(", "enum('a'", "decimal(66,0)", "int(", "time(7)"] {
        assert_eq!(K::parse(text), None, "{text}");
    }
}
