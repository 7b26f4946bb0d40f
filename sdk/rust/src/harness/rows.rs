//! Tables and rows written down in a test, and the batches that they become.

use std::sync::Arc;

use crate::data::RawColumn;
use crate::{Batch, Field, LogicalType, Op, ReadPlan, Result, Schema, TableId};

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// Boolean.
    Boolean(bool),
    /// Any whole number: integers, the digits of a decimal, days, microseconds.
    Integer(i128),
    /// Float32 and float64.
    Float(f64),
    /// Text and json.
    Text(String),
    /// Bytes and geometry; also the 32 bytes of a wide decimal.
    Bytes(Vec<u8>),
}

macro_rules! cells {
    ($($from:ty => $make:expr;)*) => {$(
        impl From<$from> for Cell {
            fn from(value: $from) -> Self {
                let make: fn($from) -> Self = $make;
                make(value)
            }
        }
    )*};
}

cells! {
    bool => Cell::Boolean;
    i32 => |value| Cell::Integer(value.into());
    i64 => |value| Cell::Integer(value.into());
    u64 => |value| Cell::Integer(value.into());
    i128 => Cell::Integer;
    f64 => Cell::Float;
    &str => |value| Cell::Text(value.into());
    &[u8] => |value| Cell::Bytes(value.into());
}

/// Cells of one row: `row![1, "a", Cell::Null]`.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::harness::Cell::from($cell)),*] };
}

/// A table, written down column by column.
#[derive(Clone, Debug)]
pub struct Table {
    schema: Arc<Schema>,
}

impl Table {
    /// A table without columns, named `database.table`.
    pub fn new(name: &str) -> Self {
        let (database, table) = name.split_once('.').expect("a table is named as `database.table`");
        let schema = Schema {
            table: TableId::new(database, table),
            version: 1,
            fields: Vec::new(),
            primary_key: Vec::new(),
            partition_key: Vec::new(),
            options: Vec::new(),
        };
        Self { schema: Arc::new(schema) }
    }

    /// With one more column, part of the key and never NULL.
    pub fn key(self, name: &str, ty: LogicalType) -> Self {
        self.with(name, ty, true)
    }

    /// With one more column, which may be NULL.
    pub fn column(self, name: &str, ty: LogicalType) -> Self {
        self.with(name, ty, false)
    }

    /// With columns of the given version, which must be another than before when columns were added.
    pub fn version(mut self, version: u64) -> Self {
        Arc::make_mut(&mut self.schema).version = version;
        self
    }

    /// Its schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// No rows yet; the first change gets this change-seq, each further one the next.
    pub fn rows(&self, first_change_seq: i64) -> Rows {
        Rows { schema: Arc::clone(&self.schema), rows: Vec::new(), next: first_change_seq }
    }

    fn with(mut self, name: &str, ty: LogicalType, is_key: bool) -> Self {
        let schema = Arc::make_mut(&mut self.schema);
        if is_key {
            schema.primary_key.push(u32::try_from(schema.fields.len()).expect("a test's table has few columns"));
        }
        let native_type = format!("{ty:?}");
        let field = Field { name: name.into(), ty, nullable: !is_key, native_type, default_value: None, comment: None };
        schema.fields.push(field);
        self
    }
}

/// Rows of one table, in order.
#[derive(Clone, Debug)]
pub struct Rows {
    schema: Arc<Schema>,
    rows: Vec<Row>,
    next: i64,
}

#[derive(Clone, Debug)]
struct Row {
    op: Op,
    cells: Vec<Cell>,
    change_seq: i64,
}

impl Rows {
    /// And a row that a snapshot read.
    pub fn read(self, cells: Vec<Cell>) -> Self {
        self.change([(Op::Read, cells)])
    }

    /// And a new row.
    pub fn insert(self, cells: Vec<Cell>) -> Self {
        self.change([(Op::Insert, cells)])
    }

    /// And a row as it was and as it is.
    pub fn update(self, before: Vec<Cell>, after: Vec<Cell>) -> Self {
        self.change([(Op::UpdateBefore, before), (Op::UpdateAfter, after)])
    }

    /// And a row that is gone.
    pub fn delete(self, cells: Vec<Cell>) -> Self {
        self.change([(Op::Delete, cells)])
    }

    /// The table's schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The change-seq of the last change; 0 without rows.
    pub fn last_change_seq(&self) -> i64 {
        self.rows.last().map_or(0, |row| row.change_seq)
    }

    /// The same rows without those that were, for a sink that does not want them.
    pub fn without_before(mut self) -> Self {
        self.rows.retain(|row| row.op != Op::UpdateBefore);
        self
    }

    /// The batch that a writer with this plan gets. Each change is a transaction of its own.
    pub fn batch(&self, plan: &Arc<ReadPlan>) -> Result<Batch> {
        let ops = self.rows.iter().map(|row| row.op as u8).collect();
        let column = |&index: &u32| self.raw_column(index as usize);
        let columns = plan.columns.iter().map(column).collect();
        Batch::new(Arc::clone(&self.schema), Arc::clone(plan), ops, columns, self.meta(plan))
    }

    /// What each row says.
    pub(super) fn ops(&self) -> Vec<Op> {
        self.rows.iter().map(|row| row.op).collect()
    }

    /// All columns, in the table's order.
    pub(super) fn raw_columns(&self) -> Vec<RawColumn> {
        (0..self.schema.fields.len()).map(|index| self.raw_column(index)).collect()
    }

    fn raw_column(&self, index: usize) -> RawColumn {
        let cells = self.rows.iter().map(|row| row.cells.get(index).cloned().unwrap_or(Cell::Null));
        encode(&self.schema.fields[index].ty, cells)
    }

    fn change<const N: usize>(mut self, halves: [(Op, Vec<Cell>); N]) -> Self {
        let change_seq = self.next;
        self.next += 1;
        self.rows.extend(halves.map(|(op, cells)| Row { op, cells, change_seq }));
        self
    }

    fn meta(&self, plan: &ReadPlan) -> Vec<RawColumn> {
        let numbers =
            |ty, number: fn(&Row) -> i128| encode(&ty, self.rows.iter().map(|row| Cell::Integer(number(row))));
        let texts = |text: fn(&Row) -> String| {
            let cell = |row: &Row| if row.op == Op::Read { Cell::Null } else { Cell::Text(text(row)) };
            encode(&LogicalType::Text { max: None }, self.rows.iter().map(cell))
        };
        let asked = plan.meta;
        let mut meta = Vec::new();
        if asked.change_seq {
            meta.push(numbers(LogicalType::Int64, |row| row.change_seq.into()));
        }
        if asked.commit_time {
            meta.push(numbers(LogicalType::TimestampUtc { fraction: 6 }, |row| i128::from(row.change_seq) * 1_000_000));
        }
        if asked.transaction {
            meta.push(texts(|row| format!("00000000-0000-0000-0000-000000000001:{}", row.change_seq)));
        }
        if asked.ordinal {
            meta.push(numbers(LogicalType::Uint32, |_| 0));
        }
        if asked.position {
            meta.push(texts(|row| format!("binlog.000001:{}", row.change_seq)));
        }
        meta
    }
}

fn encode(ty: &LogicalType, cells: impl Iterator<Item = Cell>) -> RawColumn {
    let cells: Vec<Cell> = cells.collect();
    let mut raw = RawColumn::default();
    let set = |bits: &mut Vec<u8>, row: usize| {
        bits.resize(cells.len().div_ceil(8), 0);
        bits[row / 8] |= 1 << (row % 8);
    };
    if ty.has_offsets() {
        raw.offsets.extend(0_i32.to_le_bytes());
    }
    for (row, cell) in cells.iter().enumerate() {
        if *cell == Cell::Null {
            raw.null_count += 1;
        } else {
            set(&mut raw.validity, row);
        }
        match (ty, cell) {
            (LogicalType::Boolean, Cell::Boolean(true)) => set(&mut raw.data, row),
            (LogicalType::Boolean, _) => raw.data.resize(cells.len().div_ceil(8), 0),
            _ => raw.data.extend(value_bytes(ty, cell)),
        }
        if ty.has_offsets() {
            let end = i32::try_from(raw.data.len()).expect("a test's column is small");
            raw.offsets.extend(end.to_le_bytes());
        }
    }
    match raw.null_count {
        0 => raw.validity.clear(),
        _ => raw.validity.resize(cells.len().div_ceil(8), 0),
    }
    raw
}

fn value_bytes(ty: &LogicalType, cell: &Cell) -> Vec<u8> {
    let width = ty.width().unwrap_or(0);
    match (ty, cell) {
        (_, Cell::Null) => vec![0; width],
        (LogicalType::Float32, Cell::Float(value)) => {
            #[expect(clippy::cast_possible_truncation, reason = "the test says a single as a double")]
            let single = *value as f32;
            single.to_le_bytes().to_vec()
        }
        (LogicalType::Float64, Cell::Float(value)) => value.to_le_bytes().to_vec(),
        (_, Cell::Integer(value)) if width > 0 => {
            let sign = if *value < 0 { 0xff } else { 0 };
            value.to_le_bytes().into_iter().chain(std::iter::repeat(sign)).take(width).collect()
        }
        (_, Cell::Text(text)) if width == 0 => text.as_bytes().to_vec(),
        (_, Cell::Bytes(bytes)) if width == 0 || bytes.len() == width => bytes.clone(),
        _ => panic!("{cell:?} does not go into a column of type {ty:?}"),
    }
}
