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
    assert_eq!(found, expect);
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
    let text = found.join("\n");
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
fn a_schema_may_come_as_text() {
    let json = br#"{"name":"a","version":"1","config-schema":"{\"type\":\"object\"}"}"#;
    assert_eq!(Manifest::from_section(json).unwrap().config_schema, json!({"type": "object"}));
}

#[test]
fn distance_counts_edits() {
    for (one, other, edits) in
        [("", "", 0), ("abc", "abc", 0), ("abc", "ac", 1), ("kitten", "sitting", 3), ("", "ab", 2)]
    {
        assert_eq!(distance(one, other), edits, "{one} {other}");
    }
}
