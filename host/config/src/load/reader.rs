//! Reads a TOML table against its declared keys and notes everything that is wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::interpolate::{Expanded, Lookup, expand};
use super::node::{Node, Text, Value};
use super::words;
use crate::finding::Lines;
use crate::reference::keys::{Absent, Key, Kind, Others, Section};
use crate::units::{parse_duration, show_duration};
use crate::{ByteSize, Finding, Place, Places};

/// What the reading of one file gathers.
pub(super) struct Reader<'a> {
    pub(super) lines: Lines<'a>,
    pub(super) base: &'a Path,
    pub(super) lookup: &'a dyn Lookup,
    pub(super) findings: Vec<Finding>,
    pub(super) places: Places,
}

impl Reader<'_> {
    pub(super) fn error(&mut self, span: &Range<usize>, message: String, instruction: impl Into<String>) {
        let place = self.lines.place(span);
        self.findings.push(Finding::error(message, instruction).at(Some(place)));
    }

    pub(super) fn warning(&mut self, place: Option<Place>, message: &str, instruction: &str) {
        self.findings.push(Finding::warning(message, instruction).at(place));
    }

    /// Reads a table that stands in the file, beginning at `span`.
    pub(super) fn node<'i>(
        &mut self,
        section: &'static Section,
        path: &str,
        span: &Range<usize>,
        table: &'i DeTable<'i>,
    ) -> Node<'i> {
        let mut node = Node { section, path: path.to_owned(), values: BTreeMap::new(), others: Vec::new() };
        for (name, value) in table {
            let (word, at) = (name.get_ref().as_ref(), name.span());
            self.places.insert(join(path, word), self.lines.place(&at));
            match section.keys.iter().find(|key| key.name == word) {
                Some(key) => {
                    let read = self.value(section, key, &join(path, word), value, &at);
                    node.values.extend(read.map(|read| (key.name, read)));
                }
                None => self.other(&mut node, word, at, value),
            }
        }
        for key in section.keys.iter().filter(|key| !table.contains_key(key.name)) {
            let read = self.absent(section, key, path, span);
            node.values.extend(read.map(|read| (key.name, read)));
        }
        node
    }

    fn other<'i>(&mut self, node: &mut Node<'i>, word: &str, at: Range<usize>, value: &'i Spanned<DeValue<'i>>) {
        let section = node.section;
        if let Some((_, instruction)) = section.not_offered.iter().find(|(name, _)| *name == word) {
            self.error(
                &at,
                format!("`{word}` in {} is not offered yet", words::title(section, &node.path)),
                *instruction,
            );
        } else if section.others == Others::Plugin {
            node.others.push((Spanned::new(at, word.to_owned()), value));
        } else {
            let instruction = words::for_unknown(section, word);
            let title = words::title(section, &node.path);
            self.error(&at, format!("unknown key `{}` in {title}", words::shown(word)), instruction);
        }
    }

    fn absent<'i>(
        &mut self,
        section: &'static Section,
        key: &'static Key,
        path: &str,
        span: &Range<usize>,
    ) -> Option<Value<'i>> {
        match (key.kind, key.absent) {
            (Kind::Table(inner), Absent::Means(_) | Absent::Default(_)) => {
                Some(Value::Table(self.defaults(inner, &join(path, key.name))))
            }
            (Kind::Table(inner) | Kind::Tables(inner) | Kind::Named(inner), Absent::Required) => {
                self.error(span, format!("{} is missing", inner.name), words::for_missing_section(inner));
                None
            }
            (_, Absent::Required) => {
                let message = format!("`{}` is missing in {}", key.name, words::title(section, path));
                self.error(span, message, format!("add it: {}", words::plain(key.about)));
                None
            }
            (kind, Absent::Default(text)) => default_value(kind, text),
            (_, Absent::Means(_)) => None,
        }
    }

    /// A table that is not in the file and need not be.
    fn defaults<'i>(&mut self, section: &'static Section, path: &str) -> Node<'i> {
        let mut node = Node { section, path: path.to_owned(), values: BTreeMap::new(), others: Vec::new() };
        for key in section.keys {
            let read = self.absent(section, key, path, &(0..0));
            node.values.extend(read.map(|read| (key.name, read)));
        }
        node
    }

    fn value<'i>(
        &mut self,
        section: &'static Section,
        key: &'static Key,
        path: &str,
        value: &'i Spanned<DeValue<'i>>,
        at: &Range<usize>,
    ) -> Option<Value<'i>> {
        let span = value.span();
        let complain = Complaint { title: words::title(section, path), key, span: span.clone() };
        match (key.kind, value.get_ref()) {
            (Kind::Table(inner), DeValue::Table(table)) => Some(Value::Table(self.node(inner, path, at, table))),
            (Kind::Tables(inner), DeValue::Array(array)) => self.tables(inner, path, array, &complain),
            (Kind::Named(inner), DeValue::Table(table)) => self.named(inner, path, table),
            (Kind::Flag, DeValue::Boolean(flag)) => Some(Value::Flag(*flag)),
            (Kind::Count { min, max }, DeValue::Integer(number)) => {
                let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
                let fits = read.filter(|number| (min..=max).contains(number));
                if fits.is_none() {
                    self.complain(&complain, &format!("is out of range: {number}"));
                }
                fits.map(Value::Number)
            }
            (Kind::Texts, DeValue::Array(array)) => {
                let texts = array.iter().filter_map(|item| self.item(&complain, item)).collect::<Vec<_>>();
                if array.is_empty() {
                    self.complain(&complain, "is empty");
                }
                Some(Value::Texts(texts))
            }
            (kind, DeValue::String(text)) if takes_text(kind) => {
                let text = self.expand(text, &span)?;
                self.checked_text(&complain, text)
            }
            (_, found) => {
                self.complain(&complain, &format!("is {}", words::found(found)));
                None
            }
        }
    }

    fn tables<'i>(
        &mut self,
        section: &'static Section,
        path: &str,
        array: &'i [Spanned<DeValue<'i>>],
        complain: &Complaint,
    ) -> Option<Value<'i>> {
        let mut nodes = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let path = format!("{path}.{index}");
            self.places.insert(path.clone(), self.lines.place(&item.span()));
            match item.get_ref() {
                DeValue::Table(table) => nodes.push(self.node(section, &path, &item.span(), table)),
                found => {
                    let complain = Complaint { span: item.span(), ..complain.clone() };
                    self.complain(&complain, &format!("holds {}", words::found(found)));
                }
            }
        }
        if array.is_empty() {
            self.complain(complain, "is empty");
        }
        Some(Value::Tables(nodes))
    }

    fn named<'i>(&mut self, section: &'static Section, path: &str, table: &'i DeTable<'i>) -> Option<Value<'i>> {
        let mut nodes = BTreeMap::new();
        for (name, value) in table {
            let (word, at) = (name.get_ref().as_ref(), name.span());
            let path = join(path, word);
            self.places.insert(path.clone(), self.lines.place(&at));
            if !is_name(word) {
                self.error(&at, format!("name in {} is not usable", section.name), words::NAME);
            }
            match value.get_ref() {
                DeValue::Table(table) => {
                    nodes.insert(word.to_owned(), self.node(section, &path, &at, table));
                }
                found => {
                    let message = format!("`{}` is {}, not a table", words::shown(word), words::found(found));
                    self.error(&value.span(), message, format!("write it as {}", words::title(section, &path)));
                }
            }
        }
        Some(Value::Named(nodes))
    }

    fn item(&mut self, complain: &Complaint, item: &Spanned<DeValue<'_>>) -> Option<Text> {
        let complain = Complaint { span: item.span(), ..complain.clone() };
        match item.get_ref() {
            DeValue::String(text) => {
                let text = self.expand(text, &complain.span)?;
                if text.text.is_empty() {
                    self.complain(&complain, "holds an empty text");
                    return None;
                }
                Some(text)
            }
            found => {
                self.complain(&complain, &format!("holds {}", words::found(found)));
                None
            }
        }
    }

    /// Replaces the references of a text; none when one of them cannot be found.
    pub(super) fn expand(&mut self, text: &str, span: &Range<usize>) -> Option<Text> {
        match expand(text, self.base, self.lookup) {
            Ok(Expanded { text, referred, file }) => Some(Text { text, referred, file, span: span.clone() }),
            Err(findings) => {
                let place = self.lines.place(span);
                self.findings.extend(findings.into_iter().map(|finding| finding.at(Some(place.clone()))));
                None
            }
        }
    }

    fn checked_text<'i>(&mut self, complain: &Complaint, text: Text) -> Option<Value<'i>> {
        let shown = if text.referred { "the value of its reference".to_owned() } else { format!("{:?}", text.text) };
        match complain.key.kind {
            // An account without password has an empty one.
            Kind::Secret => Some(Value::Text(text)),
            _ if text.text.is_empty() => {
                self.complain(complain, "is empty");
                None
            }
            Kind::Text | Kind::Path => Some(Value::Text(text)),
            Kind::Name if is_name(&text.text) => Some(Value::Text(text)),
            Kind::Digest if is_digest(&text.text) => Some(Value::Text(text)),
            Kind::Choice { words, .. } if words.contains(&text.text.as_str()) => Some(Value::Text(text)),
            Kind::Choice { not_offered, .. } if not_offered.contains(&text.text.as_str()) => {
                self.complain(complain, &format!("is {shown}, which is not offered yet"));
                None
            }
            Kind::Duration { min, max } => match parse_duration(&text.text) {
                Some(read) if (min..=max).contains(&read) => Some(Value::Duration(read)),
                Some(_) => {
                    let (min, max) = (show_duration(min), show_duration(max));
                    self.complain(complain, &format!("is out of range ({min} to {max}): {shown}"));
                    None
                }
                None => self.unusable(complain, &shown),
            },
            Kind::Size { min, max } => match ByteSize::parse(&text.text) {
                Some(read) if (min..=max).contains(&read.0) => Some(Value::Number(read.0)),
                Some(_) => {
                    let (min, max) = (ByteSize(min), ByteSize(max));
                    self.complain(complain, &format!("is out of range ({min} to {max}): {shown}"));
                    None
                }
                None => self.unusable(complain, &shown),
            },
            _ => self.unusable(complain, &shown),
        }
    }

    fn unusable<'i>(&mut self, complain: &Complaint, shown: &str) -> Option<Value<'i>> {
        self.complain(complain, &format!("cannot be used: {shown}"));
        None
    }

    fn complain(&mut self, complaint: &Complaint, problem: &str) {
        let Complaint { title, key, span } = complaint;
        let message = format!("`{}` in {title} {problem}", key.name);
        self.error(span, message, format!("it wants {}", words::wants(key.kind)));
    }
}

/// Whose value is wrong, and where it stands.
#[derive(Clone)]
struct Complaint {
    /// The section, as it stands in the file.
    title: String,
    key: &'static Key,
    span: Range<usize>,
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn takes_text(kind: Kind) -> bool {
    use Kind as K;
    matches!(
        kind,
        K::Text | K::Secret | K::Name | K::Digest | K::Path | K::Duration { .. } | K::Size { .. } | K::Choice { .. }
    )
}

/// Letters, digits, `-` and `_`, beginning with a letter or digit: safe in file names, labels and topic names.
fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// A declared default as a value; the tests load a file without optional keys, so every default is known to be usable.
fn default_value<'i>(kind: Kind, text: &'static str) -> Option<Value<'i>> {
    match kind {
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Count { .. } => text.parse().ok().map(Value::Number),
        Kind::Duration { .. } => parse_duration(text).map(Value::Duration),
        Kind::Size { .. } => ByteSize::parse(text).map(|size| Value::Number(size.0)),
        _ => Some(Value::Text(Text { text: text.to_owned(), referred: false, file: None, span: 0..0 })),
    }
}
