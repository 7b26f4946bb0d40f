//! Paimon's binary row: fixed eight-byte slots behind a bitmap of NULLs, long values in a part behind them.

use super::schema::LakeType;

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum<'a> {
    /// BOOLEAN.
    Boolean(bool),
    /// TINYINT.
    TinyInt(i8),
    /// SMALLINT.
    SmallInt(i16),
    /// INT, or DATE as days.
    Int(i32),
    /// BIGINT.
    BigInt(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL: the digits without the point, and how many digits the type has in all.
    Decimal(i128, u8),
    /// STRING or BYTES.
    Bytes(&'a [u8]),
    /// A timestamp of either kind: microseconds, and the type's fraction digits.
    Timestamp(i64, u8),
}

/// Most digits of a DECIMAL that still lie in the slot itself.
const COMPACT_DECIMAL_MAX: u8 = 18;
/// Most fraction digits of a timestamp that still lies in the slot itself, as milliseconds.
const COMPACT_TIMESTAMP_MAX: u8 = 3;
/// Longest string that lies in the slot itself.
const INLINE_BYTES_MAX: usize = 7;

/// Appends the row without the arity in front of it: what buckets are computed of.
pub fn write_row(values: &[Option<Datum<'_>>], out: &mut Vec<u8>) {
    let start = out.len();
    let nulls = (values.len() + 63 + 8) / 64 * 8;
    out.resize(start + nulls + values.len() * 8, 0);
    for (place, value) in values.iter().enumerate() {
        let slot = start + nulls + place * 8;
        match value {
            None => out[start + (place + 8) / 8] |= 1 << ((place + 8) % 8),
            Some(value) => write_value(*value, start, slot, out),
        }
    }
}

/// The row as manifests hold it: the number of its fields (four bytes, big-endian), then the row.
pub fn serialize_row(values: &[Option<Datum<'_>>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + 8 + values.len() * 16);
    out.extend_from_slice(&(values.len() as u32).to_be_bytes()); // a table has fewer than 2^32 columns
    write_row(values, &mut out);
    out
}

/// The row without fields: the partition of a table that has none, and statistics left out.
pub fn empty_row() -> Vec<u8> {
    serialize_row(&[])
}

/// The values of a row in its form with arity; none if it is not one of these types.
pub fn read_row<'a>(bytes: &'a [u8], types: &[LakeType]) -> Option<Vec<Option<Datum<'a>>>> {
    let (arity, row) = bytes.split_first_chunk::<4>()?;
    if usize::try_from(u32::from_be_bytes(*arity)).ok()? != types.len() {
        return None;
    }
    let nulls = (types.len() + 63 + 8) / 64 * 8;
    let value = |(place, ty): (usize, &LakeType)| {
        let is_null = row.get((place + 8) / 8)? & 1 << ((place + 8) % 8) != 0;
        let slot = row.get(nulls + place * 8..)?.first_chunk::<8>()?;
        if is_null { Some(None) } else { read_value(*ty, slot, row).map(Some) }
    };
    types.iter().enumerate().map(value).collect()
}

/// The casts take the low bytes of a slot, as they were put there.
fn read_value<'a>(ty: LakeType, slot: &'a [u8; 8], row: &'a [u8]) -> Option<Datum<'a>> {
    let number = u64::from_le_bytes(*slot);
    let (place, length) = ((number >> 32) as usize, number as u32 as usize);
    Some(match ty {
        LakeType::Boolean => Datum::Boolean(slot[0] != 0),
        LakeType::TinyInt => Datum::TinyInt(number as i8),
        LakeType::SmallInt => Datum::SmallInt(number as i16),
        LakeType::Int | LakeType::Date => Datum::Int(number as i32),
        LakeType::BigInt => Datum::BigInt(number as i64),
        LakeType::Float => Datum::Float(f32::from_bits(number as u32)),
        LakeType::Double => Datum::Double(f64::from_bits(number)),
        LakeType::Decimal(precision @ ..=COMPACT_DECIMAL_MAX, _) => Datum::Decimal((number as i64).into(), precision),
        LakeType::Decimal(precision, _) => {
            let bytes = row.get(place..place.checked_add(length)?)?;
            let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
            let mut whole = [sign; 16];
            whole.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
            Datum::Decimal(i128::from_be_bytes(whole), precision)
        }
        LakeType::String | LakeType::Bytes if slot[7] & 0x80 != 0 => {
            Datum::Bytes(slot.get(..usize::from(slot[7] & 0x7f))?)
        }
        LakeType::String | LakeType::Bytes => Datum::Bytes(row.get(place..place.checked_add(length)?)?),
        LakeType::Timestamp(fraction @ ..=COMPACT_TIMESTAMP_MAX)
        | LakeType::LocalTimestamp(fraction @ ..=COMPACT_TIMESTAMP_MAX) => {
            Datum::Timestamp((number as i64).checked_mul(1000)?, fraction)
        }
        LakeType::Timestamp(fraction) | LakeType::LocalTimestamp(fraction) => {
            let millis = i64::from_le_bytes(*row.get(place..)?.first_chunk::<8>()?);
            Datum::Timestamp(millis.checked_mul(1000)?.checked_add(length as i64 / 1000)?, fraction)
        }
    })
}

fn write_value(value: Datum<'_>, start: usize, slot: usize, out: &mut Vec<u8>) {
    let fixed: [u8; 8] = match value {
        Datum::Boolean(value) => u64::from(value).to_le_bytes(),
        Datum::TinyInt(value) => u64::from(value as u8).to_le_bytes(), // the slot's other bytes stay zero
        Datum::SmallInt(value) => u64::from(value as u16).to_le_bytes(), // likewise
        Datum::Int(value) => u64::from(value as u32).to_le_bytes(),    // likewise
        Datum::BigInt(value) => value.to_le_bytes(),
        Datum::Float(value) => u64::from(value.to_bits()).to_le_bytes(),
        Datum::Double(value) => value.to_bits().to_le_bytes(),
        Datum::Decimal(value, precision) if precision <= COMPACT_DECIMAL_MAX => {
            (value as i64).to_le_bytes() // 18 digits fit
        }
        Datum::Decimal(value, _) => {
            let (bytes, length) = big_integer(value);
            let offset = append(&bytes, 16, start, out);
            place_and_length(offset, length)
        }
        Datum::Bytes(bytes) if bytes.len() <= INLINE_BYTES_MAX => {
            let mut inline = [0; 8];
            inline[..bytes.len()].copy_from_slice(bytes);
            inline[7] = 0x80 | bytes.len() as u8; // at most 7
            inline
        }
        Datum::Bytes(bytes) => {
            let offset = append(bytes, bytes.len().next_multiple_of(8), start, out);
            place_and_length(offset, bytes.len())
        }
        Datum::Timestamp(micros, fraction) if fraction <= COMPACT_TIMESTAMP_MAX => {
            micros.div_euclid(1000).to_le_bytes()
        }
        Datum::Timestamp(micros, _) => {
            let nanos_of_milli = micros.rem_euclid(1000) as usize * 1000; // below a million
            let offset = append(&micros.div_euclid(1000).to_le_bytes(), 8, start, out);
            place_and_length(offset, nanos_of_milli)
        }
    };
    out[slot..slot + 8].copy_from_slice(&fixed);
}

/// Appends the bytes, padded with zeros to `room`; gives their place counted from the row's start.
fn append(bytes: &[u8], room: usize, start: usize, out: &mut Vec<u8>) -> usize {
    let offset = out.len() - start;
    out.extend_from_slice(bytes);
    out.resize(start + offset + room, 0);
    offset
}

fn place_and_length(offset: usize, length: usize) -> [u8; 8] {
    ((offset as u64) << 32 | length as u64).to_le_bytes()
}

/// The shortest big-endian two's complement form, left-aligned, and its length.
fn big_integer(value: i128) -> ([u8; 16], usize) {
    let spare_bits = if value < 0 { value.leading_ones() } else { value.leading_zeros() } - 1;
    let length = 16 - spare_bits as usize / 8;
    let mut bytes = [0; 16];
    bytes[..length].copy_from_slice(&value.to_be_bytes()[16 - length..]);
    (bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn rows_are_byte_for_byte_those_of_paimon() {
        // Rows that Paimon 1.4.2 wrote into manifests.
        let id = serialize_row(&[Some(Datum::Int(1))]);
        assert_eq!(hex(&id), "0000000100000000000000000100000000000000");
        let row = [Some(Datum::Int(1)), Some(Datum::Bytes(b"n1-1")), Some(Datum::Timestamp(1_700_000_000_000_001, 6))];
        assert_eq!(
            hex(&serialize_row(&row)),
            "00000003\
             0000000000000000\
             0100000000000000\
             6e312d3100000084\
             e803000020000000\
             0068e5cf8b010000"
        );
        assert_eq!(hex(&empty_row()), "000000000000000000000000");
        // And rows that its writer made of every kind of value.
        let mut row = Vec::new();
        let values = [
            Datum::Boolean(true),
            Datum::TinyInt(-2),
            Datum::SmallInt(-300),
            Datum::Int(-70_000),
            Datum::BigInt(-5_000_000_000),
            Datum::Float(-1.5),
            Datum::Double(2.25),
            Datum::Decimal(-1_234_567, 10),
            Datum::Decimal(i128::from(u64::MAX), 20),
            Datum::Bytes(&[0, 255, 1, 2, 3, 4, 5, 6, 7, 8]),
        ];
        write_row(&values.map(Some), &mut row);
        assert_eq!(
            hex(&row),
            "00000000000000000100000000000000fe00000000000000d4fe00000000000090eefeff00000000000efad5feffffff\
             0000c0bf0000000000000000000002407929edffffffffff09000000580000000a0000006800000000ffffffffffffff\
             ff0000000000000000ff0102030405060708000000000000"
        );
        let mut row = Vec::new();
        write_row(&[Some(Datum::Timestamp(-1, 3)), Some(Datum::Timestamp(-1, 6)), None], &mut row);
        assert_eq!(hex(&row), "0004000000000000ffffffffffffffff583e0f00200000000000000000000000ffffffffffffffff");
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let values = [
            (LakeType::Boolean, Datum::Boolean(true)),
            (LakeType::TinyInt, Datum::TinyInt(-2)),
            (LakeType::SmallInt, Datum::SmallInt(-300)),
            (LakeType::Int, Datum::Int(-70_000)),
            (LakeType::Date, Datum::Int(-1)),
            (LakeType::BigInt, Datum::BigInt(i64::MIN)),
            (LakeType::Float, Datum::Float(-1.5)),
            (LakeType::Double, Datum::Double(2.25)),
            (LakeType::Decimal(10, 2), Datum::Decimal(-1_234_567, 10)),
            (LakeType::Decimal(20, 0), Datum::Decimal(u64::MAX.into(), 20)),
            (LakeType::Decimal(38, 0), Datum::Decimal(-1, 38)),
            (LakeType::String, Datum::Bytes(b"")),
            (LakeType::String, Datum::Bytes(b"1234567")),
            (LakeType::Bytes, Datum::Bytes(b"12345678")),
            (LakeType::Timestamp(3), Datum::Timestamp(-1_000, 3)),
            (LakeType::LocalTimestamp(6), Datum::Timestamp(-1, 6)),
        ];
        let types: Vec<_> = values.iter().map(|(ty, _)| *ty).collect();
        let mut row: Vec<_> = values.iter().map(|(_, value)| Some(*value)).collect();
        for null in 0..row.len() {
            row[null] = None;
            assert_eq!(read_row(&serialize_row(&row), &types).unwrap(), row);
        }
    }

    #[test]
    fn nulls_stand_in_the_bitmap_from_bit_eight_on() {
        let mut values = vec![Some(Datum::Int(0)); 60];
        values[0] = None;
        values[56] = None; // bit 64: the bitmap's second word
        let mut row = Vec::new();
        write_row(&values, &mut row);
        assert_eq!(row.len(), 16 + 60 * 8);
        assert_eq!((row[1], row[8]), (1, 1));
    }

    #[test]
    fn big_integers_are_as_short_as_java_makes_them() {
        for (value, expected) in [
            (0, "00"),
            (127, "7f"),
            (128, "0080"),
            (-128, "80"),
            (-129, "ff7f"),
            (i128::from(u64::MAX), "00ffffffffffffffff"),
        ] {
            let (bytes, length) = big_integer(value);
            assert_eq!(hex(&bytes[..length]), expected, "{value}");
        }
        assert_eq!(big_integer(i128::MIN).1, 16);
        assert_eq!(big_integer(i128::MAX).1, 16);
    }

    #[test]
    fn long_values_lie_behind_the_slots() {
        let mut row = Vec::new();
        write_row(
            &[Some(Datum::Bytes(b"12345678")), Some(Datum::Decimal(-1, 20)), Some(Datum::Bytes(b"1234567"))],
            &mut row,
        );
        assert_eq!(hex(&row[8..16]), "0800000020000000");
        assert_eq!(hex(&row[16..24]), "0100000028000000");
        assert_eq!(hex(&row[24..32]), "3132333435363787");
        assert_eq!(&row[32..40], b"12345678");
        assert_eq!(hex(&row[40..56]), "ff000000000000000000000000000000");
    }
}
