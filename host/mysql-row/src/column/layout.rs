//! A table's schema with its columns' kinds, and rows of it on their way to an Arrow batch.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cdchost_model::{LogicalType, TableSchema};

use super::{Column, ColumnKind, TextRules, ValueError, ZeroDate};
use crate::charset::{Charset, Charsets};

/// The name that the server gives a primary key's index.
pub const PRIMARY: &str = "PRIMARY";

/// A table as this source reads it.
#[derive(Debug)]
pub struct TableLayout {
    /// As everyone else knows it.
    pub schema: Arc<TableSchema>,
    /// One a column.
    pub kinds: Vec<ColumnKind>,
    /// One a column: what its values need beyond its kind.
    pub readings: Vec<ColumnReading>,
    /// The index of its key; empty where it has none.
    pub key_index: String,
    arrow: SchemaRef,
}

/// How values are read, for all tables of a source alike.
#[derive(Clone, Debug, Default)]
pub struct ValueRules {
    /// The character sets of all columns.
    pub charsets: Charsets,
    /// What becomes of dates that no calendar has.
    pub zero_date: ZeroDate,
}

/// What the values of one column need beyond its kind.
#[derive(Clone, Debug)]
pub struct ColumnReading {
    /// The set of its text; none where it is UTF-8 or no text.
    pub charset: Option<Arc<Charset>>,
    /// What becomes of its zero dates.
    pub zero_date: ZeroDate,
}

/// A value that cannot be taken, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnError {
    /// Place of the column.
    pub column: usize,
    /// What is wrong.
    pub error: ValueError,
}

/// Rows of one table, column by column.
#[derive(Debug)]
pub struct Columns {
    columns: Vec<Column>,
    arrow: SchemaRef,
}

impl TableLayout {
    /// Reads the kinds out of the schema's native types; the error names the first column whose type or character set is
    /// not offered.
    pub fn new(schema: Arc<TableSchema>, key_index: String, rules: &ValueRules) -> Result<Self, String> {
        let mut kinds = Vec::with_capacity(schema.fields.len());
        let mut readings = Vec::with_capacity(schema.fields.len());
        for (place, field) in (0u32..).zip(&schema.fields) {
            let kind = ColumnKind::parse(&field.native_type).ok_or_else(|| field.name.clone())?;
            let charset = match TextRules::of(&field.native_type) {
                Some(text) => Some(rules.charsets.get(text.charset).ok_or_else(|| field.name.clone())?),
                None => None,
            };
            // The schema outlives the rule: a table that was announced with dates keeps them.
            let zero_date = match rules.zero_date {
                _ if kind.is_date() && matches!(field.ty, LogicalType::Text { .. }) => ZeroDate::Text,
                ZeroDate::Null if field.nullable && !schema.primary_key.contains(&place) => ZeroDate::Null,
                _ => ZeroDate::Error,
            };
            kinds.push(kind);
            readings.push(ColumnReading { charset: charset.filter(|charset| !charset.is_utf8()), zero_date });
        }
        let arrow = schema.arrow();
        Ok(Self { schema, kinds, readings, key_index, arrow })
    }

    /// Whether nothing tells its rows apart.
    pub fn is_keyless(&self) -> bool {
        self.schema.primary_key.is_empty()
    }

    /// A table of the key's columns only, in the key's order.
    #[must_use]
    pub fn key_alone(&self) -> Self {
        let schema = TableSchema {
            fields: self.key().map(|place| self.schema.fields[place].clone()).collect(),
            primary_key: (0..).take(self.schema.primary_key.len()).collect(),
            ..self.schema.as_ref().clone()
        };
        let arrow = schema.arrow();
        Self {
            schema: Arc::new(schema),
            kinds: self.key().map(|place| self.kinds[place].clone()).collect(),
            readings: self.key().map(|place| self.readings[place].clone()).collect(),
            key_index: self.key_index.clone(),
            arrow,
        }
    }

    /// Empty columns for its rows.
    pub fn columns(&self) -> Columns {
        let columns = self.arrow.fields().iter().map(|field| Column::new(field.data_type().clone())).collect();
        Columns { columns, arrow: Arc::clone(&self.arrow) }
    }

    /// What a parameter stands as in a comparison with a column of the key: text of a set that is not UTF-8 is bound as
    /// bytes, and said to be of the column's set and collation.
    pub fn placeholder(&self, place: usize) -> String {
        let is_converted =
            self.readings[place].charset.is_some() && matches!(self.kinds[place], ColumnKind::Text { .. });
        match TextRules::of(&self.schema.fields[place].native_type) {
            Some(text) if is_converted => format!("CONVERT(? USING {}) COLLATE {}", text.charset, text.collation),
            _ => "?".to_owned(),
        }
    }

    /// Whether its key is the primary key, not another unique one.
    pub fn has_primary_key(&self) -> bool {
        self.key_index == PRIMARY
    }

    /// Places of the key's columns.
    pub fn key(&self) -> impl Iterator<Item = usize> + '_ {
        self.schema.primary_key.iter().map(|&place| place as usize)
    }
}

impl Columns {
    /// The columns, to append to. All must get the same number of values.
    pub fn as_mut_slice(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// One of them.
    pub fn column(&self, place: usize) -> &Column {
        &self.columns[place]
    }

    /// Takes back all from row `length` on.
    pub fn truncate(&mut self, length: usize) {
        for column in &mut self.columns {
            column.truncate(length);
        }
    }

    /// The batch of all rows; the columns are empty afterwards.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnError> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (place, column) in self.columns.iter_mut().enumerate() {
            arrays.push(column.finish().map_err(|(_, error)| ColumnError { column: place, error })?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.arrow), arrays)
            .expect("columns are made by the schema and of one length"))
    }
}
