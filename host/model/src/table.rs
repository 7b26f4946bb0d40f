//! The name of a table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A table's full name. Both parts are kept exactly as the server spells them; comparison is by bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId {
    /// The namespace, in MySQL's sense of the word.
    pub database: String,
    /// The table's name inside its database.
    pub table: String,
}

impl TableId {
    /// Builds the name from its two parts.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}
