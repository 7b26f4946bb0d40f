//! Rows of real servers, kept as text: for each table its columns, its table map, events of its rows, rows of a query.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cdchost_model::{Field, SchemaVersion, TableId, TableSchema};
use cdchost_mysql_row::{ColumnKind, PRIMARY, TableLayout, ValueRules};
use cdchost_mysql_wire::Column;

use crate::project;

/// A table of a real server.
#[derive(Clone, Debug)]
pub(super) struct CorpusTable {
    pub(super) layout: Arc<TableLayout>,
    /// The table map's body.
    pub(super) map: Vec<u8>,
    /// Rows events: type and body.
    pub(super) events: Vec<(u8, Vec<u8>)>,
    /// Packed events: type and body.
    pub(super) packed: Vec<(u8, Vec<u8>)>,
    /// The columns of a query for all rows.
    pub(super) columns: Vec<Column>,
    /// Its rows in the binary protocol, without their first byte.
    pub(super) rows: Vec<Vec<u8>>,
}

/// All tables of all files of `tests/fuzz/corpus`.
pub(super) fn read() -> Result<Vec<CorpusTable>> {
    let folder = project::root().join("tests/fuzz/corpus");
    let entries = std::fs::read_dir(&folder).context("the corpus")?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut tables: Vec<CorpusTable> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            take(line, &mut tables).with_context(|| format!("{}:{}", file.display(), number + 1))?;
        }
    }
    Ok(tables)
}

fn take(line: &str, tables: &mut Vec<CorpusTable>) -> Result<()> {
    let (word, rest) = line.split_once(' ').context("a word and a blank")?;
    if word == "table" {
        let layout = Arc::new(layout(rest)?);
        tables.push(CorpusTable { layout, map: vec![], events: vec![], packed: vec![], columns: vec![], rows: vec![] });
        return Ok(());
    }
    let table = tables.last_mut().context("a table comes first")?;
    match word {
        "map" => table.map = bytes(rest)?,
        "rows" => table.events.push(event(rest)?),
        "packed" => table.packed.push(event(rest)?),
        "columns" => table.columns = rest.split(' ').map(column).collect::<Result<_>>()?,
        "result" => table.rows.push(bytes(rest)?),
        other => bail!("the unknown word {other}"),
    }
    Ok(())
}

/// An event's type and body.
fn event(text: &str) -> Result<(u8, Vec<u8>)> {
    let (kind, body) = text.split_once(' ').context("a type of event")?;
    Ok((kind.parse()?, bytes(body)?))
}

/// A table of these types; the first column is its key.
fn layout(types: &str) -> Result<TableLayout> {
    let field = |(place, native): (usize, &str)| {
        let kind = ColumnKind::parse(native).with_context(|| format!("type {native}"))?;
        Ok(Field {
            name: if place == 0 { "id".to_owned() } else { format!("c{}", place - 1) },
            ty: kind.logical(),
            nullable: place > 0,
            native_type: native.to_owned(),
            default_value: None,
            comment: None,
        })
    };
    layout_of(types.split('\t').enumerate().map(field).collect::<Result<_>>()?)
}

/// A table of these columns, with NULL for dates that have no day.
pub(super) fn layout_of(fields: Vec<Field>) -> Result<TableLayout> {
    let schema = TableSchema {
        table: TableId::new("d", "t"),
        version: SchemaVersion(1),
        fields,
        primary_key: vec![0],
        partition_key: vec![],
        options: vec![],
    };
    let rules = ValueRules { zero_date: cdchost_mysql_row::ZeroDate::Null, ..ValueRules::default() };
    TableLayout::new(Arc::new(schema), PRIMARY.into(), &rules)
        .map_err(|column| anyhow::anyhow!("column {column} is not offered"))
}

fn column(text: &str) -> Result<Column> {
    let parts: Vec<u32> = text.split(':').map(|part| Ok(part.parse()?)).collect::<Result<_>>()?;
    let [column_type, flags, decimals, collation] = parts[..] else { bail!("four numbers") };
    Ok(Column {
        name: String::new(),
        original_name: String::new(),
        column_type: column_type.try_into()?,
        collation: collation.try_into()?,
        length: 0,
        flags: flags.try_into()?,
        decimals: decimals.try_into()?,
    })
}

fn bytes(digits: &str) -> Result<Vec<u8>> {
    let digit = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..digits.len()).step_by(2).map(digit).collect::<Option<_>>().context("pairs of digits")
}
