//! A table's schema with its columns' kinds, and rows of it on their way to an Arrow batch.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cdchost_model::TableSchema;

use super::{Column, ColumnKind, ValueError};

/// The name that the server gives a primary key's index.
pub const PRIMARY: &str = "PRIMARY";

/// A table as this source reads it.
#[derive(Debug)]
pub struct TableLayout {
    /// As everyone else knows it.
    pub schema: Arc<TableSchema>,
    /// One a column.
    pub kinds: Vec<ColumnKind>,
    /// The index of its key.
    pub key_index: String,
    arrow: SchemaRef,
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
    /// Reads the kinds out of the schema's native types; the error names the first column whose type is not offered.
    pub fn new(schema: Arc<TableSchema>, key_index: String) -> Result<Self, String> {
        let kinds = schema
            .fields
            .iter()
            .map(|field| ColumnKind::parse(&field.native_type).ok_or_else(|| field.name.clone()))
            .collect::<Result<_, _>>()?;
        let arrow = schema.arrow();
        Ok(Self { schema, kinds, key_index, arrow })
    }

    /// Empty columns for its rows.
    pub fn columns(&self) -> Columns {
        let columns = self.arrow.fields().iter().map(|field| Column::new(field.data_type().clone())).collect();
        Columns { columns, arrow: Arc::clone(&self.arrow) }
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
