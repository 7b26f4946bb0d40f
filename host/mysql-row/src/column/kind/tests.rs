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
        ("set('x','y')", K::Set(labels(&["x", "y"]))),
    ];
    for (text, kind) in rows {
        assert_eq!(K::parse(text), Some(kind), "{text}");
    }
}

#[test]
fn other_types_are_not() {
    for text in
        ["bit(8)", "geometry", "point", "vector(3)", "", "enum(", "enum('a'", "decimal(66,0)", "int(", "time(7)"]
    {
        assert_eq!(K::parse(text), None, "{text}");
    }
}
