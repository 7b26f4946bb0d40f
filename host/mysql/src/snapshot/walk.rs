//! A table's walk: how far its snapshot is, and the query for the next chunk.

use cdchost_mysql_look::quoted;
use cdchost_mysql_row::{KeyValue, TableLayout};
use cdchost_mysql_wire::Param;
use serde::{Deserialize, Serialize};

/// How far a table's snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Walk {
    /// Not begun: the table's changes are not handed on, since its rows will be read.
    Mute,
    /// Begun: all changes are handed on. The next chunk begins behind this key, or at the table's beginning.
    Emitting {
        /// The last key of the last chunk that was handed on.
        next: Option<Vec<KeyValue>>,
    },
    /// All rows were handed on, or were not asked for.
    Done,
}

/// A stretch of a table's key, its beginning left out and its end taken in; open where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) after: Option<Vec<KeyValue>>,
    pub(crate) until: Option<Vec<KeyValue>>,
}

/// The queries that a table is read with. Those along a key end in parameters for `LIMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    /// The rows of a stretch, whose ends are bound where they are there; with share locks or without.
    Chunk { after: bool, until: bool, locks: bool },
    /// A key that lies a number of rows behind another one, or behind the table's beginning.
    Cut { after: bool },
    /// All rows of a table without a key.
    Whole,
}

impl Query {
    /// The query for the rows of a stretch.
    pub(crate) fn chunk(range: &Range, locks: bool) -> Self {
        Self::Chunk { after: range.after.is_some(), until: range.until.is_some(), locks }
    }

    /// A comparison of rows, `(k1,k2) > (?,?)`, says the same but lets the server use no index.
    pub(crate) fn sql(self, layout: &TableLayout) -> String {
        let schema = &layout.schema;
        let all: Vec<String> = schema.fields.iter().map(|field| quoted(&field.name)).collect();
        let key: Vec<&str> = layout.key().map(|place| all[place].as_str()).collect();
        let bound: Vec<(&str, String)> =
            layout.key().map(|place| (all[place].as_str(), layout.placeholder(place))).collect();
        let (database, table) = (quoted(&schema.table.database), quoted(&schema.table.table));
        let (selected, after, until, limit) = match self {
            Self::Whole => return format!("SELECT {} FROM {database}.{table}", all.join(",")),
            Self::Chunk { after, until, locks: false } => (all.join(","), after, until, "?"),
            Self::Chunk { after, until, locks: true } => (all.join(","), after, until, "? LOCK IN SHARE MODE"),
            Self::Cut { after } => (key.join(","), after, false, "?,1"),
        };
        let mut query =
            format!("SELECT {selected} FROM {database}.{table} FORCE INDEX ({})", quoted(&layout.key_index));
        let ends = [after.then(|| compared(&bound, ">", ">")), until.then(|| compared(&bound, "<", "<="))];
        let ends: Vec<String> = ends.into_iter().flatten().collect();
        if !ends.is_empty() {
            query.push_str(" WHERE ");
            query.push_str(&ends.join(" AND "));
        }
        query.push_str(&format!(" ORDER BY {} LIMIT {limit}", key.join(",")));
        query
    }
}

/// A key compared with one that is bound; `last` is the comparison of its last column.
fn compared(key: &[(&str, String)], comparison: &str, last: &str) -> String {
    let levels: Vec<String> = (0..key.len())
        .map(|level| {
            let equal: String = key[..level].iter().map(|(column, value)| format!("{column}={value} AND ")).collect();
            let (column, value) = &key[level];
            let comparison = if level + 1 == key.len() { last } else { comparison };
            format!("({equal}{column}{comparison}{value})")
        })
        .collect();
    format!("({})", levels.join(" OR "))
}

/// The parameters of [`Query::Chunk`] for a stretch, and at most so many rows of it.
pub(crate) fn chunk_params(range: &Range, rows: u32) -> Vec<Param<'_>> {
    let mut params = key_params(range.after.as_deref());
    params.extend(key_params(range.until.as_deref()));
    params.push(Param::Uint(rows.into()));
    params
}

/// The parameters of [`Query::Cut`] for the key that ends a stretch of so many rows.
pub(crate) fn cut_params(after: Option<&[KeyValue]>, rows: u32) -> Vec<Param<'_>> {
    let mut params = key_params(after);
    params.push(Param::Uint(rows.saturating_sub(1).into()));
    params
}

/// A key's values as [`compared`] wants them: those of each level, one level after the other.
fn key_params(key: Option<&[KeyValue]>) -> Vec<Param<'_>> {
    let key = key.unwrap_or_default();
    (0..key.len()).flat_map(|level| &key[..=level]).map(KeyValue::param).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cdchost_model::{Field, LogicalType, SchemaVersion, TableId, TableSchema};

    use super::*;
    use cdchost_mysql_row::{PRIMARY, ValueRules};

    fn layout() -> TableLayout {
        let field = |name: &str| Field {
            name: name.into(),
            ty: LogicalType::Int32,
            nullable: false,
            native_type: "int".into(),
            default_value: None,
            comment: None,
        };
        let schema = TableSchema {
            table: TableId::new("a`b", "t"),
            version: SchemaVersion(1),
            fields: ["x", "k1", "k2"].into_iter().map(field).collect(),
            primary_key: vec![1, 2],
            partition_key: vec![],
            options: vec![],
        };
        TableLayout::new(Arc::new(schema), PRIMARY.into(), &ValueRules::default()).unwrap()
    }

    #[test]
    fn queries_page_along_the_key() {
        let from = "FROM `a``b`.`t` FORCE INDEX (`PRIMARY`)";
        let (behind, upto) = ("((`k1`>?) OR (`k1`=? AND `k2`>?))", "((`k1`<?) OR (`k1`=? AND `k2`<=?))");
        let rows = [
            (Query::Chunk { after: false, until: false, locks: false }, "`x`,`k1`,`k2`", String::new(), "?"),
            (
                Query::Chunk { after: true, until: false, locks: false },
                "`x`,`k1`,`k2`",
                format!(" WHERE {behind}"),
                "?",
            ),
            (Query::Chunk { after: false, until: true, locks: false }, "`x`,`k1`,`k2`", format!(" WHERE {upto}"), "?"),
            (
                Query::Chunk { after: true, until: true, locks: false },
                "`x`,`k1`,`k2`",
                format!(" WHERE {behind} AND {upto}"),
                "?",
            ),
            (
                Query::Chunk { after: false, until: false, locks: true },
                "`x`,`k1`,`k2`",
                String::new(),
                "? LOCK IN SHARE MODE",
            ),
            (Query::Cut { after: false }, "`k1`,`k2`", String::new(), "?,1"),
            (Query::Cut { after: true }, "`k1`,`k2`", format!(" WHERE {behind}"), "?,1"),
        ];
        assert_eq!(Query::Whole.sql(&layout()), "SELECT `x`,`k1`,`k2` FROM `a``b`.`t`");
        for (query, columns, condition, limit) in rows {
            let expected = format!("SELECT {columns} {from}{condition} ORDER BY `k1`,`k2` LIMIT {limit}");
            assert_eq!(query.sql(&layout()), expected);
        }
    }

    #[test]
    fn parameters_repeat_the_key_for_each_level() {
        let value = |byte| KeyValue { column_type: 3, unsigned: false, bytes: vec![byte, 0, 0, 0] };
        let shown = |params: Vec<Param<'_>>| params.iter().map(|param| format!("{param:?}")).collect::<Vec<_>>();
        let range = Range { after: Some(vec![value(1), value(2)]), until: Some(vec![value(3), value(4)]) };
        let encoded = |byte| format!("{:?}", value(byte).param());
        let expected = [1, 1, 2, 3, 3, 4].map(encoded).to_vec();
        assert_eq!(shown(chunk_params(&range, 9)), [expected.clone(), vec!["Uint(9)".into()]].concat());
        assert_eq!(shown(cut_params(range.after.as_deref(), 9)), [&expected[..3], &["Uint(8)".into()]].concat());
        assert_eq!(chunk_params(&Range { after: None, until: None }, 9).len(), 1);
    }

    #[test]
    fn walks_are_kept_as_text() {
        let value = KeyValue { column_type: 253, unsigned: false, bytes: vec![1, 0xff] };
        for walk in [Walk::Mute, Walk::Emitting { next: None }, Walk::Emitting { next: Some(vec![value]) }, Walk::Done]
        {
            let text = serde_json::to_string(&walk).unwrap();
            assert_eq!(serde_json::from_str::<Walk>(&text).unwrap(), walk, "{text}");
        }
    }
}
