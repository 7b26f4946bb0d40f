//! The configuration as it counts, defaults filled in, for people to read: what is secret or came from a reference is
//! masked.

use serde_json::{Map, Value, json};

use super::node::{Node, Text};
use crate::PipelineConfig;
use crate::reference::keys::{Kind, Others};
use crate::units::show_duration;

const MASK: &str = "***";

/// A section as JSON, keyed as in the file. The plugins' own options are those of `config`.
pub(super) fn section(node: &Node<'_>, config: &PipelineConfig) -> Value {
    let mut shown = Map::new();
    for key in node.section.keys {
        let value = match key.kind {
            Kind::Table(_) => node.table(key.name).map(|inner| section(inner, config)),
            Kind::Tables(_) => Some(tables(node.tables(key.name), key.name, config)),
            Kind::Named(_) => {
                Some(node.named(key.name).map(|(name, inner)| (name.clone(), section(inner, config))).collect())
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

fn tables(nodes: &[Node<'_>], name: &str, config: &PipelineConfig) -> Value {
    let tables = nodes.iter().enumerate().map(|(index, node)| {
        let mut shown = section(node, config);
        let own = match name {
            "transform" => config.transforms.get(index).map(|step| (&step.options, &step.secrets)),
            "route" => config.routes.get(index).map(|step| (&step.options, &step.secrets)),
            _ => config.sinks.get(index).map(|sink| (&sink.options, &sink.secrets)),
        };
        if let (Others::Plugin, Some((options, secrets)), Some(map)) = (node.section.others, own, shown.as_object_mut())
        {
            map.extend(options.clone());
            map.extend(secrets.keys().map(|name| (name.clone(), json!(MASK))));
        }
        shown
    });
    tables.collect()
}

fn text(text: &Text) -> Value {
    if text.referred { json!(MASK) } else { json!(text.text) }
}
