use bytes::Bytes;
use cdchost_model::{ChangeSeq, Lineage, SourceOffset};

use super::format::{
    FORMAT, Fence, Note, SlotObject, decode_slot, digest_of, encode_fence, encode_note, encode_record,
};
use super::*;
use crate::DecodeError;

/// A record with something in every field.
pub(crate) fn sample() -> Record {
    let state = |text: &'static str| StateBlob { format: 3, payload: text.into() };
    let item = |key: &str, payload: &'static [u8]| Committable {
        epoch: Epoch(7),
        generation: Generation(4),
        key: key.into(),
        format: 2,
        payload: Bytes::from_static(payload),
        rows: 11,
        bytes: 1234,
    };
    let sink = |id: &str, items| {
        SinkRecord::new(id.into(), "paimon 0.1.0".into(), [9; 32], vec![state("w0"), state("")], items)
    };
    let mut record = Record {
        pipeline: "sales".into(),
        slot: Slot(6),
        parent: Some(Parent { slot: Slot(5), epoch: Epoch(5), digest: [1; 32] }),
        cut: Cut {
            epoch: Epoch(7),
            generation: Generation(4),
            lineage: Lineage("5f-1".into()),
            offset: SourceOffset(Bytes::from_static(b"uuid:1-17")),
            change_seq: ChangeSeq(99),
            path_digest: [2; 32],
            tables_digest: [3; 32],
            end_of_input: true,
        },
        source: state("chunks"),
        tables: vec![TableVersion { table: TableId::new("shop", "orders"), version: SchemaVersion(1) }],
        sinks: vec![
            sink("lake", vec![item("shop.orders", b"\0\x01\xff"), item("shop.items", b"")]),
            sink("log", vec![]),
        ],
        created_micros: 1_700_000_000_000_000,
        config: r#"{"pipeline":{"name":"sales"}}"#.into(),
        digest: [0; 32],
    };
    record.digest = digest_of(&encode_record(&record));
    record
}

fn decoded(object: &Bytes) -> Record {
    match decode_slot(object).unwrap() {
        SlotObject::Record(record) => *record,
        SlotObject::Fence(fence) => panic!("{fence:?}"),
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let record = sample();
    assert_eq!(decoded(&encode_record(&record)), record);
}

#[test]
fn a_fence_is_read_as_it_was_written() {
    let fence = Fence { pipeline: "sales".into(), generation: Generation(4), created_micros: 5, nonce: u64::MAX };
    assert_eq!(decode_slot(&encode_fence(&fence)).unwrap(), SlotObject::Fence(fence));
    let note = encode_note(&Note { pipeline: "sales".into(), epoch: Epoch(7) });
    assert!(matches!(decode_slot(&note), Err(DecodeError::Content(_))));
}

/// Frozen: records of this format lie in people's stores.
#[test]
fn the_kept_example_of_format_1_is_read_and_written_byte_for_byte() {
    let kept = include_bytes!("kept/record-1.bin");
    assert_eq!(decoded(&Bytes::from_static(kept)), sample());
    assert!(encode_record(&sample()) == kept[..], "the format has changed: give it a new number and an upgrade");
}

#[test]
fn a_record_torn_at_any_byte_is_not_read() {
    let whole = encode_record(&sample());
    for length in 0..whole.len() {
        assert!(decode_slot(&whole.slice(..length)).is_err(), "{length} bytes");
    }
    let mut longer = whole.to_vec();
    longer.push(0);
    assert!(decode_slot(&longer.into()).is_err());
}

#[test]
fn a_record_with_any_bit_flipped_is_not_read() {
    let whole = encode_record(&sample());
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_slot(&flipped.into()).is_err(), "bit {bit}");
    }
}

/// Changes bytes and puts the checksum right again, as an enemy would.
fn resealed(change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    use sha2::{Digest, Sha256};
    let whole = encode_record(&sample());
    let mut bytes = whole[..whole.len() - 32].to_vec();
    change(&mut bytes);
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes.into()
}

#[test]
fn a_newer_format_is_named_with_both_versions() {
    let newer = resealed(|bytes| bytes[8] = 2);
    assert_eq!(decode_slot(&newer), Err(DecodeError::Format { found: 2, known: FORMAT }));
}

#[test]
fn parts_outside_the_body_and_unknown_keys_are_refused() {
    let swap = |from: &str, to: &str| {
        resealed(|bytes| {
            let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        })
    };
    for (from, to) in
        [("\"offset\":15", "\"offset\":95"), ("\"length\":9", "\"length\":-"), ("\"pipeline\":", "\"pipelinE\":")]
    {
        assert!(matches!(decode_slot(&swap(from, to)), Err(DecodeError::Content(_))), "{from}");
    }
}

#[test]
fn lengths_that_would_overflow_are_refused() {
    for at in 12..24 {
        let huge = resealed(|bytes| bytes[at] = 0xff);
        assert!(decode_slot(&huge).is_err(), "byte {at}");
    }
}

#[test]
fn permits_carry_the_cut_and_what_was_prepared() {
    let record = sample();
    let permits = record.permits();
    let shown: Vec<_> = permits.iter().map(|p| (p.sink(), p.cut() == &record.cut, p.items().len())).collect();
    assert_eq!(shown, [("lake", true, 2), ("log", true, 0)]);
}
