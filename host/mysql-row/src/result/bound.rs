//! How a key's value is bound again to a statement, so that the server finds the rows behind it.

use std::sync::Arc;

use cdchost_mysql_wire::Column as ResultColumn;

use super::{BLOB, LONG, LONGLONG, SHORT, VAR_STRING};
use crate::charset::Charset;
use crate::column::bytes::length_coded;
use crate::column::{ColumnKind, ColumnReading, Labels, ValueError};

/// The type of the parameter, and what is made of the value's bytes.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) column_type: u8,
    pub(super) unsigned: bool,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The value as it came.
    Same,
    /// The number of the label: the server orders ENUM by it, and compares text otherwise.
    Number(Labels, Option<Arc<Charset>>),
    /// The bits of the labels, for the same reason.
    Bits(Labels, Option<Arc<Charset>>),
    /// The number that the bits are.
    Bit,
}

impl Bound {
    pub(super) fn new(kind: &ColumnKind, reading: &ColumnReading, column: &ResultColumn) -> Self {
        let charset = || reading.charset.as_ref().map(Arc::clone);
        let (column_type, unsigned, form) = match kind {
            ColumnKind::Integer { bytes: 3, unsigned } => (LONG, *unsigned, Form::Same),
            ColumnKind::Year => (SHORT, true, Form::Same),
            ColumnKind::Enum(labels) => (LONGLONG, true, Form::Number(Labels::clone(labels), charset())),
            ColumnKind::Set(labels) => (LONGLONG, true, Form::Bits(Labels::clone(labels), charset())),
            ColumnKind::Bit { .. } => (LONGLONG, true, Form::Bit),
            // Text of another set is bound as bytes; the query says what they are.
            ColumnKind::Text { .. } if reading.charset.is_some() => (BLOB, false, Form::Same),
            ColumnKind::Text { .. } | ColumnKind::Shown(_) => (VAR_STRING, false, Form::Same),
            // Bytes compare as bytes only where they are no text.
            ColumnKind::Bytes { .. } | ColumnKind::Binary { .. } => (BLOB, false, Form::Same),
            _ => (column.column_type, column.is_unsigned(), Form::Same),
        };
        Self { column_type, unsigned, form }
    }

    /// Appends what is bound for a value as it stands in a row.
    pub(super) fn put(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        let number = match &self.form {
            Form::Same => {
                out.extend_from_slice(value);
                return Ok(());
            }
            Form::Number(labels, charset) => {
                let text = text(value, charset.as_deref())?;
                // Number 0 is the error value, which shows as empty.
                if text.is_empty() { 0 } else { place(&text, labels, "ENUM")? + 1 }
            }
            Form::Bits(labels, charset) => {
                let text = text(value, charset.as_deref())?;
                let chosen = text.split(|&byte| byte == b',').filter(|label| !label.is_empty());
                chosen.map(|label| place(label, labels, "SET")).try_fold(0u64, |bits, place| Ok(bits | 1 << place?))?
            }
            Form::Bit => {
                let bytes = length_coded(&mut &*value)?;
                bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
            }
        };
        out.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }
}

/// The text of a value in UTF-8.
fn text(value: &[u8], charset: Option<&Charset>) -> Result<Vec<u8>, ValueError> {
    let bytes = length_coded(&mut &*value)?;
    let mut text = Vec::with_capacity(bytes.len());
    match charset {
        Some(charset) => charset.decode(bytes, &mut text)?,
        None => text.extend_from_slice(bytes),
    }
    Ok(text)
}

/// Place of a label, from 0 on.
fn place(label: &[u8], labels: &Labels, what: &'static str) -> Result<u64, ValueError> {
    let place = labels.iter().position(|known| known.as_bytes() == label).ok_or(ValueError::Malformed(what))?;
    Ok(place as u64)
}
