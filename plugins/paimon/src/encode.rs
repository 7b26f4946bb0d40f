//! From the contract's columns to the lake's: types, values, and the columns of data files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, StringArray};
use arrow_buffer::ScalarBuffer;
use cdchost_sdk::data::text::push_time;
use cdchost_sdk::{Batch, Column, LogicalType, Op, PluginError, Result, Schema, TableId};

use crate::client::check_names;
use crate::config::{Buckets, Settings, TimeForm};
use crate::fold::Chunk;
use crate::format::data_file::{KIND_DELETE, KIND_INSERT, KIND_UPDATE};
use crate::format::partition::{LEGACY_NAME_OPTION, Partitioning, needs_legacy_names};
use crate::format::schema::{LakeColumn, LakeSchema, LakeType};

/// Digits of a DECIMAL at most; wider ones become text.
const DECIMAL_PRECISION_MAX: u8 = 38;
/// The widest BIGINT UNSIGNED has so many digits.
const UINT64_DIGITS: u8 = 20;

/// The lake's type for a source's type.
pub(crate) fn lake_type(ty: &LogicalType, time: TimeForm) -> LakeType {
    match *ty {
        LogicalType::Boolean => LakeType::Boolean,
        LogicalType::Int8 => LakeType::TinyInt,
        LogicalType::Int16 | LogicalType::Uint8 => LakeType::SmallInt,
        LogicalType::Int32 | LogicalType::Uint16 => LakeType::Int,
        LogicalType::Int64 | LogicalType::Uint32 => LakeType::BigInt,
        LogicalType::Uint64 => LakeType::Decimal(UINT64_DIGITS, 0),
        LogicalType::Float32 => LakeType::Float,
        LogicalType::Float64 => LakeType::Double,
        LogicalType::Decimal { precision, scale } if precision <= DECIMAL_PRECISION_MAX => {
            LakeType::Decimal(precision, scale)
        }
        LogicalType::Time { .. } if time == TimeForm::Micros => LakeType::BigInt,
        LogicalType::Decimal { .. } | LogicalType::Text { .. } | LogicalType::Json | LogicalType::Time { .. } => {
            LakeType::String
        }
        LogicalType::Bytes { .. } | LogicalType::Geometry => LakeType::Bytes,
        LogicalType::Date => LakeType::Date,
        LogicalType::Timestamp { fraction } => LakeType::Timestamp(fraction),
        LogicalType::TimestampUtc { fraction } => LakeType::LocalTimestamp(fraction),
    }
}

/// The columns that the lake's table has for a source's table. Refuses what the lake cannot hold.
pub(crate) fn lake_columns(schema: &Schema, time: TimeForm) -> Result<Vec<LakeColumn>> {
    let refuse = |code: &str, message: String| Err(PluginError::config(code, message).with_table(&schema.table));
    check_names(&schema.table, &schema.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>())?;
    let mut columns = Vec::with_capacity(schema.fields.len());
    for (place, field) in (0u32..).zip(&schema.fields) {
        let ty = lake_type(&field.ty, time);
        if let LakeType::Decimal(precision, scale) = ty
            && (precision == 0 || scale < 0 || scale.unsigned_abs() > precision)
        {
            return refuse(
                "decimal",
                format!(
                    "column {} of table {} is decimal({precision}, {scale}), which the lake cannot hold",
                    field.name, schema.table
                ),
            );
        }
        let nullable = field.nullable && !schema.primary_key.contains(&place);
        columns.push(LakeColumn { name: field.name.clone(), ty, nullable, comment: field.comment.clone() });
    }
    Ok(columns)
}

/// The first schema of the lake's table for a source's table.
pub(crate) fn lake_schema(
    schema: &Schema,
    settings: &Settings,
    mut options: BTreeMap<String, String>,
    time_millis: i64,
) -> Result<LakeSchema> {
    let columns = lake_columns(schema, settings.time)?;
    let key = schema.primary_key.iter().filter_map(|&place| columns.get(place as usize));
    let key: Vec<String> = key.map(|column| column.name.clone()).collect();
    let partition = partition_keys(schema, settings)?;
    let refuse = |why: String| PluginError::config("partition-keys", why).with_table(&schema.table);
    let divisors = divisors(&schema.table, &columns, &key, &partition).map_err(refuse)?;
    if !divisors.is_empty() {
        let legacy = divisors.iter().any(|column| needs_legacy_names(column.ty));
        options.entry(LEGACY_NAME_OPTION.into()).or_insert_with(|| legacy.to_string());
    }
    let buckets = Buckets::of(&options, !key.is_empty()).map_err(|error| error.with_table(&schema.table))?;
    options.insert("bucket".into(), buckets.option());
    let lake = LakeSchema::first(&columns, key, partition, options, time_millis);
    Partitioning::of(&lake).map_err(|why| refuse(format!("table {}: {why}", schema.table)))?;
    Ok(lake)
}

/// The columns of these names, if a table with this key may be divided by them.
fn divisors<'a>(
    table: &TableId,
    columns: &'a [LakeColumn],
    key: &[String],
    names: &[String],
) -> std::result::Result<Vec<&'a LakeColumn>, String> {
    if let Some(name) = names.iter().find(|name| !key.is_empty() && !key.contains(name)) {
        return Err(match columns.iter().any(|column| column.name == *name) {
            false => format!("table {table} has no column {name} to be divided by"),
            true => format!(
                "table {table} cannot be divided by column {name}, which is no part of its key ({}): a row could \
                 change its partition and stay the same row",
                key.join(", ")
            ),
        });
    }
    if !key.is_empty() && key.iter().all(|name| names.contains(name)) {
        let key = key.join(", ");
        return Err(format!("table {table} cannot be divided by all columns of its key ({key}): leave one out"));
    }
    let column = |name: &String| {
        let found = columns.iter().find(|column| column.name == *name);
        found.ok_or_else(|| format!("table {table} has no column {name} to be divided by"))
    };
    names.iter().map(column).collect()
}

/// Options of a table that is made: those for all tables, then its own.
pub(crate) fn table_options(schema: &Schema, settings: &Settings) -> BTreeMap<String, String> {
    let mut options = settings.table.clone();
    if schema.primary_key.is_empty() {
        options.remove("bucket"); // how rows are spread by their key
    }
    options.extend(schema.options.iter().cloned());
    options
}

/// The columns that divide a table: those that its schema names, else those that the options have for it.
fn partition_keys(schema: &Schema, settings: &Settings) -> Result<Vec<String>> {
    let named = schema.partition_key.iter().filter_map(|&place| schema.fields.get(place as usize));
    let named: Vec<String> = named.map(|field| field.name.clone()).collect();
    let id = schema.table.to_string();
    let mut fitting = settings.partition_keys.iter().filter(|(pattern, _)| fits(pattern, &id));
    let chosen = fitting.next();
    if let (Some((one, _)), Some((other, _))) = (chosen, fitting.next()) {
        let message = format!("partition-keys has {one:?} and {other:?}, and both fit table {id}: let one of them");
        return Err(PluginError::config("partition-keys", message).with_table(&schema.table));
    }
    Ok(if named.is_empty() { chosen.map(|(_, columns)| columns.clone()).unwrap_or_default() } else { named })
}

/// Whether a name fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| fits(after, &rest[at..]))
        }),
    }
}

/// A batch as sequence number, kind and the table's columns.
pub(crate) fn chunk_of(batch: Batch, columns: &[LakeColumn], keyed: bool) -> Result<Chunk> {
    refuse_nulls(&batch, columns)?;
    let sequences = Int64Array::new(ScalarBuffer::from(batch.change_seq()?.to_vec()), None);
    let read: Vec<bool> = batch.ops().map(|op| op == Op::Read).collect();
    if !keyed {
        refuse_changes(&batch)?;
    }
    let kinds = batch.ops().map(kind_of).collect::<Result<Vec<i8>>>()?;
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len() + 2);
    arrays.push(Arc::new(sequences));
    arrays.push(Arc::new(Int8Array::from(kinds)));
    for (column, lake) in batch.into_columns().into_iter().zip(columns) {
        arrays.push(convert(column, lake)?);
    }
    Ok(Chunk { columns: arrays, read })
}

fn kind_of(op: Op) -> Result<i8> {
    match op {
        Op::Insert | Op::Read => Ok(KIND_INSERT),
        Op::UpdateAfter => Ok(KIND_UPDATE),
        Op::Delete => Ok(KIND_DELETE),
        Op::UpdateBefore => {
            Err(PluginError::bug("update-before", "a row as it was before an update, which was not asked for"))
        }
    }
}

/// Names the rows that change or remove others: without a key nobody knows which.
fn refuse_changes(batch: &Batch) -> Result<()> {
    let table = &batch.schema().table;
    let mut refusal: Option<PluginError> = None;
    for (row, op) in (0u32..).zip(batch.ops()).filter(|(_, op)| !matches!(op, Op::Insert | Op::Read)) {
        let error = refusal.take().unwrap_or_else(|| {
            let message = format!(
                "rows of table {table} are updated or deleted, but it has no key, so that the lake only takes new rows of \
                 it; once it has a primary key, a new pipeline can write it into another warehouse"
            );
            PluginError::data("append-only", message).with_table(table)
        });
        refusal = Some(error.with_row(row, format!("a row of kind {}", op.name())));
    }
    refusal.map_or(Ok(()), Err)
}

/// Names the rows that are NULL where the table has NOT NULL.
fn refuse_nulls(batch: &Batch, columns: &[LakeColumn]) -> Result<()> {
    let mut refusal: Option<PluginError> = None;
    for (column, lake) in
        batch.columns().iter().zip(columns).filter(|(column, lake)| !lake.nullable && column.null_count() > 0)
    {
        for row in (0..column.rows()).filter(|&row| column.is_null(row)) {
            let error = refusal.take().unwrap_or_else(|| {
                let message = format!("rows of table {} are null where the table has not null", batch.schema().table);
                PluginError::data("null", message).with_table(&batch.schema().table)
            });
            // Rows of a batch are below 2^32.
            refusal = Some(error.with_row(row as u32, format!("column {} is null", lake.name)));
        }
    }
    refusal.map_or(Ok(()), Err)
}

fn convert(column: Column, lake: &LakeColumn) -> Result<ArrayRef> {
    let ty = column.ty().clone();
    let array = column.into_arrow()?;
    Ok(match (ty, lake.ty) {
        // Each widening cast below holds every value of the narrower type.
        (LogicalType::Uint8, _) => Arc::new(array.as_primitive::<UInt8Type>().unary::<_, Int16Type>(i16::from)),
        (LogicalType::Uint16, _) => Arc::new(array.as_primitive::<UInt16Type>().unary::<_, Int32Type>(i32::from)),
        (LogicalType::Uint32, _) => Arc::new(array.as_primitive::<UInt32Type>().unary::<_, Int64Type>(i64::from)),
        (LogicalType::Uint64, _) => {
            let digits = array.as_primitive::<UInt64Type>().unary::<_, Decimal128Type>(i128::from);
            Arc::new(digits.with_precision_and_scale(UINT64_DIGITS, 0).map_err(|error| broken(lake, &error))?)
        }
        (LogicalType::Decimal { .. }, LakeType::String) => {
            let wide = array.as_primitive::<Decimal256Type>();
            Arc::new(texts(wide.len(), |row| wide.is_valid(row).then(|| wide.value_as_string(row))))
        }
        (LogicalType::Time { fraction }, LakeType::String) => {
            let times = array.as_primitive::<DurationMicrosecondType>();
            Arc::new(texts(times.len(), |row| {
                times.is_valid(row).then(|| {
                    let mut text = String::new();
                    push_time(&mut text, times.value(row), fraction);
                    text
                })
            }))
        }
        (LogicalType::Time { .. }, _) => {
            Arc::new(array.as_primitive::<DurationMicrosecondType>().unary::<_, Int64Type>(|micros| micros))
        }
        (LogicalType::Timestamp { fraction: ..=3 } | LogicalType::TimestampUtc { fraction: ..=3 }, _) => {
            millis(&array, lake)?
        }
        _ => array,
    })
}

/// Microseconds to milliseconds. Values that have more digits than their column's type would lose some: refused.
fn millis(array: &ArrayRef, lake: &LakeColumn) -> Result<ArrayRef> {
    let micros = array.as_primitive::<TimestampMicrosecondType>();
    if (0..micros.len()).any(|row| micros.is_valid(row) && micros.value(row) % 1000 != 0) {
        return Err(broken(lake, &"a value has more fraction digits than its type"));
    }
    let millis = micros.unary::<_, TimestampMillisecondType>(|micros| micros.div_euclid(1000));
    Ok(match lake.ty {
        LakeType::LocalTimestamp(_) => Arc::new(millis.with_timezone("UTC")),
        _ => Arc::new(millis),
    })
}

fn texts(row_count: usize, text: impl Fn(usize) -> Option<String>) -> StringArray {
    (0..row_count).map(text).collect()
}

fn broken(lake: &LakeColumn, why: &dyn std::fmt::Display) -> PluginError {
    PluginError::bug("column-broken", format!("column {} came with what it cannot have: {why}", lake.name))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("shop.orders", "shop.orders", true),
            ("shop.orders", "shop.orders2", false),
            ("shop.*", "shop.orders", true),
            ("*.orders_*", "a.orders_1", true),
            ("*.orders_*", "a.orders", false),
            ("*", "ü.é", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b", "a.b.c", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
