//! The configuration as it counts, defaults filled in, for people to read: what is secret or came from a reference is
//! masked.

use serde_json::{Map, Value, json};

use super::node::{Node, Text};
use crate::SinkConfig;
use crate::reference::keys::{Kind, Others};
use crate::units::show_duration;

const MASK: &str = "***";

/// A section as JSON, keyed as in the file. `sinks` are those of the file, for their own options.
pub(super) fn section(node: &Node<'_>, sinks: &[SinkConfig]) -> Value {
    let mut shown = Map::new();
    for key in node.section.keys {
        let value = match key.kind {
            Kind::Table(_) => node.table(key.name).map(|inner| section(inner, sinks)),
            Kind::Tables(_) => Some(tables(node.tables(key.name), sinks)),
            Kind::Named(_) => {
                Some(node.named(key.name).map(|(name, inner)| (name.clone(), section(inner, sinks))).collect())
            }
            Kind::Secret => node.text(key.name).map(|_| json!(MASK)),
            Kind::Flag => node.flag(key.name).map(Value::Bool),
            Kind::Count { .. } => node.number(key.name).map(Value::from),
            Kind::Size { .. } => node.number(key.name).map(|_| json!(node.size(key.name).to_string())),
            Kind::Duration { .. } => Some(json!(show_duration(node.duration(key.name)))),
            Kind::Texts => Some(node.texts(key.name).iter().map(text).collect()),
            Kind::Text | Kind::Name | Kind::Digest | Kind::Path | Kind::Choice { .. } => node.text(key.name).map(text),
        };
        shown.extend(value.map(|value| (key.name.to_owned(), value)));
    }
    Value::Object(shown)
}

fn tables(nodes: &[Node<'_>], sinks: &[SinkConfig]) -> Value {
    let tables = nodes.iter().enumerate().map(|(index, node)| {
        let mut shown = section(node, sinks);
        if let (Others::Plugin, Some(sink), Some(map)) = (node.section.others, sinks.get(index), shown.as_object_mut())
        {
            map.extend(sink.options.clone());
            map.extend(sink.secrets.keys().map(|name| (name.clone(), json!(MASK))));
        }
        shown
    });
    tables.collect()
}

fn text(text: &Text) -> Value {
    if text.referred { json!(MASK) } else { json!(text.text) }
}
