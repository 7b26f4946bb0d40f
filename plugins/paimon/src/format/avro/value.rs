//! Avro's binary encoding of values.

use std::sync::Arc;

use super::{AvroError, AvroType, RecordType};

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// An int, a long or the index of an enum's symbol.
    Long(i64),
    /// A float or a double.
    Double(f64),
    /// Bytes, a text or a fixed.
    Bytes(Vec<u8>),
    /// The items of an array.
    Array(Vec<Value>),
    /// The pairs of a map.
    Map(Vec<(Vec<u8>, Value)>),
    /// The fields of a record, in order.
    Record(Arc<RecordType>, Vec<Value>),
}

/// Most items that one array, map or block may have.
pub(super) const ITEMS_MAX: usize = 16 << 20;

impl Value {
    /// The field of a record; none where the value is no record or has no such field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        let Self::Record(ty, values) = self else { return None };
        let place = ty.names.iter().position(|field| field == name)?;
        values.get(place)
    }
}

/// Bytes that are read from front to back.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], AvroError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn long(&mut self) -> Result<i64, AvroError> {
        let mut raw = 0u64;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            raw |= u64::from(byte & 0x7f) << (place * 7);
            if byte & 0x80 == 0 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64)); // zigzag
            }
        }
        Err(AvroError::new("number of more than ten bytes"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], AvroError> {
        let length = usize::try_from(self.long()?).map_err(|_| AvroError::new("negative length"))?;
        self.take(length)
    }

    pub(super) fn value(&mut self, ty: &AvroType) -> Result<Value, AvroError> {
        Ok(match ty {
            AvroType::Null => Value::Null,
            AvroType::Boolean => Value::Boolean(self.take(1)?[0] != 0),
            AvroType::Long | AvroType::Enum => Value::Long(self.long()?),
            AvroType::Float => Value::Double(f64::from(f32::from_le_bytes(self.fixed()?))),
            AvroType::Double => Value::Double(f64::from_le_bytes(self.fixed()?)),
            AvroType::Bytes => Value::Bytes(self.bytes()?.to_vec()),
            AvroType::Fixed(size) => Value::Bytes(self.take(*size)?.to_vec()),
            AvroType::Array(items) => Value::Array(self.blocks(|decoder| decoder.value(items))?),
            AvroType::Map(values) => {
                Value::Map(self.blocks(|decoder| Ok((decoder.bytes()?.to_vec(), decoder.value(values)?)))?)
            }
            AvroType::Union(branches) => {
                let branch = usize::try_from(self.long()?).ok().and_then(|branch| branches.get(branch));
                self.value(branch.ok_or_else(|| AvroError::new("union branch that does not exist"))?)?
            }
            AvroType::Record(record) => {
                let values = record.types.iter().map(|ty| self.value(ty)).collect::<Result<_, _>>()?;
                Value::Record(Arc::clone(record), values)
            }
        })
    }

    /// Items in blocks: a count (negative: its bytes follow) and so many items, until a block of none.
    pub(super) fn blocks<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, AvroError>,
    ) -> Result<Vec<T>, AvroError> {
        let mut items = Vec::new();
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(items);
            }
            if count < 0 {
                self.long()?;
            }
            let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
            if count.saturating_add(items.len()) > ITEMS_MAX {
                return Err(AvroError::new("list of too many items"));
            }
            for _ in 0..count {
                items.push(item(self)?);
            }
        }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], AvroError> {
        self.take(N)?.try_into().map_err(|_| truncated())
    }
}

/// Appends values in Avro's encoding; the caller keeps to a schema.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// An int or a long.
    pub fn long(&mut self, value: i64) -> &mut Self {
        let mut raw = (value << 1 ^ value >> 63) as u64; // zigzag
        while raw >= 0x80 {
            self.out.push(raw as u8 | 0x80); // the low seven bits
            raw >>= 7;
        }
        self.out.push(raw as u8); // below 0x80
        self
    }

    /// Bytes or a text.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.long(value.len() as i64); // lengths are below 2^63
        self.out.extend_from_slice(value);
        self
    }

    /// A value that may be absent: a union of null and another type.
    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        match value {
            None => {
                self.long(0);
            }
            Some(value) => {
                self.long(1);
                write(self, value);
            }
        }
        self
    }

    /// An array.
    pub fn array<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) -> &mut Self {
        if !items.is_empty() {
            self.long(items.len() as i64); // lengths are below 2^63
            items.iter().for_each(|item| write(self, item));
        }
        self.long(0)
    }

    /// Bytes as they are, without a length.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// All that was written.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

fn truncated() -> AvroError {
    AvroError::new("bytes end too early")
}
