//! What can happen to a table's schema.

use serde::{Deserialize, Serialize};

use crate::{Field, TableId};

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnPlace {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
    /// Behind the named column.
    After(String),
}

/// One change of a table. The whole schemas before and after travel beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// The change's tag, as sinks list it in their capabilities.
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
