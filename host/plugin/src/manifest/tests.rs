use serde_json::json;

use super::*;

fn manifest(schema: Value) -> Manifest {
    Manifest {
        name: "m".into(),
        version: "1".into(),
        description: String::new(),
        config_schema: schema,
        secrets: Vec::new(),
        wants: Vec::new(),
        state_version: 1,
        reads_state_from: 1,
    }
}

fn check(schema: Value, options: Value, expect: &[&str]) {
    let found = manifest(schema).checked().unwrap().check_options(options.as_object().unwrap());
    let said: Vec<_> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(said, expect);
}

#[test]
fn columns_that_options_name_are_told_without_patterns() {
    let columns = json!({"type": "array", "format": "columns"});
    let manifest = manifest(json!({"properties": {"hash": columns, "by": {"format": "columns"}, "to": {}}}));
    let options = json!({"hash": ["email", "*_id", 7], "by": "region", "to": "email2", "other": "x"});
    let named: Vec<_> = manifest.named_columns(options.as_object().unwrap()).collect();
    assert_eq!(named, [("by", "region"), ("hash", "email")]);
}

#[test]
fn nested_keys_are_named_as_in_toml() {
    let schema = json!({"properties": {"tables": {"type": "array", "items": {
        "type": "object", "required": ["name"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}}
    }}}});
    check(
        schema,
        json!({"tables": [{"name": 1}, {"nam": "x"}]}),
        &[
            "option tables.0.name: value is not of type \"string\"",
            "unknown option tables.1.nam",
            "option tables.1.name is missing",
        ],
    );
}

#[test]
fn values_do_not_stand_in_findings() {
    let schema = json!({"properties": {
        "mode": {"enum": ["a", "b"]}, "name": {"pattern": "^x$"}, "count": {"maximum": 5}, "flag": {"type": "boolean"}
    }});
    let options = json!({"mode": "canary", "name": "canary", "count": 77_777, "flag": "canary"});
    let found = manifest(schema).check_options(options.as_object().unwrap());
    assert_eq!(found.len(), 4, "{found:?}");
    let text = format!("{found:?}");
    assert!(!text.contains("canary") && !text.contains("77777"), "{text}");
}

#[test]
fn a_manifest_that_cannot_hold_is_refused() {
    let refused = |json: &str| Manifest::from_section(json.as_bytes()).unwrap_err();
    assert!(refused("{").contains("EOF"));
    assert!(refused(r#"{"name":"a","version":"1"}"#).contains("config-schema"));
    assert!(refused(r#"{"name":"","version":"1","config-schema":{}}"#).contains("empty"));
    assert!(refused(r#"{"name":"a","version":"1","config-schema":{"type":"strange"}}"#).contains("config-schema"));
    assert!(refused(r#"{"name":"a","version":"1","config-schema":"{"}"#).contains("not JSON"));
    let ahead = r#"{"name":"a","version":"1","config-schema":{},"state-version":1,"reads-state-from":2}"#;
    assert!(refused(ahead).contains("reads state from version 2"));
}

#[test]
fn targets_and_tables_that_options_name_are_told() {
    let schema = json!({"properties": {
        "to": {"format": "target"}, "others": {"format": "target"}, "values": {}, "keys": {"format": "tables"}
    }});
    let manifest = manifest(schema);
    let targets = |options: serde_json::Value| manifest.named_targets(options.as_object().unwrap());
    assert_eq!(targets(json!({"to": "o.a_{value}_x", "others": "o.a"})), ["o.a", "o.a_value_x"]);
    assert_eq!(targets(json!({"to": "o.a_{value}", "values": ["1", "b"]})), ["o.a_1", "o.a_b"]);
    assert_eq!(targets(json!({"to": "o.a_{value", "others": 3})), ["o.a_{value"]);
    let options = json!({"keys": {"a.b": ["c"], "*.d": []}, "to": {"x": 1}});
    let tables: Vec<_> = manifest.named_tables(options.as_object().unwrap()).collect();
    assert_eq!(tables, [("keys", "*.d"), ("keys", "a.b")]);
}

#[test]
fn a_schema_may_come_as_text() {
    let json = br#"{"name":"a","version":"1","config-schema":"{\"type\":\"object\"}"}"#;
    assert_eq!(Manifest::from_section(json).unwrap().config_schema, json!({"type": "object"}));
}

#[test]
fn a_misspelt_key_may_be_the_hosts_own() {
    let schema = json!({"properties": {"bucket": {}}, "additionalProperties": false});
    check(schema.clone(), json!({"paralelism": 2}), &["unknown option paralelism, did you mean parallelism?"]);
    check(schema.clone(), json!({"buckets": 2}), &["unknown option buckets, did you mean bucket?"]);
    check(schema, json!({"xyz": 2}), &["unknown option xyz"]);
}

#[test]
fn each_finding_names_its_key() {
    let schema = json!({"required": ["a"], "properties": {"b": {"properties": {"c": {"type": "string"}}}}});
    let found = manifest(schema).check_options(json!({"b": {"c": 1}}).as_object().unwrap());
    let keys: Vec<_> = found.iter().map(|finding| finding.option.as_str()).collect();
    assert_eq!(keys, ["b.c", "a"]);
}
