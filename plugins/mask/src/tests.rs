use cdchost_sdk::harness::{Cell, Table, TransformHarness, check_readme_of};
use cdchost_sdk::row;
use serde_json::{Value, json};

use super::*;

const KEY: &str = "0123456789abcdef";

fn customers() -> Table {
    Table::new("shop.customers")
        .key("id", LogicalType::Int64)
        .column("email", LogicalType::Text { max: Some(50) })
        .column("postcode", LogicalType::Text { max: Some(10) })
        .column("born", LogicalType::Date)
}

fn mask(options: Value) -> Result<TransformHarness<Mask>> {
    TransformHarness::open(options)
}

fn hash(text: &str) -> String {
    let mut hash = String::new();
    Hmac::new(KEY.as_bytes()).hex(text.as_bytes(), &mut hash);
    hash
}

/// The rows that come out, without op and table.
fn rows(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["row"].clone()).collect()
}

#[test]
fn values_are_masked_and_null_stays_null() {
    let options =
        json!({ "key": KEY, "hash": ["email"], "redact": ["b*"], "truncate": ["post*"], "truncate-length": 2 });
    let mut mask = mask(options).unwrap();
    let output = mask.output(&customers()).unwrap();
    let types: Vec<_> = output.fields.iter().map(|field| field.ty.clone()).collect();
    let text = |max| LogicalType::Text { max: Some(max) };
    assert_eq!(types, [LogicalType::Int64, text(64), text(2), text(3)]);
    let native = |fields: &[Field]| fields.iter().map(|field| field.native_type.clone()).collect::<Vec<_>>();
    assert_eq!(native(&output.fields), native(&customers().schema().fields), "what the source has is said as it is");
    assert_eq!(output.primary_key, [0]);
    let input = customers().rows(1).insert(row![1, "a@b", "éàx", 0]).delete(row![2, Cell::Null, "x", Cell::Null]);
    let lines = mask.process(input).unwrap();
    let expect = [
        json!({ "id": 1, "email": hash("a@b"), "postcode": "éà", "born": "***" }),
        json!({ "id": 2, "email": null, "postcode": "x", "born": null }),
    ];
    assert_eq!(rows(&lines), expect);
}

#[test]
fn a_key_may_be_hashed_and_nothing_else() {
    let mut hashing = mask(json!({ "key": KEY, "hash": ["id"] })).unwrap();
    let output = hashing.output(&customers()).unwrap();
    assert_eq!((output.primary_key.as_slice(), output.fields[0].nullable), (&[0][..], false));
    let lines = hashing.process(customers().rows(1).insert(row![7, "", "", 0]).delete(row![7, "", "", 0])).unwrap();
    assert!(rows(&lines).iter().all(|row| row["id"] == hash("7")), "a delete finds the key of its insert");
    for options in [json!({ "redact": ["id"] }), json!({ "truncate": ["*"] })] {
        let error = mask(options).unwrap().output(&customers()).unwrap_err();
        assert_eq!(error.code, "key-not-told-apart");
        assert!(error.message.contains("column id"), "{error}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (options, code) in
        [(json!({ "hash": ["email"] }), "key-missing"), (json!({ "key": "short", "hash": ["email"] }), "key-too-short")]
    {
        assert_eq!(mask(options).unwrap_err().code, code);
    }
    for (options, code) in [
        (json!({ "truncate": ["born"] }), "column-is-no-text"),
        (json!({ "truncate": ["email"], "redact": ["e*"] }), "column-meant-twice"),
    ] {
        assert_eq!(mask(options).unwrap().output(&customers()).unwrap_err().code, code);
    }
}

#[test]
fn a_table_without_such_columns_passes_unseen() {
    let mut mask = mask(json!({ "redact": ["secret"] })).unwrap();
    assert_eq!(mask.output(&customers()).unwrap(), **customers().schema());
    let lines = mask.process(customers().rows(1).insert(row![1, "a", "b", 0])).unwrap();
    assert_eq!(rows(&lines), [json!({ "id": 1, "email": "a", "postcode": "b", "born": "1970-01-01" })]);
}

#[test]
fn the_readme_has_the_options_as_they_are() {
    check_readme_of(&Mask::manifest(), env!("CARGO_MANIFEST_DIR"));
}
