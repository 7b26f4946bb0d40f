//! A row's key as bytes, and the key group that it falls into.
//!
//! Both are frozen: checkpoints hold state by key group, and writers keep rows of one key in one place.
//! Layout, column after column: one byte 0 for NULL, or 1 and the value: fixed-width values as they lie in Arrow
//! (little-endian), booleans as one byte, texts and bytes as a u32 length (little-endian) and the bytes.

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::TableSchema;

/// Number of key groups. State and rows are spread over subtasks by group, so this never changes.
pub const KEY_GROUPS: u32 = 128;

/// Murmur3 (x86, 32 bits, seed 0) of the key, modulo [`KEY_GROUPS`].
pub fn key_group(key: &[u8]) -> u32 {
    murmur3(key) % KEY_GROUPS
}

/// Turns rows of one schema into key bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEncoder {
    places: Vec<usize>,
}

/// The key columns of one batch, ready to be read row by row.
#[derive(Debug)]
pub struct KeyColumns<'a> {
    columns: Vec<KeyColumn<'a>>,
}

#[derive(Debug)]
struct KeyColumn<'a> {
    array: &'a dyn Array,
    values: Values<'a>,
}

#[derive(Debug)]
enum Values<'a> {
    Bits(&'a arrow_array::BooleanArray),
    Fixed(&'a [u8], usize),
    Variable(&'a [i32], &'a [u8]),
}

impl KeyEncoder {
    /// Keys by primary key; by the whole row where there is none.
    pub fn of_primary_key(schema: &TableSchema) -> Self {
        Self { places: key_places(schema) }
    }

    /// All columns that say where a row lives: primary key (else all columns) and partition columns.
    pub fn of_row_identity(schema: &TableSchema) -> Self {
        let mut places = key_places(schema);
        for &place in &schema.partition_key {
            if !places.contains(&(place as usize)) {
                places.push(place as usize);
            }
        }
        Self { places }
    }

    /// Looks the key columns of a batch up once, for many rows.
    ///
    /// # Panics
    /// If the batch lacks a column of the schema.
    pub fn columns<'a>(&self, batch: &'a RecordBatch) -> KeyColumns<'a> {
        let columns = self.places.iter().map(|&place| KeyColumn::new(batch.column(place).as_ref())).collect();
        KeyColumns { columns }
    }
}

impl KeyColumns<'_> {
    /// Appends the key bytes of `row`.
    pub fn encode(&self, row: usize, out: &mut Vec<u8>) {
        for column in &self.columns {
            match column.value(row) {
                None => out.push(0),
                Some(value) => {
                    out.push(1);
                    if matches!(column.values, Values::Variable(..)) {
                        let length = u32::try_from(value.len()).expect("an Arrow value is below 2 GiB");
                        out.extend_from_slice(&length.to_le_bytes());
                    }
                    out.extend_from_slice(value);
                }
            }
        }
    }

    /// Whether two rows have the same key, byte by byte.
    pub fn equal(&self, one: usize, other: usize) -> bool {
        self.columns.iter().all(|column| column.value(one) == column.value(other))
    }
}

impl<'a> KeyColumn<'a> {
    fn new(array: &'a dyn Array) -> Self {
        use arrow_array::cast::AsArray;
        let values = match array.data_type() {
            DataType::Boolean => Values::Bits(array.as_boolean()),
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                Values::Variable(text.value_offsets(), text.value_data())
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                Values::Variable(bytes.value_offsets(), bytes.value_data())
            }
            other => Values::Fixed(
                fixed_values(array),
                other.primitive_width().expect("every other logical type has a fixed width"),
            ),
        };
        Self { array, values }
    }

    fn value(&self, row: usize) -> Option<&'a [u8]> {
        if self.array.is_null(row) {
            return None;
        }
        Some(match &self.values {
            Values::Bits(bits) => {
                if bits.value(row) {
                    &[1]
                } else {
                    &[0]
                }
            }
            Values::Fixed(data, width) => &data[row * width..(row + 1) * width],
            Values::Variable(offsets, data) => &data[offsets[row] as usize..offsets[row + 1] as usize],
        })
    }
}

/// The value bytes of a primitive array, its offset already taken off.
fn fixed_values(array: &dyn Array) -> &[u8] {
    use arrow_array::downcast_primitive_array;
    downcast_primitive_array!(
        array => array.values().inner().as_slice(),
        other => unreachable!("{other} is no primitive type")
    )
}

fn key_places(schema: &TableSchema) -> Vec<usize> {
    if schema.primary_key.is_empty() {
        (0..schema.fields.len()).collect()
    } else {
        schema.primary_key.iter().map(|&place| place as usize).collect()
    }
}

fn murmur3(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mut hash = 0u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        hash ^= word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut word = [0; 4];
        word[..rest.len()].copy_from_slice(rest);
        hash ^= u32::from_le_bytes(word).wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    }
    hash ^= bytes.len() as u32; // a key is below 2 GiB
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_gives_the_published_values() {
        for (text, hash) in [
            ("", 0),
            ("test", 0xba6b_d213),
            ("Hello, world!", 0xc036_3e43),
            ("The quick brown fox jumps over the lazy dog", 0x2e4f_f723),
        ] {
            assert_eq!(murmur3(text.as_bytes()), hash, "{text}");
        }
    }
}
