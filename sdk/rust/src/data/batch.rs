//! Rows of one table and one schema version, as a writer gets them.

use std::sync::Arc;

use super::{Bits, Column, Field, LogicalType, RawColumn, Schema, Texts};
use crate::{PluginError, Result};

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// The row came to be.
    Insert = 0,
    /// The row as it was; the next row of the batch is its [`Op::UpdateAfter`].
    UpdateBefore = 1,
    /// The row as it is now.
    UpdateAfter = 2,
    /// The row is gone; its columns hold the last values.
    Delete = 3,
    /// The row as a snapshot read it.
    Read = 4,
}

impl Op {
    /// The op that this byte stands for.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Insert, Self::UpdateBefore, Self::UpdateAfter, Self::Delete, Self::Read].get(usize::from(byte)).copied()
    }

    /// The op's name: `insert`, `update-before`, `update-after`, `delete`, `read`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::UpdateBefore => "update-before",
            Self::UpdateAfter => "update-after",
            Self::Delete => "delete",
            Self::Read => "read",
        }
    }
}

/// Row metadata that a writer may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowMeta {
    /// Grows with each change of the source; of two versions of a row the one with the greater is the newer.
    pub change_seq: bool,
    /// When the source committed the change.
    pub commit_time: bool,
    /// The source's name of the transaction; NULL for rows that a snapshot read.
    pub transaction: bool,
    /// Place of the row among its table's rows in the transaction. With table and transaction it is the stable id.
    pub ordinal: bool,
    /// Where the transaction ends in the source's log.
    pub position: bool,
}

impl RowMeta {
    fn types(self) -> impl Iterator<Item = (Meta, LogicalType)> {
        [
            (self.change_seq, Meta::ChangeSeq, LogicalType::Int64),
            (self.commit_time, Meta::CommitTime, LogicalType::TimestampUtc { fraction: 6 }),
            (self.transaction, Meta::Transaction, LogicalType::Text { max: None }),
            (self.ordinal, Meta::Ordinal, LogicalType::Uint32),
            (self.position, Meta::Position, LogicalType::Text { max: None }),
        ]
        .into_iter()
        .filter_map(|(asked, meta, ty)| asked.then_some((meta, ty)))
    }
}

/// What a writer wants to get of a table's rows; nothing else is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Places in the schema's fields; batches have their columns in this order.
    pub columns: Vec<u32>,
    /// The metadata wanted.
    pub meta: RowMeta,
}

impl ReadPlan {
    /// All columns in the table's order, no metadata.
    pub fn all(schema: &Schema) -> Self {
        Self { columns: (0..).take(schema.fields.len()).collect(), meta: RowMeta::default() }
    }

    /// The same with this metadata.
    pub fn with_meta(self, meta: RowMeta) -> Self {
        Self { meta, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meta {
    ChangeSeq,
    CommitTime,
    Transaction,
    Ordinal,
    Position,
}

impl Meta {
    fn name(self) -> &'static str {
        match self {
            Self::ChangeSeq => "change-seq",
            Self::CommitTime => "commit-time",
            Self::Transaction => "transaction",
            Self::Ordinal => "ordinal",
            Self::Position => "position",
        }
    }
}

/// Rows of one table and one schema version. Owned: a writer may keep it, or its columns, without a copy.
#[derive(Clone, Debug)]
pub struct Batch {
    schema: Arc<Schema>,
    plan: Arc<ReadPlan>,
    ops: Vec<u8>,
    columns: Vec<Column>,
    meta: Vec<(Meta, Column)>,
}

impl Batch {
    /// Checks that all parts fit the schema, the plan and each other.
    pub fn new(
        schema: Arc<Schema>,
        plan: Arc<ReadPlan>,
        ops: Vec<u8>,
        columns: Vec<RawColumn>,
        meta: Vec<RawColumn>,
    ) -> Result<Self> {
        let rows = ops.len();
        if let Some(byte) = ops.iter().find(|&&byte| Op::from_byte(byte).is_none()) {
            return Err(broken(format!("op {byte}, known are 0 to 4")));
        }
        let types: Vec<_> = plan.meta.types().collect();
        if columns.len() != plan.columns.len() || meta.len() != types.len() {
            let (columns, meta) = (columns.len(), meta.len());
            return Err(broken(format!("{columns} columns and {meta} of metadata, other than asked for")));
        }
        let columns = plan.columns.iter().zip(columns).map(|(&index, raw)| {
            let field = schema.fields.get(index as usize).ok_or_else(|| broken(format!("column {index}")))?;
            Ok(Column::new(field.ty.clone(), rows, raw)?.of(&schema, index))
        });
        let columns = columns.collect::<Result<_>>()?;
        let meta = types.into_iter().zip(meta).map(|((meta, ty), raw)| Ok((meta, Column::new(ty, rows, raw)?)));
        let meta = meta.collect::<Result<_>>()?;
        Ok(Self { schema, plan, ops, columns, meta })
    }

    /// The table's schema at this version.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What the writer asked for when it was shown the schema.
    pub fn plan(&self) -> &ReadPlan {
        &self.plan
    }

    /// How many rows; both halves of an update count.
    pub fn rows(&self) -> usize {
        self.ops.len()
    }

    /// What the row says. Panics beyond the end, as a slice does.
    pub fn op(&self, row: usize) -> Op {
        Op::from_byte(self.ops[row]).expect("ops were checked when the batch was made")
    }

    /// What each row says, in order.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = Op> + '_ {
        (0..self.rows()).map(|row| self.op(row))
    }

    /// The columns asked for, in that order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns asked for, each with its field.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &Column)> {
        let field = |&index: &u32| &self.schema.fields[index as usize];
        self.plan.columns.iter().map(field).zip(&self.columns)
    }

    /// The column with this exact name, if it was asked for.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.fields().find_map(|(field, column)| (field.name == name).then_some(column))
    }

    /// One number a row; both halves of an update share it. Fails if it was not asked for, as all metadata does.
    pub fn change_seq(&self) -> Result<&[i64]> {
        self.meta(Meta::ChangeSeq)?.as_i64()
    }

    /// When the source committed each change (for a snapshot: when it was read), in microseconds since the epoch.
    pub fn commit_time(&self) -> Result<&[i64]> {
        self.meta(Meta::CommitTime)?.as_i64()
    }

    /// The transaction of each row; none for rows that a snapshot read.
    pub fn transaction(&self) -> Result<OptionalTexts<'_>> {
        self.text_or_null(Meta::Transaction)
    }

    /// Place of each row among its table's rows in the transaction, from 0; both halves of an update share it.
    pub fn ordinal(&self) -> Result<&[u32]> {
        self.meta(Meta::Ordinal)?.as_u32()
    }

    /// Where each row's transaction ends in the source's log; none for rows that a snapshot read.
    pub fn position(&self) -> Result<OptionalTexts<'_>> {
        self.text_or_null(Meta::Position)
    }

    /// Bytes that the batch takes.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().chain(self.meta.iter().map(|(_, column)| column));
        self.ops.len() + columns.map(Column::bytes).sum::<usize>()
    }

    /// The columns themselves, in the order of the plan.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    fn meta(&self, wanted: Meta) -> Result<&Column> {
        let found = self.meta.iter().find_map(|(meta, column)| (*meta == wanted).then_some(column));
        found.ok_or_else(|| {
            PluginError::bug("metadata-not-asked", format!("{} read, but not asked for in on_schema", wanted.name()))
        })
    }

    fn text_or_null(&self, meta: Meta) -> Result<OptionalTexts<'_>> {
        let column = self.meta(meta)?;
        Ok(OptionalTexts { texts: column.as_text()?, validity: column.validity() })
    }
}

/// A text or none for each row.
#[derive(Clone, Copy, Debug)]
pub struct OptionalTexts<'a> {
    texts: Texts<'a>,
    validity: Option<Bits<'a>>,
}

impl<'a> OptionalTexts<'a> {
    /// The row's text. Panics beyond the end, as a slice does.
    pub fn get(&self, row: usize) -> Option<&'a str> {
        let is_there = self.validity.is_none_or(|bits| bits.get(row));
        is_there.then(|| self.texts.get(row))
    }
}

fn broken(what: String) -> PluginError {
    PluginError::bug("batch-broken", format!("a batch came with {what}"))
}
