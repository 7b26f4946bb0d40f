//! What the server itself says that its tables hold.

use anyhow::{Context, Result, bail};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use crate::rows::{Column, Rows, Table};
use crate::value::{Kind, spelled};

/// Describes a table by the server's own catalogue.
pub async fn describe(connection: &mut Conn, database: &str, name: &str) -> Result<Table> {
    let columns: Vec<(String, String, Option<usize>)> = connection
        .exec(
            "SELECT column_name, data_type, numeric_precision FROM information_schema.columns \
             WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
            (database, name),
        )
        .await?;
    let key: Vec<String> = connection
        .exec(
            "SELECT column_name FROM information_schema.statistics \
             WHERE table_schema = ? AND table_name = ? AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            (database, name),
        )
        .await?;
    let place = |k: &String| columns.iter().position(|(c, ..)| c == k).context("a key's column is a column");
    let key = key.iter().map(place).collect::<Result<Vec<_>>>()?;
    let columns = columns.into_iter().map(|(name, ty, bits)| Ok(Column { kind: kind(&ty, bits)?, name }));
    let columns = columns.collect::<Result<Vec<_>>>().with_context(|| format!("{database}.{name}"))?;
    Ok(Table { database: database.to_owned(), name: name.to_owned(), columns, key })
}

/// Describes all tables of a database, by name.
pub async fn describe_all(connection: &mut Conn, database: &str) -> Result<Vec<Table>> {
    let names: Vec<String> = connection
        .exec(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY table_name",
            (database,),
        )
        .await?;
    let mut tables = Vec::new();
    for name in names {
        tables.push(describe(connection, database, &name).await?);
    }
    Ok(tables)
}

fn kind(data_type: &str, precision: Option<usize>) -> Result<Kind> {
    Ok(match data_type {
        "bit" => Kind::Bits(precision.context("BIT has a precision")?.div_ceil(8)),
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => Kind::Number,
        "float" => Kind::Single,
        "double" => Kind::Double,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" | "json" | "uuid"
        | "inet4" | "inet6" => Kind::Text,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Kind::Bytes,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
        | "geomcollection" | "geometrycollection" => Kind::Bytes,
        "date" => Kind::Date,
        "time" => Kind::Time,
        "datetime" | "timestamp" => Kind::Moment,
        other => bail!("values of type {other} have no one spelling yet"),
    })
}

/// Takes the dates of a table as text from here on.
pub fn dates_as_text(table: &mut Table) {
    for column in table.columns.iter_mut().filter(|column| matches!(column.kind, Kind::Date | Kind::Moment)) {
        column.kind = Kind::Text;
    }
}

/// Reads all rows as text of the server's own making.
pub async fn rows(connection: &mut Conn, table: &Table) -> Result<Rows> {
    let columns: Vec<String> = table.columns.iter().map(expression).collect();
    let query = format!("SELECT {} FROM {}.{}", columns.join(","), quoted(&table.database), quoted(&table.name));
    let mut rows = Rows::default();
    let mut answer = connection.query_iter(query).await?;
    while let Some(row) = answer.next().await? {
        rows.put(table, spelled_row(table, row)?)?;
    }
    Ok(rows)
}

/// How a column is asked for so that its text is exact.
fn expression(column: &Column) -> String {
    let name = quoted(&column.name);
    match column.kind {
        // The text of a FLOAT is rounded; the product is a DOUBLE of the same value.
        Kind::Double | Kind::Single => format!("{name}*1e0"),
        Kind::Bytes => format!("HEX({name})"),
        Kind::Bits(bytes) => format!("LPAD(HEX({name}), {}, '0')", 2 * bytes),
        _ => name,
    }
}

fn spelled_row(table: &Table, row: Row) -> Result<Vec<String>> {
    let values = row.unwrap().into_iter().zip(&table.columns).map(|(value, column)| {
        let text = match value {
            Value::NULL => return Ok("NULL".to_owned()),
            Value::Bytes(bytes) => String::from_utf8(bytes).context("the server's text is not UTF-8")?,
            _ => bail!("a text answer holds texts only"),
        };
        spelled(column.kind, &text).with_context(|| format!("{table}: column {}", column.name))
    });
    values.collect()
}

/// A name between backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
