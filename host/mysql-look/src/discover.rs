//! The tables that the patterns match, as the server describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_model::{Field, LogicalType, SchemaVersion, TableId, TableSchema};
use cdchost_mysql_ddl::logs_its_rows;
use cdchost_mysql_row::{ColumnKind, PRIMARY, TableLayout, TextRules, ValueRules, ZeroDate, may_hide};
use cdchost_mysql_wire::{Connection, QueryResult};

use crate::charsets;
use crate::check::{Finding, ServerFacts};
use crate::session::SessionError;

/// A captured table.
#[derive(Clone, Debug)]
pub struct FoundTable {
    /// Its columns and key.
    pub layout: Arc<TableLayout>,
    /// Rows that the server thinks it has.
    pub rows_estimate: Option<u64>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// By name.
    pub tables: BTreeMap<TableId, FoundTable>,
    /// What stands in the way.
    pub findings: Vec<Finding>,
    /// The tables that something stands in the way of.
    pub refused: BTreeSet<TableId>,
}

/// A column as `information_schema` has it.
struct ColumnRow {
    name: String,
    native_type: String,
    nullable: bool,
    default_value: Option<String>,
    comment: Option<String>,
    /// Character set and collation of text that is not UTF-8.
    text: Option<(String, String)>,
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

/// What is looked for, and how.
#[expect(missing_debug_implementations, reason = "a function cannot be shown")]
pub struct Search<'a> {
    /// Which tables are looked for.
    pub patterns: &'a TablePatterns,
    /// Tables that are as they are known: they are not looked at again.
    pub known: &'a (dyn Fn(&TableId) -> bool + Sync),
    /// What is known of the server.
    pub facts: ServerFacts,
}

/// Reads all tables that the patterns match; the sets of their columns are added to the rules.
pub async fn discover(
    connection: &mut Connection,
    search: &Search<'_>,
    rules: &mut ValueRules,
) -> Result<Discovery, SessionError> {
    let result = connection
        .query(
            "SELECT table_schema, table_name, table_rows, table_type, engine FROM information_schema.tables \
             WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') \
             AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')",
        )
        .await?;
    let mut matched: BTreeMap<String, Vec<ListedTable>> = BTreeMap::new();
    let mut discovery = Discovery::default();
    for row in 0..result.rows.len() {
        let (Some(database), Some(table)) = (result.text(row, 0), result.text(row, 1)) else { continue };
        let id = TableId::new(database, table);
        if !search.patterns.matches(database, table) || (search.known)(&id) {
            continue;
        }
        if result.text(row, 3) == Some("SYSTEM VERSIONED") {
            discovery.findings.push(Finding::versioned(&id));
            discovery.refused.insert(id);
            continue;
        }
        let estimate = result.text(row, 2).and_then(|rows| rows.parse().ok());
        let engine = result.text(row, 4).unwrap_or_default().to_owned();
        let listed = ListedTable { name: table.to_owned(), rows_estimate: estimate, engine };
        matched.entry(database.to_owned()).or_default().push(listed);
    }
    for (database, tables) in matched {
        let mut columns = columns_of(connection, &database).await?;
        let mut indexes = indexes_of(connection, &database).await?;
        let charsets: BTreeSet<String> = tables
            .iter()
            .flat_map(|table| columns.get(&table.name))
            .flatten()
            .filter_map(|column| column.text.as_ref().map(|(charset, _)| charset.clone()))
            .collect();
        charsets::load(connection, charsets, &mut rules.charsets).await?;
        for ListedTable { name, rows_estimate, engine } in tables {
            let id = TableId::new(&database, &name);
            let found = FoundParts {
                engine,
                columns: columns.remove(&name).unwrap_or_default(),
                indexes: indexes.remove(&name).unwrap_or_default(),
                labels_are_logged: search.facts.labels_are_logged,
            };
            match layout_of(id.clone(), &found, rules, &mut discovery.findings) {
                Some(layout) => {
                    discovery.tables.insert(id, FoundTable { layout: Arc::new(layout), rows_estimate });
                }
                None => {
                    discovery.refused.insert(id);
                }
            }
        }
    }
    Ok(discovery)
}

/// The columns of all tables of a database, by table.
async fn columns_of(connection: &mut Connection, database: &str) -> Result<Columns, SessionError> {
    let query = format!(
        "SELECT table_name, column_name, column_type, is_nullable, column_default, column_comment, character_set_name, \
         collation_name FROM information_schema.columns WHERE table_schema = {} ORDER BY table_name, ordinal_position",
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
            text: text(6).filter(|charset| !matches!(charset.as_str(), "utf8mb4" | "utf8mb3" | "utf8")).zip(text(7)),
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
         WHERE table_schema = {} AND non_unique = 0 /*!80000 AND is_visible = 'YES' */ /*M!100600 AND ignored = 'NO' */ ORDER BY table_name, index_name, seq_in_index",
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

/// A table as `information_schema` lists it.
struct ListedTable {
    name: String,
    rows_estimate: Option<u64>,
    engine: String,
}

/// A table as `information_schema` has it.
struct FoundParts {
    engine: String,
    columns: Vec<ColumnRow>,
    indexes: BTreeMap<String, UniqueIndex>,
    labels_are_logged: bool,
}

/// The table, or what stands in its way.
fn layout_of(id: TableId, found: &FoundParts, rules: &ValueRules, findings: &mut Vec<Finding>) -> Option<TableLayout> {
    let before = findings.len();
    if found.columns.is_empty() {
        findings.push(Finding::unreadable(&id));
        return None;
    }
    if !logs_its_rows(&found.engine) {
        findings.push(Finding::engine(&id, &found.engine));
        return None;
    }
    let key = key_of(&found.indexes);
    if key.is_none() && !found.engine.eq_ignore_ascii_case("InnoDB") {
        findings.push(Finding::keyless(&id, &found.engine));
    }
    let in_key = |name: &String| key.is_some_and(|(_, key)| key.contains(name));
    let mut fields = Vec::with_capacity(found.columns.len());
    for column in &found.columns {
        match kind_of(column, in_key(&column.name), found.labels_are_logged, rules) {
            Ok(kind) => fields.push(field_of(column, &kind, in_key(&column.name), rules.zero_date)),
            Err(refused) => findings.push(refused.finding(&id, column)),
        }
    }
    let (key_index, key) = key.unwrap_or_default();
    if findings.len() > before {
        return None;
    }
    let place = |name: &String| fields.iter().position(|field| field.name == *name);
    let place = |name| place(name).map(|place| u32::try_from(place).expect("a table has at most 4096 columns"));
    let primary_key = key.iter().map(place).collect::<Option<_>>()?;
    let schema = TableSchema {
        table: id,
        version: SchemaVersion(1),
        fields,
        primary_key,
        partition_key: Vec::new(),
        options: Vec::new(),
    };
    TableLayout::new(Arc::new(schema), key_index.to_owned(), rules).ok()
}

/// The column as everyone else knows it.
fn field_of(column: &ColumnRow, kind: &ColumnKind, in_key: bool, zero_date: ZeroDate) -> Field {
    let zero_date = if kind.is_date() { zero_date } else { ZeroDate::Error };
    let native_type = match &column.text {
        Some((charset, collation)) if kind.has_charset() => {
            TextRules { charset, collation }.append_to(&column.native_type)
        }
        _ => column.native_type.clone(),
    };
    Field {
        name: column.name.clone(),
        ty: if zero_date == ZeroDate::Text { LogicalType::Text { max: None } } else { kind.logical() },
        nullable: column.nullable || (zero_date == ZeroDate::Null && !in_key),
        native_type,
        default_value: column.default_value.clone(),
        comment: column.comment.clone(),
    }
}

/// Why a column is not offered.
enum Refused {
    Type,
    Charset(String),
    /// A label that stands for itself or for others.
    Label,
    /// A label that is empty, in a key.
    EmptyLabel,
}

impl Refused {
    fn finding(self, table: &TableId, column: &ColumnRow) -> Finding {
        match self {
            Self::Type => Finding::column_type(table, &column.name, &column.native_type),
            Self::Charset(charset) => Finding::charset(table, &column.name, &charset),
            Self::Label => Finding::hidden_label(table, &column.name),
            Self::EmptyLabel => Finding::empty_label(table, &column.name),
        }
    }
}

fn kind_of(
    column: &ColumnRow,
    in_key: bool,
    labels_are_logged: bool,
    rules: &ValueRules,
) -> Result<ColumnKind, Refused> {
    let kind = ColumnKind::parse(&column.native_type).ok_or(Refused::Type)?;
    let charset = match &column.text {
        Some((name, _)) if kind.has_charset() => {
            Some(rules.charsets.get(name).ok_or_else(|| Refused::Charset(name.clone()))?)
        }
        _ => None,
    };
    if let ColumnKind::Enum(labels) | ColumnKind::Set(labels) = &kind {
        let is_unsure = labels.iter().any(|label| may_hide(label, charset.as_deref()));
        if is_unsure && (in_key || !labels_are_logged) {
            return Err(Refused::Label);
        }
        // As text it is the same as the value that is none of the labels.
        if in_key && labels.iter().any(|label| label.is_empty()) {
            return Err(Refused::EmptyLabel);
        }
    }
    Ok(kind)
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
    pub fn has_same_tables(&self, other: &Self) -> bool {
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
