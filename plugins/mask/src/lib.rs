//! A transform that hashes, redacts and shortens columns, chosen by their names.

mod config;
mod encode;

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_sdk::data::{RawColumn, StringsBuilder};
use cdchost_sdk::{
    Batch, Column, Edit, Field, LogicalType, Manifest, OutField, Plan, PluginError, Processed, Result, Schema, TableId,
    Transform, runtime,
};

use crate::config::matches;
use crate::encode::{Hmac, push_text};

pub use config::Options;

/// Bytes of a key that is worth the name.
const KEY_BYTES_MIN: usize = 16;
/// Characters of a hash.
const HASH_CHARS: u32 = 64;

/// The transform.
#[derive(Debug)]
pub struct Mask {
    options: Options,
    hmac: Option<Hmac>,
    /// What is done to the columns that each table's plan reads, in that order.
    tables: BTreeMap<TableId, Vec<Action>>,
}

/// What is done to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Hash,
    Redact,
    Truncate,
}

cdchost_sdk::export_transform!(Mask);

impl Transform for Mask {
    type Options = Options;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "mask", options: Options, secrets: ["key"] }
    }

    fn open(options: Options) -> Result<Self> {
        let key = runtime::secret("key").or_else(|| options.key.as_ref().map(|key| key.as_bytes().to_vec()));
        if key.as_ref().is_some_and(|key| key.len() < KEY_BYTES_MIN) {
            let message = format!("the key has less than {KEY_BYTES_MIN} bytes, so that hashes could be guessed");
            return Err(PluginError::config("key-too-short", message));
        }
        if key.is_none() && !options.hash.is_empty() {
            return Err(PluginError::config("key-missing", "columns are to be hashed, and there is no key"));
        }
        Ok(Self { hmac: key.map(|key| Hmac::new(&key)), options, tables: BTreeMap::new() })
    }

    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<Plan> {
        let (mut actions, mut reads, mut output) = (Vec::new(), Vec::new(), Vec::new());
        for (place, field) in (0..).zip(&schema.fields) {
            match self.action(schema, field)? {
                Some(action) => {
                    self.check(schema, (place, field), action)?;
                    actions.push(action);
                    reads.push(place);
                    output.push(OutField::Computed(self.masked(field, action)));
                }
                None => output.push(OutField::Pass(place)),
            }
        }
        if actions.is_empty() {
            return Ok(Plan::pass(schema));
        }
        self.tables.insert(schema.table.clone(), actions);
        let names = |places: &[u32]| places.iter().map(|&place| schema.fields[place as usize].name.clone()).collect();
        Ok(Plan {
            reads,
            output,
            primary_key: Some(names(&schema.primary_key)),
            partition_key: Some(names(&schema.partition_key)),
            bypass: false,
            ..Plan::pass(schema)
        })
    }

    fn process(&mut self, batch: Batch) -> Result<Processed> {
        let actions = self.tables.get(&batch.schema().table).map(Vec::as_slice).unwrap_or_default();
        let columns = batch.columns().iter().zip(actions);
        let computed = columns.map(|(column, &action)| self.mask(column, action)).collect::<Result<_>>()?;
        Ok(Processed::Edited(Edit { computed, ..Edit::default() }))
    }
}

impl Mask {
    /// What is to be done to a column; a column that two lists mean is refused.
    fn action(&self, schema: &Schema, field: &Field) -> Result<Option<Action>> {
        let Options { hash, redact, truncate, .. } = &self.options;
        let lists = [(Action::Hash, hash), (Action::Redact, redact), (Action::Truncate, truncate)];
        let means = |list: &[String]| list.iter().any(|pattern| matches(pattern, &field.name));
        let mut meant = lists.into_iter().filter(|(_, list)| means(list)).map(|(action, _)| action);
        let action = meant.next();
        if meant.next().is_some() {
            return Err(refuse(schema, "column-meant-twice", &format!("column {} is in two lists", field.name)));
        }
        Ok(action)
    }

    fn check(&self, schema: &Schema, (place, field): (u32, &Field), action: Action) -> Result<()> {
        let keys = schema.primary_key.contains(&place) || schema.partition_key.contains(&place);
        // A table without key is told by all its columns: what becomes of them is alike for a row and its delete.
        if keys && action != Action::Hash {
            let what = format!("column {} is of the key: rows would run into each other; hash it", field.name);
            return Err(refuse(schema, "key-not-told-apart", &what));
        }
        if action == Action::Truncate && !matches!(field.ty, LogicalType::Text { .. }) {
            return Err(refuse(schema, "column-is-no-text", &format!("column {} is no text", field.name)));
        }
        Ok(())
    }

    /// The column as it comes out.
    fn masked(&self, field: &Field, action: Action) -> Field {
        let max = match (action, &field.ty) {
            (Action::Hash, _) => Some(HASH_CHARS),
            (Action::Truncate, LogicalType::Text { max: Some(max) }) => Some(self.options.truncate_length.min(*max)),
            (Action::Truncate, _) => Some(self.options.truncate_length),
            (Action::Redact, _) => u32::try_from(self.options.redact_with.chars().count()).ok(),
        };
        // A text of no length at all is one that no target has.
        let max = max.map(|max| max.max(1));
        Field { ty: LogicalType::Text { max }, default_value: None, ..field.clone() }
    }

    fn mask(&self, column: &Column, action: Action) -> Result<RawColumn> {
        let values = column.values()?;
        let (mut out, mut bytes, mut text) = (StringsBuilder::new(), Vec::new(), String::new());
        for row in 0..column.rows() {
            if column.is_null(row) {
                out.push_null();
                continue;
            }
            match action {
                Action::Redact => out.push(&self.options.redact_with),
                Action::Truncate => out.push(head(column.as_text()?.get(row), self.options.truncate_length)),
                Action::Hash => {
                    let no_key = || PluginError::bug("key-missing", "a column is hashed without a key");
                    let hmac = self.hmac.as_ref().ok_or_else(no_key)?;
                    bytes.clear();
                    push_text(&mut bytes, &mut text, values, row);
                    text.clear();
                    hmac.hex(&bytes, &mut text);
                    out.push(&text);
                }
            }
        }
        Ok(out.finish())
    }
}

/// The first so many characters.
fn head(text: &str, chars: u32) -> &str {
    let end = text.char_indices().nth(chars as usize).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

fn refuse(schema: &Schema, code: &str, what: &str) -> PluginError {
    PluginError::config(code, format!("table {}: {what}", schema.table)).with_table(&schema.table)
}

#[cfg(test)]
mod tests;
