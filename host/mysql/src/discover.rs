//! The tables that the patterns match, as the server describes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_model::{Field, SchemaVersion, TableId, TableSchema};
use cdchost_mysql_row::{ColumnKind, PRIMARY, TableLayout};
use cdchost_mysql_wire::{Connection, QueryResult};

use crate::check::Finding;
use crate::session::SessionError;

/// A captured table.
#[derive(Clone, Debug)]
pub(crate) struct FoundTable {
    pub(crate) layout: Arc<TableLayout>,
    /// Rows that the server thinks it has.
    pub(crate) rows_estimate: Option<u64>,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// By name.
    pub(crate) tables: BTreeMap<TableId, FoundTable>,
    /// What stands in the way.
    pub(crate) findings: Vec<Finding>,
}

/// A column as `information_schema` has it.
struct ColumnRow {
    name: String,
    native_type: String,
    nullable: bool,
    default_value: Option<String>,
    comment: Option<String>,
    charset: Option<String>,
}

/// A unique index whose columns identify a row.
#[derive(Default)]
struct UniqueIndex {
    columns: Vec<String>,
    /// All columns are whole ones that are NOT NULL.
    identifies: bool,
}

type Columns = BTreeMap<String, Vec<ColumnRow>>;
type Indexes = BTreeMap<String, BTreeMap<String, UniqueIndex>>;

/// Reads all tables that the patterns match. Tables in `known` are as they are known; they are not looked at again.
pub(crate) async fn discover(
    connection: &mut Connection,
    patterns: &TablePatterns,
    known: &(dyn Fn(&TableId) -> bool + Sync),
) -> Result<Discovery, SessionError> {
    let result = connection
        .query(
            "SELECT table_schema, table_name, table_rows FROM information_schema.tables \
             WHERE table_type = 'BASE TABLE' \
             AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')",
        )
        .await?;
    let mut matched: BTreeMap<String, Vec<(String, Option<u64>)>> = BTreeMap::new();
    for row in 0..result.rows.len() {
        let (Some(database), Some(table)) = (result.text(row, 0), result.text(row, 1)) else { continue };
        if patterns.matches(database, table) && !known(&TableId::new(database, table)) {
            let estimate = result.text(row, 2).and_then(|rows| rows.parse().ok());
            matched.entry(database.to_owned()).or_default().push((table.to_owned(), estimate));
        }
    }
    let mut discovery = Discovery::default();
    for (database, tables) in matched {
        let mut columns = columns_of(connection, &database).await?;
        let mut indexes = indexes_of(connection, &database).await?;
        for (table, rows_estimate) in tables {
            let id = TableId::new(&database, &table);
            let columns = columns.remove(&table).unwrap_or_default();
            let indexes = indexes.remove(&table).unwrap_or_default();
            if let Some(layout) = layout_of(id.clone(), &columns, &indexes, &mut discovery.findings) {
                discovery.tables.insert(id, FoundTable { layout: Arc::new(layout), rows_estimate });
            }
        }
    }
    Ok(discovery)
}

/// The columns of all tables of a database, by table.
async fn columns_of(connection: &mut Connection, database: &str) -> Result<Columns, SessionError> {
    let query = format!(
        "SELECT table_name, column_name, column_type, is_nullable, column_default, column_comment, character_set_name \
         FROM information_schema.columns WHERE table_schema = {} ORDER BY table_name, ordinal_position",
        literal(database)
    );
    let is_mariadb = connection.server().is_mariadb;
    let result = connection.query(&query).await?;
    let mut columns = Columns::new();
    for row in 0..result.rows.len() {
        let text = |column| result.text(row, column).map(str::to_owned);
        let column = ColumnRow {
            name: text(1).unwrap_or_default(),
            native_type: text(2).unwrap_or_default(),
            nullable: result.text(row, 3) == Some("YES"),
            default_value: text(4).and_then(|text| if is_mariadb { default_of_mariadb(text) } else { Some(text) }),
            comment: text(5).filter(|comment| !comment.is_empty()),
            charset: text(6),
        };
        columns.entry(text(0).unwrap_or_default()).or_default().push(column);
    }
    Ok(columns)
}

/// MariaDB shows defaults as a statement would write them: `NULL`, texts in quotes, expressions as they are.
fn default_of_mariadb(text: String) -> Option<String> {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(quoted) => Some(quoted.replace("''", "'")),
        None => (text != "NULL").then_some(text),
    }
}

/// The unique indexes of all tables of a database, by table.
async fn indexes_of(connection: &mut Connection, database: &str) -> Result<Indexes, SessionError> {
    let query = format!(
        "SELECT table_name, index_name, column_name, nullable, sub_part FROM information_schema.statistics \
         WHERE table_schema = {} AND non_unique = 0 ORDER BY table_name, index_name, seq_in_index",
        literal(database)
    );
    let result: QueryResult = connection.query(&query).await?;
    let mut indexes = Indexes::new();
    for row in 0..result.rows.len() {
        let (Some(table), Some(name)) = (result.text(row, 0), result.text(row, 1)) else { continue };
        let new = || UniqueIndex { columns: Vec::new(), identifies: true };
        let index = indexes.entry(table.into()).or_default().entry(name.into()).or_insert_with(new);
        // An index over an expression has no column's name.
        index.identifies &=
            result.text(row, 2).is_some() && result.text(row, 3) != Some("YES") && result.text(row, 4).is_none();
        index.columns.push(result.text(row, 2).unwrap_or_default().to_owned());
    }
    Ok(indexes)
}

/// The table, or what stands in its way.
fn layout_of(
    id: TableId,
    columns: &[ColumnRow],
    indexes: &BTreeMap<String, UniqueIndex>,
    findings: &mut Vec<Finding>,
) -> Option<TableLayout> {
    let before = findings.len();
    if columns.is_empty() {
        findings.push(Finding::unreadable(&id));
        return None;
    }
    let mut fields = Vec::with_capacity(columns.len());
    let mut kinds = Vec::with_capacity(columns.len());
    for column in columns {
        match kind_of(column) {
            Ok(kind) => {
                fields.push(Field {
                    name: column.name.clone(),
                    ty: kind.logical(),
                    nullable: column.nullable,
                    native_type: column.native_type.clone(),
                    default_value: column.default_value.clone(),
                    comment: column.comment.clone(),
                });
                kinds.push(kind);
            }
            Err(Refused::Type) => findings.push(Finding::column_type(&id, &column.name, &column.native_type)),
            Err(Refused::Charset(charset)) => findings.push(Finding::charset(&id, &column.name, &charset)),
        }
    }
    let Some((key_index, key)) = key_of(indexes) else {
        findings.push(Finding::keyless(&id));
        return None;
    };
    if findings.len() > before {
        return None;
    }
    let mut primary_key = Vec::with_capacity(key.len());
    for name in key {
        let place = fields.iter().position(|field| field.name == *name)?;
        if matches!(kinds[place], ColumnKind::Enum(_) | ColumnKind::Set(_)) {
            findings.push(Finding::label_key(&id, name));
        }
        primary_key.push(u32::try_from(place).expect("a table has at most 4096 columns"));
    }
    if findings.len() > before {
        return None;
    }
    let schema = TableSchema {
        table: id,
        version: SchemaVersion(1),
        fields,
        primary_key,
        partition_key: Vec::new(),
        options: Vec::new(),
    };
    TableLayout::new(Arc::new(schema), key_index.to_owned()).ok()
}

enum Refused {
    Type,
    Charset(String),
}

fn kind_of(column: &ColumnRow) -> Result<ColumnKind, Refused> {
    let kind = ColumnKind::parse(&column.native_type).ok_or(Refused::Type)?;
    match column.charset.as_deref() {
        Some(charset) if kind.has_charset() && !matches!(charset, "utf8mb4" | "utf8mb3" | "utf8" | "ascii") => {
            Err(Refused::Charset(charset.to_owned()))
        }
        _ => Ok(kind),
    }
}

/// The index that identifies rows: the primary key, else the unique one of the fewest columns.
fn key_of(indexes: &BTreeMap<String, UniqueIndex>) -> Option<(&str, &[String])> {
    let usable = indexes.iter().filter(|(_, index)| index.identifies);
    let best = usable.min_by_key(|(name, index)| (*name != PRIMARY, index.columns.len()))?;
    Some((best.0, &best.1.columns))
}

/// A text in quotes. The session reads backslashes as such, since its `sql_mode` is empty.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl Discovery {
    /// Whether both found the same tables with the same columns.
    pub(crate) fn has_same_tables(&self, other: &Self) -> bool {
        let shape = |discovery: &Self| -> Vec<_> {
            let tables = discovery.tables.values();
            tables.map(|table| (Arc::clone(&table.layout.schema), table.layout.key_index.clone())).collect()
        };
        self.findings == other.findings && shape(self) == shape(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_mariadb_are_read_as_those_of_mysql() {
        let rows =
            [("NULL", None), ("'it''s'", Some("it's")), ("7", Some("7")), ("''", Some("")), ("uuid()", Some("uuid()"))];
        for (shown, expected) in rows {
            assert_eq!(default_of_mariadb(shown.into()).as_deref(), expected, "{shown}");
        }
    }
}
