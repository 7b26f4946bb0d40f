//! Rows as JSON lines, for sinks whose readers are people and small programs.

use std::io::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::text::{push_date, push_decimal128, push_decimal256, push_time, push_timestamp};
use crate::data::{Bits, OptionalTexts};
use crate::{Batch, PluginError, Result, RowMeta, Values};

/// The schema changes that lines need nothing for, since each names its columns; rows that are gone all at once have no
/// line.
pub const SCHEMA_CHANGES: [&str; 8] = [
    "create-table",
    "add-column",
    "drop-column",
    "rename-column",
    "alter-column",
    "reorder-columns",
    "alter-key",
    "comment-table",
];

/// What a line can carry of a change, as it stands in a sink's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metadata {
    /// A number that grows with each change of the source.
    ChangeSeq,
    /// When the source committed the change (for a snapshot: when it was read), UTC.
    CommitTime,
    /// The source's name of the transaction; null for rows that a snapshot read.
    Transaction,
    /// Place of the change among its table's changes in the transaction, from 0.
    Ordinal,
    /// Where the transaction ends in the source's log; null for rows that a snapshot read.
    Position,
}

impl Metadata {
    /// What a batch must bring along for lines with this metadata.
    pub fn row_meta(asked: &[Self]) -> RowMeta {
        RowMeta {
            change_seq: asked.contains(&Self::ChangeSeq),
            commit_time: asked.contains(&Self::CommitTime),
            transaction: asked.contains(&Self::Transaction),
            ordinal: asked.contains(&Self::Ordinal),
            position: asked.contains(&Self::Position),
        }
    }
}

/// Appends a line for each row of the batch.
///
/// A line is `{"op":…,"table":…,"row":{…}}`, with the metadata asked for behind it. Whole numbers are JSON numbers
/// of any size, decimals are strings with all their digits, bytes and geometry base64, dates and times ISO 8601, JSON
/// documents stand as they are.
pub fn encode(batch: &Batch, metadata: &[Metadata], out: &mut Vec<u8>) -> Result<()> {
    let table = json_string(&batch.schema().table.to_string());
    let columns = columns(batch)?;
    let metadata = metadata.iter().map(|kind| Meta::of(batch, *kind)).collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    for (row, op) in batch.ops().enumerate() {
        push(out, format_args!(r#"{{"op":"{}","table":{table},"row":{{"#, op.name()));
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&column.key);
            if column.validity.is_some_and(|bits| !bits.get(row)) {
                out.extend_from_slice(b"null");
            } else {
                push_value(out, &mut text, column.values, row).map_err(|reason| refuse(batch, row, column, reason))?;
            }
        }
        out.push(b'}');
        metadata.iter().for_each(|meta| meta.push(out, &mut text, row));
        out.extend_from_slice(b"}\n");
    }
    Ok(())
}

struct Column<'a> {
    /// The name as JSON, and a colon.
    key: Vec<u8>,
    validity: Option<Bits<'a>>,
    values: Values<'a>,
}

fn columns(batch: &Batch) -> Result<Vec<Column<'_>>> {
    let mut columns = Vec::new();
    for (field, column) in batch.fields() {
        let key = format!("{}:", json_string(&field.name)).into_bytes();
        columns.push(Column { key, validity: column.validity(), values: column.values()? });
    }
    Ok(columns)
}

fn push_value(out: &mut Vec<u8>, text: &mut String, values: Values<'_>, row: usize) -> Result<(), &'static str> {
    text.clear();
    match values {
        Values::Boolean(bits) => push(out, format_args!("{}", bits.get(row))),
        Values::Int8(values) => push(out, format_args!("{}", values[row])),
        Values::Int16(values) => push(out, format_args!("{}", values[row])),
        Values::Int32(values) => push(out, format_args!("{}", values[row])),
        Values::Int64(values) => push(out, format_args!("{}", values[row])),
        Values::Uint8(values) => push(out, format_args!("{}", values[row])),
        Values::Uint16(values) => push(out, format_args!("{}", values[row])),
        Values::Uint32(values) => push(out, format_args!("{}", values[row])),
        Values::Uint64(values) => push(out, format_args!("{}", values[row])),
        Values::Float32(values) if values[row].is_finite() => push_json(out, &values[row]),
        Values::Float64(values) if values[row].is_finite() => push_json(out, &values[row]),
        Values::Float32(_) | Values::Float64(_) => return Err("a number that is infinite or none has no form in JSON"),
        Values::Text(texts) => push_json(out, texts.get(row)),
        Values::Json(texts) => push_document(out, texts.get(row))?,
        Values::Bytes(strings) | Values::Geometry(strings) => push_base64(out, strings.get(row)),
        Values::Decimal128(values, scale) => push_decimal128(text, values[row], scale),
        Values::Decimal256(values, scale) => push_decimal256(text, &values[row], scale),
        Values::Date(values) => push_date(text, values[row]),
        Values::Time(values, fraction) => push_time(text, values[row], fraction),
        Values::Timestamp(values, fraction) => push_timestamp(text, values[row], fraction),
        Values::TimestampUtc(values, fraction) => {
            push_timestamp(text, values[row], fraction);
            text.push('Z');
        }
    }
    if !text.is_empty() {
        // Digits, signs and letters only: nothing to escape.
        push(out, format_args!("\"{text}\""));
    }
    Ok(())
}

/// Metadata of all rows of a batch.
enum Meta<'a> {
    ChangeSeq(&'a [i64]),
    CommitTime(&'a [i64]),
    Transaction(OptionalTexts<'a>),
    Ordinal(&'a [u32]),
    Position(OptionalTexts<'a>),
}

impl<'a> Meta<'a> {
    fn of(batch: &'a Batch, kind: Metadata) -> Result<Self> {
        Ok(match kind {
            Metadata::ChangeSeq => Self::ChangeSeq(batch.change_seq()?),
            Metadata::CommitTime => Self::CommitTime(batch.commit_time()?),
            Metadata::Transaction => Self::Transaction(batch.transaction()?),
            Metadata::Ordinal => Self::Ordinal(batch.ordinal()?),
            Metadata::Position => Self::Position(batch.position()?),
        })
    }

    fn push(&self, out: &mut Vec<u8>, text: &mut String, row: usize) {
        match self {
            Self::ChangeSeq(values) => push(out, format_args!(r#","change-seq":{}"#, values[row])),
            Self::CommitTime(values) => {
                text.clear();
                push_timestamp(text, values[row], 6);
                push(out, format_args!(r#","commit-time":"{text}Z""#));
            }
            Self::Ordinal(values) => push(out, format_args!(r#","ordinal":{}"#, values[row])),
            Self::Transaction(texts) => {
                out.extend_from_slice(br#","transaction":"#);
                push_json(out, &texts.get(row));
            }
            Self::Position(texts) => {
                out.extend_from_slice(br#","position":"#);
                push_json(out, &texts.get(row));
            }
        }
    }
}

fn refuse(batch: &Batch, row: usize, column: &Column<'_>, reason: &str) -> PluginError {
    let name = String::from_utf8_lossy(&column.key);
    let reason = format!("column {}: {reason}", name.trim_end_matches(':'));
    let row = u32::try_from(row).unwrap_or(u32::MAX);
    PluginError::data("value-without-json", format!("a value of table {} has no form in JSON", batch.schema().table))
        .with_table(&batch.schema().table)
        .with_row(row, reason)
}

/// The document's own text; a line break between its parts becomes a space, since lines end rows here.
fn push_document(out: &mut Vec<u8>, document: &str) -> Result<(), &'static str> {
    if serde_json::from_str::<serde::de::IgnoredAny>(document).is_err() {
        return Err("not a JSON document");
    }
    // Within strings JSON escapes control characters, so these stand between its parts.
    out.extend(document.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    Ok(())
}

fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.push(b'"');
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_u32, |bits, (at, &byte)| bits | u32::from(byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { digit } else { b'=' });
        }
    }
    out.push(b'"');
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn push_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("texts and finite numbers are written to memory");
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests;
