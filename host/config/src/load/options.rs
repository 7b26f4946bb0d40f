//! A plugin's own options: TOML to JSON, texts that came from references apart.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::node::Node;
use super::reader::Reader;
use super::words;
use crate::Secret;

/// The options of one plugin.
#[derive(Default)]
pub(super) struct Options {
    pub(super) options: Map<String, Value>,
    pub(super) secrets: BTreeMap<String, Secret>,
}

/// Turns the keys of a section that are not the host's into the plugin's options.
pub(super) fn collect(reader: &mut Reader<'_>, node: &Node<'_>) -> Options {
    let mut secrets = BTreeMap::new();
    let mut options = Map::new();
    for (name, value) in &node.others {
        let mut walk = Walk { reader: &mut *reader, section: &node.path, secrets: &mut secrets };
        if let Some(value) = walk.value(name.get_ref(), value, false) {
            options.insert(name.get_ref().clone(), value);
        }
    }
    Options { options, secrets }
}

struct Walk<'a, 'r> {
    reader: &'a mut Reader<'r>,
    section: &'a str,
    secrets: &'a mut BTreeMap<String, Secret>,
}

impl Walk<'_, '_> {
    /// The JSON of a value; none for what went to the secrets or is wrong.
    fn value(&mut self, path: &str, value: &Spanned<DeValue<'_>>, in_list: bool) -> Option<Value> {
        let span = value.span();
        self.reader.places.insert(format!("{}.{path}", self.section), self.reader.lines.place(&span));
        match value.get_ref() {
            DeValue::String(text) => {
                let text = self.reader.expand(text, &span)?;
                if !text.referred {
                    return Some(Value::String(text.text));
                }
                if in_list {
                    let message = format!("a reference inside the list of option `{}`", words::shown(path));
                    self.reader.error(&span, message, "give the option as a text of its own");
                    return None;
                }
                self.secrets.insert(path.to_owned(), Secret::new(text.text));
                None
            }
            DeValue::Integer(number) => {
                let signed = i64::from_str_radix(number.as_str(), number.radix()).ok().map(Number::from);
                let number =
                    signed.or_else(|| u64::from_str_radix(number.as_str(), number.radix()).ok().map(Number::from));
                self.number(path, &span, number)
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse::<f64>().ok().and_then(Number::from_f64);
                self.number(path, &span, number)
            }
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Datetime(time) => Some(Value::String(time.to_string())),
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.filter_map(|(index, item)| self.value(&format!("{path}.{index}"), item, true));
                Some(Value::Array(items.collect()))
            }
            DeValue::Table(table) => {
                let mut map = Map::new();
                for (name, item) in table {
                    let name = name.get_ref().as_ref();
                    if let Some(item) = self.value(&format!("{path}.{name}"), item, in_list) {
                        map.insert(name.to_owned(), item);
                    }
                }
                Some(Value::Object(map))
            }
        }
    }

    fn number(&mut self, path: &str, span: &std::ops::Range<usize>, number: Option<Number>) -> Option<Value> {
        if number.is_none() {
            let message = format!("option `{}` is a number that JSON cannot hold", words::shown(path));
            self.reader.error(span, message, "write a finite number of at most 64 bits");
        }
        number.map(Value::Number)
    }
}
