//! Fields of decoded Avro records, looked up by name.

use super::super::avro::{AvroError, Value};

/// A decoded record whose fields are asked for by name.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    record: &'a Value,
}

impl<'a> Fields<'a> {
    pub(super) fn of(record: &'a Value) -> Self {
        Self { record }
    }

    pub(super) fn record(&self, name: &str) -> Result<Fields<'a>, AvroError> {
        match self.record.field(name) {
            Some(record @ Value::Record(..)) => Ok(Fields { record }),
            _ => Err(missing(name, "a record")),
        }
    }

    pub(super) fn long(&self, name: &str) -> Result<i64, AvroError> {
        self.optional_long(name)?.ok_or_else(|| missing(name, "a number"))
    }

    pub(super) fn int(&self, name: &str) -> Result<i32, AvroError> {
        i32::try_from(self.long(name)?).map_err(|_| missing(name, "a number of 32 bits"))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, AvroError> {
        self.optional_bytes(name)?.ok_or_else(|| missing(name, "bytes"))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, AvroError> {
        self.optional_text(name)?.ok_or_else(|| missing(name, "a text"))
    }

    pub(super) fn optional_long(&self, name: &str) -> Result<Option<i64>, AvroError> {
        match self.record.field(name) {
            None | Some(Value::Null) => Ok(None),
            Some(&Value::Long(value)) => Ok(Some(value)),
            Some(_) => Err(missing(name, "a number")),
        }
    }

    pub(super) fn optional_bytes(&self, name: &str) -> Result<Option<Vec<u8>>, AvroError> {
        match self.record.field(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bytes(bytes)) => Ok(Some(bytes.clone())),
            Some(_) => Err(missing(name, "bytes")),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, AvroError> {
        let bytes = self.optional_bytes(name)?;
        bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| missing(name, "a text"))).transpose()
    }

    pub(super) fn optional_texts(&self, name: &str) -> Result<Option<Vec<String>>, AvroError> {
        self.optional_list(name, |item| match item {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        })
    }

    pub(super) fn optional_longs(&self, name: &str) -> Result<Option<Vec<Option<i64>>>, AvroError> {
        self.optional_list(name, |item| match item {
            Value::Null => Some(None),
            Value::Long(value) => Some(Some(*value)),
            _ => None,
        })
    }

    fn optional_list<T>(&self, name: &str, item: impl Fn(&Value) -> Option<T>) -> Result<Option<Vec<T>>, AvroError> {
        match self.record.field(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let items: Option<Vec<T>> = items.iter().map(item).collect();
                items.map(Some).ok_or_else(|| missing(name, "a list of the right items"))
            }
            Some(_) => Err(missing(name, "a list")),
        }
    }

    /// Fails if the record has a field that is none of `known` and holds something: it would be lost in a rewrite.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), AvroError> {
        let Value::Record(ty, values) = self.record else { return Ok(()) };
        let unknown =
            ty.names.iter().zip(values).find(|(name, value)| !known.contains(&name.as_str()) && **value != Value::Null);
        match unknown {
            Some((name, _)) => Err(AvroError(format!("field {name} is not known here"))),
            None => Ok(()),
        }
    }
}

fn missing(name: &str, what: &str) -> AvroError {
    AvroError(format!("field {name} is not {what}"))
}
