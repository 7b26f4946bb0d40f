//! A sink's options and grants, checked before anything runs.

use cdchost_config::Secret;
use cdchost_plugin::{Plugin, PluginSpec};
use cdchost_storage::Store;
use serde_json::json;

use crate::guest::Guest;
use crate::stage::{engine, load, spec};

const MANIFEST: &str = r#"{
  "name": "lake", "version": "2.0.0", "secrets": ["password"],
  "config-schema": {
    "type": "object", "additionalProperties": false, "required": ["warehouse", "password"],
    "properties": {
      "warehouse": {"type": "string", "description": "root and folder of the tables"},
      "buckets": {"type": "integer", "minimum": 1},
      "password": {"type": "string", "minLength": 8}
    }
  }
}"#;

async fn plugin() -> Plugin {
    load(&engine(), Guest::sink().manifest(MANIFEST)).await
}

fn with(options: serde_json::Value) -> PluginSpec {
    PluginSpec { options: options.as_object().unwrap().clone(), ..spec() }
}

fn findings(plugin: &Plugin, spec: PluginSpec) -> Vec<String> {
    plugin.sink(spec).map(|_| ()).map_err(|error| error.findings()).err().unwrap_or_default()
}

#[tokio::test]
async fn all_that_is_wrong_is_said_at_once_by_key_and_without_values() {
    let plugin = plugin().await;
    let mut spec = with(json!({"buckets": "canary-value", "warehous": "x"}));
    spec.secrets.insert("password".into(), Secret::new("canary"));
    spec.allow.tcp.insert("kafka:9092".into());
    spec.allow.store.insert("attic".into());
    let found = findings(&plugin, spec).join("\n");
    for words in [
        "sink lake: option buckets: ",
        "unknown option warehous, did you mean warehouse?",
        "option warehouse is missing: root and folder of the tables",
        "option password: ",
        "allow.tcp: plugins have no network access yet",
        "allow.store: there is no [storage.attic]",
    ] {
        assert!(found.contains(words), "{words:?} is missing in: {found}");
    }
    assert!(!found.contains("canary"), "{found}");
}

#[tokio::test]
async fn good_options_pass_and_secrets_count_as_given() {
    let plugin = plugin().await;
    let mut good = with(json!({"warehouse": "lake/wh", "buckets": 4}));
    good.secrets.insert("password".into(), Secret::new("long enough"));
    good.allow.store.insert("lake".into());
    good.stores.insert("lake".into(), Store::memory());
    assert_eq!(findings(&plugin, good.clone()), Vec::<String>::new());
    // In the open or by reference, as the file has it.
    good.secrets.clear();
    good.options.insert("password".into(), json!("long enough"));
    good.secrets.insert("warehouse".into(), Secret::new("lake/wh"));
    good.options.remove("warehouse");
    assert_eq!(findings(&plugin, good), Vec::<String>::new());
}
