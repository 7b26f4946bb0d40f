//! Avro object container files: a header with schema and codec, then blocks of encoded values.

use std::io::Read;

use super::value::{Decoder, ITEMS_MAX};
use super::{AvroError, AvroType, Encoder, Value};

const MAGIC: &[u8; 4] = b"Obj\x01";
const SYNC_LENGTH: usize = 16;
/// Largest block, unpacked; Paimon's own are far below.
const BLOCK_BYTES_MAX: u64 = 256 << 20;

/// A file of one block, not compressed: every reader of Avro can read it.
///
/// `records` are the encoded values one behind the other; `sync` marks the block's end and must be random.
pub fn write_file(schema: &str, record_count: usize, records: &[u8], sync: [u8; SYNC_LENGTH]) -> Vec<u8> {
    let metadata: [(&[u8], &[u8]); 2] = [(b"avro.schema", schema.as_bytes()), (b"avro.codec", b"null")];
    let mut out = Encoder::default();
    out.raw(MAGIC);
    out.array(&metadata, |out, (key, value)| {
        out.bytes(key).bytes(value);
    });
    out.raw(&sync);
    if record_count > 0 {
        out.long(record_count as i64).bytes(records).raw(&sync); // counts are below 2^63
    }
    out.finish()
}

/// All values of a file of codec null, snappy or zstandard.
pub fn read_file(bytes: &[u8]) -> Result<Vec<Value>, AvroError> {
    let mut file = Decoder::new(bytes);
    if file.take(MAGIC.len())? != MAGIC {
        return Err(AvroError::new("no avro file"));
    }
    let header = file.blocks(|file| Ok((file.bytes()?, file.bytes()?)))?;
    let entry = |name: &[u8]| header.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let schema = entry(b"avro.schema").ok_or_else(|| AvroError::new("file without a schema"))?;
    let codec = entry(b"avro.codec").unwrap_or(b"null");
    let ty = AvroType::parse(schema)?;
    let sync = file.take(SYNC_LENGTH)?;
    let mut values = Vec::new();
    while !file.is_at_end() {
        let count = usize::try_from(file.long()?).ok().filter(|&count| count <= ITEMS_MAX);
        let count = count.ok_or_else(|| AvroError::new("block of an impossible number of values"))?;
        let block = unpack(codec, file.bytes()?)?;
        let mut block = Decoder::new(&block);
        for _ in 0..count {
            values.push(block.value(&ty)?);
        }
        if !block.is_at_end() || file.take(SYNC_LENGTH)? != sync {
            return Err(AvroError::new("block that does not end where it should"));
        }
    }
    Ok(values)
}

fn unpack(codec: &[u8], block: &[u8]) -> Result<Vec<u8>, AvroError> {
    match codec {
        b"null" => Ok(block.to_vec()),
        b"snappy" => unpack_snappy(block),
        b"zstandard" => unpack_zstandard(block),
        other => Err(AvroError::new(format!("codec {} is not read", String::from_utf8_lossy(other)))),
    }
}

/// Raw snappy, then the CRC-32 of what it unpacks to, big-endian.
fn unpack_snappy(block: &[u8]) -> Result<Vec<u8>, AvroError> {
    let broken = |_| AvroError::new("broken snappy block");
    let (packed, checksum) =
        block.split_last_chunk::<4>().ok_or_else(|| AvroError::new("snappy block without a checksum"))?;
    if snap::raw::decompress_len(packed).map_err(broken)? as u64 > BLOCK_BYTES_MAX {
        return Err(AvroError::new("snappy block that unpacks to too much"));
    }
    let unpacked = snap::raw::Decoder::new().decompress_vec(packed).map_err(broken)?;
    if crc32fast::hash(&unpacked).to_be_bytes() != *checksum {
        return Err(AvroError::new("snappy block whose checksum differs"));
    }
    Ok(unpacked)
}

fn unpack_zstandard(block: &[u8]) -> Result<Vec<u8>, AvroError> {
    let broken = |what: String| AvroError::new(format!("broken zstandard block: {what}"));
    let decoder = ruzstd::decoding::StreamingDecoder::new(block).map_err(|error| broken(error.to_string()))?;
    let mut unpacked = Vec::new();
    decoder.take(BLOCK_BYTES_MAX + 1).read_to_end(&mut unpacked).map_err(|error| broken(error.to_string()))?;
    if unpacked.len() as u64 > BLOCK_BYTES_MAX {
        return Err(broken("it unpacks to too much".into()));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[
        {"name":"n","type":"long"},
        {"name":"t","type":["null","string"],"default":null},
        {"name":"a","type":{"type":"array","items":["null","int"]}},
        {"name":"when","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}]}"#;

    fn records() -> (usize, Vec<u8>) {
        let mut out = Encoder::default();
        for n in [0, 1, -1, i64::MIN, i64::MAX] {
            out.long(n);
            out.optional((n != 0).then_some("text"), |out, text| {
                out.bytes(text.as_bytes());
            });
            out.array(&[1i64, 2], |out, item| {
                out.optional(Some(*item), |out, item| {
                    out.long(item);
                });
            });
            out.optional(None::<i64>, |_, _| ());
        }
        (5, out.finish())
    }

    fn with_codec(codec: &str, block: &[u8]) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(MAGIC);
        out.array(&[("avro.schema", SCHEMA), ("avro.codec", codec)], |out, (key, value)| {
            out.bytes(key.as_bytes()).bytes(value.as_bytes());
        });
        out.raw(&[7; 16]).long(5).bytes(block).raw(&[7; 16]);
        out.finish()
    }

    #[test]
    fn what_is_written_is_read() {
        let (count, records) = records();
        let values = read_file(&write_file(SCHEMA, count, &records, [7; 16])).unwrap();
        assert_eq!(values.len(), 5);
        assert_eq!(values[3].field("n"), Some(&Value::Long(i64::MIN)));
        assert_eq!(values[0].field("t"), Some(&Value::Null));
        assert_eq!(values[1].field("t"), Some(&Value::Bytes(b"text".into())));
        assert_eq!(values[1].field("a"), Some(&Value::Array(vec![Value::Long(1), Value::Long(2)])));
        assert!(read_file(&write_file(SCHEMA, 0, &[], [7; 16])).unwrap().is_empty());
    }

    #[test]
    fn compressed_blocks_are_read_and_broken_ones_refused() {
        let (_, records) = records();
        let plain = read_file(&with_codec("null", &records)).unwrap();
        let mut packed = snap::raw::Encoder::new().compress_vec(&records).unwrap();
        packed.extend_from_slice(&crc32fast::hash(&records).to_be_bytes());
        assert_eq!(read_file(&with_codec("snappy", &packed)).unwrap(), plain);
        *packed.last_mut().unwrap() ^= 1;
        assert!(read_file(&with_codec("snappy", &packed)).unwrap_err().0.contains("checksum"));
        let packed = ruzstd::encoding::compress_to_vec(&records[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(read_file(&with_codec("zstandard", &packed)).unwrap(), plain);
        assert!(read_file(&with_codec("zstandard", &records)).is_err());
        assert!(read_file(&with_codec("bzip2", &records)).unwrap_err().0.contains("bzip2"));
    }

    #[test]
    fn no_cut_of_a_file_is_taken_for_a_whole_one() {
        let (count, records) = records();
        let file = write_file(SCHEMA, count, &records, [7; 16]);
        let header = write_file(SCHEMA, 0, &[], [7; 16]).len();
        for length in (0..file.len()).filter(|&length| length != header) {
            assert!(read_file(&file[..length]).is_err(), "{length} bytes of {}", file.len());
        }
    }

    #[test]
    fn lists_without_end_are_refused() {
        let mut records = Encoder::default();
        records.long(1).long(0).long(i64::MAX);
        let file = write_file(SCHEMA, 1, &records.finish(), [7; 16]);
        assert!(read_file(&file).unwrap_err().0.contains("too many"));
    }
}
