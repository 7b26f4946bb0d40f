//! Key columns of rows: their values as data, their order as numbers or bytes, and the range that a file spans.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{ArrayRef, BooleanArray};

use super::binary_row::{Datum, write_row};
use super::schema::LakeType;

/// The key columns of some rows, ready to be read row by row. NULL never stands in them.
#[derive(Debug)]
pub struct KeyColumns<'a> {
    columns: Vec<KeyColumn<'a>>,
}

#[derive(Debug)]
enum KeyColumn<'a> {
    Boolean(&'a BooleanArray),
    TinyInt(&'a [i8]),
    SmallInt(&'a [i16]),
    Int(&'a [i32]),
    BigInt(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128], u8),
    Bytes(&'a [i32], &'a [u8]),
    Millis(&'a [i64], u8),
    Micros(&'a [i64], u8),
}

/// Numbers or bytes that stand in the same order as keys do.
#[derive(Debug, PartialEq, Eq)]
pub enum SortKeys {
    /// Keys of at most 64 bits.
    Narrow(Vec<u64>),
    /// Keys of at most 128 bits.
    Wide(Vec<u128>),
    /// All others: the bytes one behind the other, and where each key ends.
    Bytes(Vec<u8>, Vec<usize>),
}

impl<'a> KeyColumns<'a> {
    /// Looks each array up by its type. The arrays have the Arrow types of [`LakeType::arrow`].
    pub fn new(columns: impl Iterator<Item = (&'a ArrayRef, LakeType)>) -> Self {
        Self { columns: columns.map(|(array, ty)| KeyColumn::new(array, ty)).collect() }
    }

    /// The key of a row.
    pub fn row(&self, row: usize) -> Vec<Option<Datum<'a>>> {
        self.columns.iter().map(|column| Some(column.datum(row))).collect()
    }

    /// The value of a row in the first column.
    pub fn first(&self, row: usize) -> Option<Datum<'a>> {
        self.columns.first().map(|column| column.datum(row))
    }

    /// Appends the key of a row in the form that buckets are computed of.
    pub fn write_row(&self, row: usize, values: &mut Vec<Option<Datum<'a>>>, out: &mut Vec<u8>) {
        values.clear();
        values.extend(self.columns.iter().map(|column| Some(column.datum(row))));
        write_row(values, out);
    }

    /// The keys of all rows in a form that compares fast.
    pub fn sort_keys(&self, row_count: usize) -> SortKeys {
        let bits: Option<u32> = self.columns.iter().map(KeyColumn::bits).sum();
        match bits {
            Some(..=64) => SortKeys::Narrow((0..row_count).map(|row| self.number(row) as u64).collect()), // at most 64 bits
            Some(..=128) => SortKeys::Wide((0..row_count).map(|row| self.number(row)).collect()),
            _ => {
                let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(row_count));
                for row in 0..row_count {
                    self.columns.iter().for_each(|column| column.append_sortable(row, &mut bytes));
                    ends.push(bytes.len());
                }
                SortKeys::Bytes(bytes, ends)
            }
        }
    }

    fn number(&self, row: usize) -> u128 {
        match self.columns.as_slice() {
            [only] => only.number(row),
            several => several.iter().fold(0, |key, column| {
                key << column.bits().expect("only keys of fixed width are numbers") | column.number(row)
            }),
        }
    }
}

impl<'a> KeyColumn<'a> {
    fn new(array: &'a ArrayRef, ty: LakeType) -> Self {
        match ty {
            LakeType::Boolean => Self::Boolean(array.as_boolean()),
            LakeType::TinyInt => Self::TinyInt(array.as_primitive::<Int8Type>().values()),
            LakeType::SmallInt => Self::SmallInt(array.as_primitive::<Int16Type>().values()),
            LakeType::Int => Self::Int(array.as_primitive::<Int32Type>().values()),
            LakeType::Date => Self::Int(array.as_primitive::<Date32Type>().values()),
            LakeType::BigInt => Self::BigInt(array.as_primitive::<Int64Type>().values()),
            LakeType::Float => Self::Float(array.as_primitive::<Float32Type>().values()),
            LakeType::Double => Self::Double(array.as_primitive::<Float64Type>().values()),
            LakeType::Decimal(precision, _) => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().values(), precision)
            }
            LakeType::String => {
                let array = array.as_string::<i32>();
                Self::Bytes(array.value_offsets(), array.value_data())
            }
            LakeType::Bytes => {
                let array = array.as_binary::<i32>();
                Self::Bytes(array.value_offsets(), array.value_data())
            }
            LakeType::Timestamp(fraction @ ..=3) | LakeType::LocalTimestamp(fraction @ ..=3) => {
                Self::Millis(array.as_primitive::<TimestampMillisecondType>().values(), fraction)
            }
            LakeType::Timestamp(fraction) | LakeType::LocalTimestamp(fraction) => {
                Self::Micros(array.as_primitive::<TimestampMicrosecondType>().values(), fraction)
            }
        }
    }

    fn datum(&self, row: usize) -> Datum<'a> {
        match self {
            Self::Boolean(values) => Datum::Boolean(values.value(row)),
            Self::TinyInt(values) => Datum::TinyInt(values[row]),
            Self::SmallInt(values) => Datum::SmallInt(values[row]),
            Self::Int(values) => Datum::Int(values[row]),
            Self::BigInt(values) => Datum::BigInt(values[row]),
            Self::Float(values) => Datum::Float(values[row]),
            Self::Double(values) => Datum::Double(values[row]),
            Self::Decimal(values, precision) => Datum::Decimal(values[row], *precision),
            Self::Bytes(..) => Datum::Bytes(self.bytes(row)),
            Self::Millis(values, fraction) => Datum::Timestamp(values[row] * 1000, *fraction),
            Self::Micros(values, fraction) => Datum::Timestamp(values[row], *fraction),
        }
    }

    fn bytes(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Bytes(offsets, data) => &data[offsets[row] as usize..offsets[row + 1] as usize],
            _ => &[],
        }
    }

    /// How many bits [`KeyColumn::number`] has; none for values of varying length.
    fn bits(&self) -> Option<u32> {
        Some(match self {
            Self::Boolean(_) | Self::TinyInt(_) => 8,
            Self::SmallInt(_) => 16,
            Self::Int(_) | Self::Float(_) => 32,
            Self::BigInt(_) | Self::Double(_) | Self::Millis(..) | Self::Micros(..) => 64,
            Self::Decimal(..) => 128,
            Self::Bytes(..) => return None,
        })
    }

    /// A number that grows with the value. (The casts keep all bits; flipping the sign bit makes them ascend.)
    fn number(&self, row: usize) -> u128 {
        match self {
            Self::Boolean(values) => values.value(row).into(),
            Self::TinyInt(values) => (values[row] as u8 ^ 1 << 7).into(),
            Self::SmallInt(values) => (values[row] as u16 ^ 1 << 15).into(),
            Self::Int(values) => (values[row] as u32 ^ 1 << 31).into(),
            Self::BigInt(values) | Self::Millis(values, _) | Self::Micros(values, _) => {
                (values[row] as u64 ^ 1 << 63).into()
            }
            Self::Float(values) => {
                let bits = values[row].to_bits();
                (bits ^ ((bits as i32 >> 31) as u32 | 1 << 31)).into()
            }
            Self::Double(values) => {
                let bits = values[row].to_bits();
                (bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)).into()
            }
            Self::Decimal(values, _) => values[row] as u128 ^ 1 << 127,
            Self::Bytes(..) => unreachable!("values of varying length are no numbers"),
        }
    }

    /// Appends bytes that compare as the value does, whatever follows: a zero byte becomes 0 1, the end 0 0.
    fn append_sortable(&self, row: usize, out: &mut Vec<u8>) {
        let Some(bits) = self.bits() else {
            for &byte in self.bytes(row) {
                out.push(byte);
                if byte == 0 {
                    out.push(1);
                }
            }
            return out.extend_from_slice(&[0, 0]);
        };
        let number = self.number(row).to_be_bytes();
        out.extend_from_slice(&number[16 - bits as usize / 8..]);
    }
}

/// A key value that outlives its batch.
#[derive(Clone, Debug)]
enum OwnedDatum {
    Plain(Datum<'static>),
    Bytes(Vec<u8>),
}

/// The first and last key of rows that come in order, and each key column's least and greatest value.
#[derive(Debug, Default)]
pub struct KeyRange {
    first: Vec<OwnedDatum>,
    last: Vec<OwnedDatum>,
    least: Vec<OwnedDatum>,
    greatest: Vec<OwnedDatum>,
}

impl KeyRange {
    /// Takes in the rows that follow.
    pub fn extend(&mut self, keys: &KeyColumns<'_>, row_count: usize) {
        let owned =
            |row: usize| keys.columns.iter().map(|column| OwnedDatum::of(column.datum(row))).collect::<Vec<_>>();
        if self.first.is_empty() {
            self.first = owned(0);
            self.least = owned(0);
            self.greatest = owned(0);
        }
        self.last = owned(row_count - 1);
        for (place, column) in keys.columns.iter().enumerate() {
            // Rows are sorted, so only the columns behind the first need a look at every row.
            let last = [row_count - 1];
            let rows: &mut dyn Iterator<Item = usize> =
                if place == 0 { &mut last.into_iter() } else { &mut (0..row_count) };
            for row in rows {
                let datum = column.datum(row);
                if compare(&datum, &self.least[place].as_datum()) == Ordering::Less {
                    self.least[place] = OwnedDatum::of(datum);
                }
                if compare(&datum, &self.greatest[place].as_datum()) == Ordering::Greater {
                    self.greatest[place] = OwnedDatum::of(datum);
                }
            }
        }
    }

    /// The key of the first row.
    pub fn first(&self) -> Vec<Option<Datum<'_>>> {
        as_row(&self.first)
    }

    /// The key of the last row.
    pub fn last(&self) -> Vec<Option<Datum<'_>>> {
        as_row(&self.last)
    }

    /// The least value of each column.
    pub fn least(&self) -> Vec<Option<Datum<'_>>> {
        as_row(&self.least)
    }

    /// The greatest value of each column.
    pub fn greatest(&self) -> Vec<Option<Datum<'_>>> {
        as_row(&self.greatest)
    }
}

impl OwnedDatum {
    fn of(datum: Datum<'_>) -> Self {
        Self::Plain(match datum {
            Datum::Bytes(bytes) => return Self::Bytes(bytes.to_vec()),
            Datum::Boolean(value) => Datum::Boolean(value),
            Datum::TinyInt(value) => Datum::TinyInt(value),
            Datum::SmallInt(value) => Datum::SmallInt(value),
            Datum::Int(value) => Datum::Int(value),
            Datum::BigInt(value) => Datum::BigInt(value),
            Datum::Float(value) => Datum::Float(value),
            Datum::Double(value) => Datum::Double(value),
            Datum::Decimal(value, precision) => Datum::Decimal(value, precision),
            Datum::Timestamp(value, fraction) => Datum::Timestamp(value, fraction),
        })
    }

    fn as_datum(&self) -> Datum<'_> {
        match self {
            Self::Plain(datum) => *datum,
            Self::Bytes(bytes) => Datum::Bytes(bytes),
        }
    }
}

fn as_row(values: &[OwnedDatum]) -> Vec<Option<Datum<'_>>> {
    values.iter().map(|value| Some(value.as_datum())).collect()
}

/// Orders two values of one column.
pub fn compare(one: &Datum<'_>, other: &Datum<'_>) -> Ordering {
    match (one, other) {
        (Datum::Boolean(one), Datum::Boolean(other)) => one.cmp(other),
        (Datum::TinyInt(one), Datum::TinyInt(other)) => one.cmp(other),
        (Datum::SmallInt(one), Datum::SmallInt(other)) => one.cmp(other),
        (Datum::Int(one), Datum::Int(other)) => one.cmp(other),
        (Datum::BigInt(one), Datum::BigInt(other)) => one.cmp(other),
        (Datum::Float(one), Datum::Float(other)) => one.total_cmp(other),
        (Datum::Double(one), Datum::Double(other)) => one.total_cmp(other),
        (Datum::Decimal(one, _), Datum::Decimal(other, _)) => one.cmp(other),
        (Datum::Bytes(one), Datum::Bytes(other)) => one.cmp(other),
        (Datum::Timestamp(one, _), Datum::Timestamp(other, _)) => one.cmp(other),
        _ => unreachable!("values of one column have one type"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;

    use super::super::binary_row::Datum;
    use super::*;

    /// Each list ascends strictly; its sort keys must, too.
    #[test]
    fn sort_keys_stand_in_the_order_of_the_values() {
        let columns: Vec<(ArrayRef, LakeType)> = vec![
            (Arc::new(BooleanArray::from(vec![false, true])), LakeType::Boolean),
            (Arc::new(Int8Array::from(vec![i8::MIN, -1, 0, 1, i8::MAX])), LakeType::TinyInt),
            (Arc::new(Int16Array::from(vec![i16::MIN, -1, 0, i16::MAX])), LakeType::SmallInt),
            (Arc::new(Int32Array::from(vec![i32::MIN, -1, 0, i32::MAX])), LakeType::Int),
            (Arc::new(Date32Array::from(vec![-719_162, -1, 0, 2_932_896])), LakeType::Date),
            (Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, i64::MAX])), LakeType::BigInt),
            (Arc::new(Float32Array::from(vec![f32::MIN, -1.0, -0.0, 0.0, 1e-9, f32::MAX])), LakeType::Float),
            (Arc::new(Float64Array::from(vec![f64::MIN, -1.0, -0.0, 0.0, 1e-9, f64::MAX])), LakeType::Double),
            (
                Arc::new(
                    Decimal128Array::from(vec![i128::MIN, -1, 0, i128::MAX]).with_precision_and_scale(38, 0).unwrap(),
                ),
                LakeType::Decimal(38, 0),
            ),
            (Arc::new(StringArray::from(vec!["", "\0", "\0a", "a", "a\0", "aa", "b", "ü"])), LakeType::String),
            (
                Arc::new(BinaryArray::from_vec(vec![b"", b"\0", b"\0\0", b"\0\x01", b"\xff", b"\xff\0"])),
                LakeType::Bytes,
            ),
            (Arc::new(TimestampMillisecondArray::from(vec![-5, 0, 7])), LakeType::Timestamp(3)),
            (Arc::new(TimestampMicrosecondArray::from(vec![-5, 0, 7])), LakeType::LocalTimestamp(6)),
        ];
        for (array, ty) in &columns {
            let keys = KeyColumns::new([(array, *ty)].into_iter());
            assert_ascends(&keys.sort_keys(array.len()), &format!("{ty:?}"));
        }
    }

    #[test]
    fn later_columns_decide_only_between_equal_earlier_ones() {
        let first: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "a\0", "b"]));
        let second: ArrayRef = Arc::new(Int64Array::from(vec![-1, 1, -2, -3]));
        let types = [LakeType::String, LakeType::BigInt];
        assert_ascends(&KeyColumns::new([&first, &second].into_iter().zip(types)).sort_keys(4), "text and number");
        let first: ArrayRef = Arc::new(Int32Array::from(vec![-1, -1, 0, 1]));
        let keys = KeyColumns::new([&first, &second].into_iter().zip([LakeType::Int, LakeType::BigInt]));
        assert!(matches!(keys.sort_keys(4), SortKeys::Wide(_)));
        assert_ascends(&keys.sort_keys(4), "two numbers");
    }

    #[test]
    fn the_range_has_the_least_and_greatest_of_every_column() {
        let first: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2]));
        let second: ArrayRef = Arc::new(StringArray::from(vec!["b", "z", "a"]));
        let keys = KeyColumns::new([&first, &second].into_iter().zip([LakeType::Int, LakeType::String]));
        let mut range = KeyRange::default();
        range.extend(&keys, 3);
        let row = |number, text: &'static str| vec![Some(Datum::Int(number)), Some(Datum::Bytes(text.as_bytes()))];
        assert_eq!(range.first(), row(1, "b"));
        assert_eq!(range.last(), row(2, "a"));
        assert_eq!(range.least(), row(1, "a"));
        assert_eq!(range.greatest(), row(2, "z"));
    }

    fn assert_ascends(keys: &SortKeys, what: &str) {
        let ascends = match keys {
            SortKeys::Narrow(keys) => keys.is_sorted_by(|one, next| one < next),
            SortKeys::Wide(keys) => keys.is_sorted_by(|one, next| one < next),
            SortKeys::Bytes(bytes, ends) => {
                let starts = std::iter::once(&0).chain(ends);
                let keys: Vec<_> = starts.zip(ends).map(|(&start, &end)| &bytes[start..end]).collect();
                keys.is_sorted_by(|one, next| one < next)
            }
        };
        assert!(ascends, "{what}: {keys:?}");
    }
}
