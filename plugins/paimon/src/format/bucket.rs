//! Which bucket a row lies in: Paimon's murmur hash of its key.

/// The seed that Paimon hashes rows with.
const SEED: u32 = 42;

/// The bucket of a key, given as a binary row without its arity.
pub fn bucket_of(row: &[u8], bucket_count: u32) -> u32 {
    let hash = hash_words(row) as i32; // Java's int: the same bits
    (hash % bucket_count as i32).unsigned_abs() // bucket counts are far below 2^31
}

/// Murmur3 over whole words; binary rows are always a multiple of eight bytes long.
fn hash_words(row: &[u8]) -> u32 {
    let mut hash = SEED;
    for word in row.chunks_exact(4) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        hash ^= word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= row.len() as u32; // a key is below 4 GiB
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::super::binary_row::{Datum, write_row};
    use super::*;

    #[test]
    fn buckets_and_hashes_are_those_of_paimon() {
        // Computed by Paimon 1.4.2.
        let rows: &[(Datum<'_>, i32, u32)] = &[
            (Datum::Int(0), -300_363_099, 1),
            (Datum::Int(1), 1_465_514_398, 5),
            (Datum::Int(-1), 1_133_687_267, 6),
            (Datum::Int(42), 907_821_237, 1),
            (Datum::Int(i32::MIN), 916_225_219, 0),
            (Datum::Int(i32::MAX), -1_125_657_321, 5),
            (Datum::BigInt(0), -300_363_099, 1),
            (Datum::BigInt(-1), -821_098_432, 0),
            (Datum::BigInt(i64::MIN), 302_122_119, 5),
            (Datum::BigInt(i64::MAX), -1_566_569_095, 0),
            (Datum::Bytes(b""), 302_122_119, 5),
            (Datum::Bytes(b"a"), 943_281_246, 5),
            (Datum::Bytes(b"1234567"), 199_144_172, 3),
            (Datum::Bytes(b"12345678"), -391_021_801, 2),
            (Datum::Bytes("grüße, welt".as_bytes()), 1_766_199_800, 1),
        ];
        for &(datum, hash, bucket) in rows {
            let mut row = Vec::new();
            write_row(&[Some(datum)], &mut row);
            assert_eq!(hash_words(&row) as i32, hash, "{datum:?}");
            assert_eq!(bucket_of(&row, 7), bucket, "{datum:?}");
        }
    }
}
