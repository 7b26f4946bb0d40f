//! A table that was read: its values by key.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use crate::reference::keys::Section;
use crate::{ByteSize, Secret};

/// A table read, defaults filled in. Where a key was wrong, its value is missing and a finding says why.
#[derive(Debug)]
pub(super) struct Node<'i> {
    pub(super) section: &'static Section,
    /// Its path in the file, e.g. `source.tls` or `sink.0`.
    pub(super) path: String,
    pub(super) values: BTreeMap<&'static str, Value<'i>>,
    /// Keys that are not the host's, in the order of their names.
    pub(super) others: Vec<(Spanned<String>, &'i Spanned<DeValue<'i>>)>,
}

/// A text, and whether it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) referred: bool,
    /// The file that holds all of it.
    pub(super) file: Option<PathBuf>,
    pub(super) span: Range<usize>,
}

/// The value of one key.
#[derive(Debug)]
pub(super) enum Value<'i> {
    Text(Text),
    Texts(Vec<Text>),
    Flag(bool),
    Number(u64),
    Duration(Duration),
    Table(Node<'i>),
    Tables(Vec<Node<'i>>),
    Named(BTreeMap<String, Node<'i>>),
}

impl Text {
    /// Whether the file holds the text itself, which a secret's should not.
    pub(super) fn stands_in_the_file(&self) -> bool {
        !self.referred && !self.text.is_empty()
    }

    pub(super) fn into_secret(self) -> Secret {
        Secret::of_file(self.text, self.file)
    }
}

impl<'i> Node<'i> {
    fn value(&self, key: &str) -> Option<&Value<'i>> {
        debug_assert!(self.section.keys.iter().any(|k| k.name == key), "{key} is not declared");
        self.values.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Option<&Text> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn string(&self, key: &str) -> String {
        self.text(key).map(|text| text.text.clone()).unwrap_or_default()
    }

    pub(super) fn secret(&self, key: &str) -> Secret {
        self.text(key).cloned().map(Text::into_secret).unwrap_or_else(|| Secret::new(""))
    }

    pub(super) fn texts(&self, key: &str) -> &[Text] {
        match self.value(key) {
            Some(Value::Texts(texts)) => texts,
            _ => &[],
        }
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// A declared count; its range is declared so that it fits.
    pub(super) fn count(&self, key: &str) -> u32 {
        self.number(key).and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    }

    pub(super) fn size(&self, key: &str) -> ByteSize {
        ByteSize(self.number(key).unwrap_or_default())
    }

    pub(super) fn duration(&self, key: &str) -> Duration {
        match self.value(key) {
            Some(Value::Duration(duration)) => *duration,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn table(&self, key: &str) -> Option<&Node<'i>> {
        match self.value(key) {
            Some(Value::Table(node)) => Some(node),
            _ => None,
        }
    }

    pub(super) fn tables(&self, key: &str) -> &[Node<'i>] {
        match self.value(key) {
            Some(Value::Tables(nodes)) => nodes,
            _ => &[],
        }
    }

    pub(super) fn named(&self, key: &str) -> impl Iterator<Item = (&String, &Node<'i>)> {
        match self.value(key) {
            Some(Value::Named(nodes)) => Some(nodes.iter()),
            _ => None,
        }
        .into_iter()
        .flatten()
    }
}
