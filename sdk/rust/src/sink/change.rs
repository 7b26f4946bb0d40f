//! Changes of a target's tables.

use std::sync::Arc;

use super::Cut;
use crate::{Field, Schema, TableId};

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
    /// Behind the named column.
    After(String),
}

/// One change of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    /// The table is new to the pipeline.
    CreateTable,
    /// A column was added.
    AddColumn(Field, ColumnPlace),
    /// The named column was removed.
    DropColumn(String),
    /// A column got another name (from, to).
    RenameColumn(String, String),
    /// A column's type, nullability, default or comment changed (before, after).
    AlterColumn(Field, Field),
    /// Only the order of columns changed.
    ReorderColumns,
    /// The key changed.
    AlterKey,
    /// All rows were removed at once.
    TruncateTable,
    /// The table was removed.
    DropTable,
    /// The table got this name.
    RenameTable(TableId),
    /// The table's comment changed.
    CommentTable(Option<String>),
}

impl SchemaChange {
    /// The change's tag, as [`Capabilities::schema_changes`](crate::Capabilities::schema_changes) lists it.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::CreateTable => "create-table",
            Self::AddColumn(..) => "add-column",
            Self::DropColumn(_) => "drop-column",
            Self::RenameColumn(..) => "rename-column",
            Self::AlterColumn(..) => "alter-column",
            Self::ReorderColumns => "reorder-columns",
            Self::AlterKey => "alter-key",
            Self::TruncateTable => "truncate-table",
            Self::DropTable => "drop-table",
            Self::RenameTable(_) => "rename-table",
            Self::CommentTable(_) => "comment-table",
        }
    }
}

/// A change of one target table.
#[derive(Clone, Debug)]
pub struct SchemaChangeRequest {
    /// The same at every replay.
    pub id: String,
    /// The cut that the change follows.
    pub at: Cut,
    /// The table before; none for a new table.
    pub before: Option<Arc<Schema>>,
    /// What changes.
    pub change: SchemaChange,
    /// The table after; none for a dropped table.
    pub after: Option<Arc<Schema>>,
}
