//! What the server's log of changes says, by other people's reader: mysql_async's binlog stream, with no code of ours
//! between the server's bytes and the values.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use mysql_async::binlog::events::{EventData, RowsEventData, TableMapEvent};
use mysql_async::binlog::row::BinlogRow;
use mysql_async::binlog::value::BinlogValue;
use mysql_async::consts::ColumnType;
use mysql_async::{BinlogStreamRequest, Value};

use crate::cell;
use crate::rows::{Column, Table};
use crate::server::Server;
use crate::value::{Kind, spelled};

/// Names our connection among those that read the log.
const SERVER_ID: u32 = 4_200_000_001;

/// One change of one key: a change of the key itself is a delete of the old and an insert of the new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `insert`, `update-after` or `delete`.
    pub op: &'static str,
    /// The key, spelled.
    pub key: String,
    /// The transaction's GTID.
    pub transaction: String,
    /// Place among the table's row changes in the transaction, from 0.
    pub ordinal: u64,
    /// `FILE:BYTE` where the transaction ends.
    pub position: String,
    /// The key's row before it; none if it had none.
    pub before: Option<Vec<String>>,
    /// The row that it is about: as it is now, or as it was when it was deleted.
    pub row: Vec<String>,
}

/// Where the server's log ends now.
pub type Place = (String, u64);

/// The changes behind `from`, up to the log's present end, by the names of these tables. They are of one database and
/// did not change their columns meanwhile.
pub async fn changes(server: &Server, tables: &[Table], from: &Place) -> Result<BTreeMap<String, Vec<Change>>> {
    let request =
        BinlogStreamRequest::new(SERVER_ID).with_filename(from.0.as_bytes()).with_pos(from.1).with_non_blocking();
    let mut stream = server.connect().await?.get_binlog_stream(request).await?;
    let mut log = Log::new(tables, &from.0);
    while let Some(event) = stream.next().await {
        let event = event.context("the server's log")?;
        let end = event.header().log_pos();
        match event.read_data()? {
            Some(EventData::RotateEvent(rotate)) => log.file = rotate.name().into_owned(),
            Some(EventData::GtidEvent(gtid)) => log.begin(format!("{}:{}", uuid(gtid.sid()), gtid.gno()))?,
            Some(EventData::AnonymousGtidEvent(_) | EventData::TransactionPayloadEvent(_)) => {
                bail!("the log has transactions that this reader does not take apart")
            }
            Some(EventData::RowsEvent(rows)) => {
                let map = stream.get_tme(rows.table_id()).context("rows come after their table's map")?;
                log.take(&rows, map)?;
            }
            Some(EventData::XidEvent(_)) => log.end(end),
            _ => {}
        }
    }
    ensure!(log.open.is_empty(), "the log ends inside a transaction");
    stream.close().await?;
    Ok(log.changes)
}

struct Log<'a> {
    tables: BTreeMap<&'a str, &'a Table>,
    file: String,
    transaction: String,
    /// Row changes of each table in the open transaction.
    ordinals: BTreeMap<&'a str, u64>,
    /// Changes of the open transaction.
    open: Vec<(&'a str, Change)>,
    changes: BTreeMap<String, Vec<Change>>,
}

impl<'a> Log<'a> {
    fn new(tables: &'a [Table], file: &str) -> Self {
        Self {
            tables: tables.iter().map(|table| (table.name.as_str(), table)).collect(),
            file: file.to_owned(),
            transaction: String::new(),
            ordinals: BTreeMap::new(),
            open: Vec::new(),
            changes: tables.iter().map(|table| (table.name.clone(), Vec::new())).collect(),
        }
    }

    fn begin(&mut self, transaction: String) -> Result<()> {
        ensure!(self.open.is_empty(), "{} has rows and no end", self.transaction);
        self.transaction = transaction;
        self.ordinals.clear();
        Ok(())
    }

    fn take(&mut self, rows: &RowsEventData<'_>, map: &TableMapEvent<'_>) -> Result<()> {
        let Some((&name, &table)) = self.tables.get_key_value(map.table_name().as_ref()) else { return Ok(()) };
        if map.database_name() != table.database {
            return Ok(());
        }
        for row in rows.rows(map) {
            let (before, after) = row.with_context(|| format!("a row of {table} in the log"))?;
            let image = |row: Option<BinlogRow>| row.map(|row| spelled_row(table, map, row)).transpose();
            let (before, after) = (image(before)?, image(after)?);
            let ordinal = self.ordinals.entry(name).or_default();
            self.open.extend(halves(table, before, after)?.into_iter().map(|(op, before, row)| {
                let (key, transaction, position) = (table.key_of(&row), self.transaction.clone(), String::new());
                (name, Change { op, key, transaction, ordinal: *ordinal, position, before, row })
            }));
            *ordinal += 1;
        }
        Ok(())
    }

    fn end(&mut self, byte: u32) {
        for (table, mut change) in self.open.drain(..) {
            change.position = format!("{}:{byte}", self.file);
            self.changes.entry(table.to_owned()).or_default().push(change);
        }
    }
}

type Image = Vec<String>;

/// What a row change is to the keys that it touches.
fn halves(
    table: &Table,
    before: Option<Image>,
    after: Option<Image>,
) -> Result<Vec<(&'static str, Option<Image>, Image)>> {
    Ok(match (before, after) {
        (None, Some(after)) => vec![("insert", None, after)],
        (Some(before), None) => vec![("delete", Some(before.clone()), before)],
        (Some(before), Some(after)) if table.key_of(&before) == table.key_of(&after) => {
            vec![("update-after", Some(before), after)]
        }
        (Some(before), Some(after)) => vec![("delete", Some(before.clone()), before), ("insert", None, after)],
        (None, None) => bail!("{table}: a row change without rows"),
    })
}

fn spelled_row(table: &Table, map: &TableMapEvent<'_>, row: BinlogRow) -> Result<Image> {
    ensure!(row.len() == table.columns.len(), "{table}: the log has rows of {} columns", row.len());
    let values = row.unwrap().into_iter().zip(&table.columns).enumerate().map(|(at, (value, column))| {
        // The log leaves out what pads a BINARY.
        let width = match map.get_column_type(at) {
            Ok(Some(ColumnType::MYSQL_TYPE_STRING)) => map.get_column_metadata(at).and_then(|bytes| bytes.get(1)),
            _ => None,
        };
        spelled_value(column, usize::from(width.copied().unwrap_or(0)), value)
            .with_context(|| format!("{table}: column {} in the log", column.name))
    });
    values.collect()
}

fn spelled_value(column: &Column, width: usize, value: BinlogValue<'_>) -> Result<String> {
    let BinlogValue::Value(value) = value else { bail!("a document has no one spelling") };
    let text = match (column.kind, value) {
        (_, Value::NULL) => return Ok("NULL".to_owned()),
        (_, Value::Int(number)) => number.to_string(),
        (_, Value::UInt(number)) => number.to_string(),
        (_, Value::Float(number)) => format!("{number:?}"),
        (_, Value::Double(number)) => format!("{number:?}"),
        (Kind::Bytes, Value::Bytes(mut bytes)) => {
            bytes.resize(bytes.len().max(width), 0);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        }
        (Kind::Moment, Value::Bytes(bytes)) => {
            let text = String::from_utf8(bytes)?;
            let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
            cell::moment(format!("{seconds}{fraction:0<6}").parse()?)
        }
        (_, Value::Bytes(bytes)) => String::from_utf8(bytes)?,
        (Kind::Date, Value::Date(year, month, day, ..)) => format!("{year:04}-{month:02}-{day:02}"),
        (_, Value::Date(year, month, day, hour, minute, second, micros)) => {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
        }
        (_, Value::Time(is_negative, days, hours, minutes, seconds, micros)) => {
            let sign = if is_negative { "-" } else { "" };
            format!("{sign}{}:{minutes:02}:{seconds:02}.{micros:06}", days * 24 + u32::from(hours))
        }
    };
    spelled(column.kind, &text)
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin;

    #[tokio::test]
    async fn the_logs_last_word_on_each_key_is_the_servers() {
        let server = Server::start().unwrap();
        let shop = crate::shop::open(&server, "shop", 60).await.unwrap();
        let mut connection = server.connect().await.unwrap();
        let tables = origin::describe_all(&mut connection, &shop.database).await.unwrap();
        let from = server.log_end().await.unwrap();
        let mut touched = Vec::new();
        for table in &tables {
            touched.push(format!("CREATE TABLE shop.copy LIKE {table}"));
            touched.push(format!("INSERT INTO shop.copy SELECT * FROM {table}"));
            touched.push(format!("DELETE FROM {table}"));
            touched.push(format!("INSERT INTO {table} SELECT * FROM shop.copy"));
            touched.push("DROP TABLE shop.copy".to_owned());
        }
        touched.push("UPDATE shop.orders SET id = id + 1000 WHERE id IN (1, 2)".to_owned());
        server.run(&touched.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
        let changes = changes(&server, &tables, &from).await.unwrap();
        for table in &tables {
            let mut rows = BTreeMap::new();
            for change in &changes[&table.name] {
                match change.op {
                    "delete" => drop(rows.remove(&change.key)),
                    _ => drop(rows.insert(change.key.clone(), change.row.clone())),
                }
            }
            let mut log = crate::rows::Rows::default();
            rows.into_values().for_each(|row| log.put(table, row).unwrap());
            let source = origin::rows(&mut connection, table).await.unwrap();
            assert_eq!(crate::rows::differences(table, &source, &log), [], "{table}");
        }
        let moved: Vec<_> = changes["orders"].iter().rev().take(4).rev().map(|c| (c.op, &*c.key, c.ordinal)).collect();
        assert_eq!(moved, [("delete", "1", 0), ("insert", "1001", 0), ("delete", "2", 1), ("insert", "1002", 1)]);
        let end = server.log_end().await.unwrap();
        assert_eq!(changes["orders"].last().unwrap().position, format!("{}:{}", end.0, end.1));
    }
}
