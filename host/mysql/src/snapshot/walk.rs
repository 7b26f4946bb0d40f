//! A table's walk: how far its snapshot is, and the query for the next chunk.

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

/// The query for a chunk: behind a key, or from the table's beginning. Its last parameter is the number of rows.
///
/// A comparison of rows, `(k1,k2) > (?,?)`, says the same but lets the server use no index.
pub(crate) fn chunk_query(layout: &TableLayout, behind_key: bool) -> String {
    let schema = &layout.schema;
    let columns: Vec<String> = schema.fields.iter().map(|field| quoted(&field.name)).collect();
    let key: Vec<&str> = layout.key().map(|place| columns[place].as_str()).collect();
    let mut query = format!(
        "SELECT {} FROM {}.{} FORCE INDEX ({})",
        columns.join(","),
        quoted(&schema.table.database),
        quoted(&schema.table.table),
        quoted(&layout.key_index)
    );
    if behind_key {
        let levels: Vec<String> = (0..key.len())
            .map(|level| {
                let equal: String = key[..level].iter().map(|column| format!("{column}=? AND ")).collect();
                format!("({equal}{}>?)", key[level])
            })
            .collect();
        query.push_str(" WHERE ");
        query.push_str(&levels.join(" OR "));
    }
    query.push_str(" ORDER BY ");
    query.push_str(&key.join(","));
    query.push_str(" LIMIT ?");
    query
}

/// The parameters of [`chunk_query`].
pub(crate) fn chunk_params(behind: Option<&[KeyValue]>, rows: u32) -> Vec<Param<'_>> {
    let mut params = Vec::new();
    for level in 0..behind.map_or(0, <[_]>::len) {
        params.extend(behind.into_iter().flatten().take(level + 1).map(KeyValue::param));
    }
    params.push(Param::Uint(rows.into()));
    params
}

/// A name in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cdchost_model::{Field, LogicalType, SchemaVersion, TableId, TableSchema};

    use super::*;
    use cdchost_mysql_row::PRIMARY;

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
        TableLayout::new(Arc::new(schema), PRIMARY.into()).unwrap()
    }

    #[test]
    fn queries_page_along_the_key() {
        let from = "SELECT `x`,`k1`,`k2` FROM `a``b`.`t` FORCE INDEX (`PRIMARY`)";
        let order = "ORDER BY `k1`,`k2` LIMIT ?";
        assert_eq!(chunk_query(&layout(), false), format!("{from} {order}"));
        let paged = format!("{from} WHERE (`k1`>?) OR (`k1`=? AND `k2`>?) {order}");
        assert_eq!(chunk_query(&layout(), true), paged);
    }

    #[test]
    fn parameters_repeat_the_key_for_each_level() {
        let value = |byte| KeyValue { column_type: 3, unsigned: false, bytes: vec![byte, 0, 0, 0] };
        let key = [value(1), value(2)];
        let shown: Vec<String> = chunk_params(Some(&key), 9).iter().map(|param| format!("{param:?}")).collect();
        let encoded = |value: &KeyValue| format!("{:?}", value.param());
        assert_eq!(shown, [encoded(&key[0]), encoded(&key[0]), encoded(&key[1]), "Uint(9)".into()]);
        assert_eq!(chunk_params(None, 9).len(), 1);
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
