//! Objects as bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `cdchost\n` |
//! | 4 | format, little-endian |
//! | 4 | length of the head |
//! | 8 | length of the body |
//! | … | head: JSON, one key that says what the object is |
//! | … | body: offsets, states and payloads, one behind the other; the head says where each lies |
//! | 32 | SHA-256 of all before |

use bytes::Bytes;
use cdchost_model::{ChangeSeq, Committable, Cut, Epoch, Generation, Lineage, SourceOffset, StateBlob};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Parent, Record, SinkRecord, TableVersion};
use crate::{DecodeError, Slot};

/// The format that is written.
pub(crate) const FORMAT: u32 = 1;
/// Bytes of an object at most.
pub(crate) const OBJECT_BYTES_MAX: u64 = 256 << 20;
const HEAD_BYTES_MAX: u64 = 32 << 20;
const MAGIC: &[u8; 8] = b"cdchost\n";
const FIXED: usize = 24;
const CHECKSUM: usize = 32;

/// A run's place in the chain: nothing of an older run may follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Fence {
    pub(crate) pipeline: String,
    pub(crate) generation: Generation,
    pub(crate) created_micros: i64,
    /// Keeps two runs that claim the same slot from taking each other's fence for their own.
    pub(crate) nonce: u64,
}

/// That an epoch is committed at all sinks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) pipeline: String,
    pub(crate) epoch: Epoch,
}

/// What lies in a slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SlotObject {
    Fence(Fence),
    Record(Box<Record>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Head {
    Fence(Fence),
    Committed(Note),
    Record(Box<RecordHead>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RecordHead {
    pipeline: String,
    slot: Slot,
    parent: Option<ParentHead>,
    cut: CutHead,
    source: StateHead,
    tables: Vec<TableVersion>,
    sinks: Vec<SinkHead>,
    created_micros: i64,
    config: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ParentHead {
    slot: Slot,
    epoch: Epoch,
    digest: Hex,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CutHead {
    epoch: Epoch,
    generation: Generation,
    lineage: Lineage,
    offset: Span,
    change_seq: ChangeSeq,
    path_digest: Hex,
    tables_digest: Hex,
    end_of_input: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StateHead {
    format: u32,
    payload: Span,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SinkHead {
    id: String,
    version: String,
    digest: Hex,
    writers: Vec<StateHead>,
    committables: Vec<CommittableHead>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CommittableHead {
    epoch: Epoch,
    generation: Generation,
    key: String,
    format: u32,
    payload: Span,
    rows: u64,
    bytes: u64,
}

/// A stretch of the body.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Span {
    offset: u64,
    length: u64,
}

/// 32 bytes as 64 hex digits.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Hex([u8; 32]);

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        hex.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no SHA-256 in hex");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

pub(crate) fn encode_fence(fence: &Fence) -> Bytes {
    seal(&Head::Fence(fence.clone()), &[])
}

pub(crate) fn encode_note(note: &Note) -> Bytes {
    seal(&Head::Committed(note.clone()), &[])
}

/// The record's bytes; [`Record::digest`] is not among them.
pub(crate) fn encode_record(record: &Record) -> Bytes {
    let mut body = Body::default();
    let head = RecordHead {
        pipeline: record.pipeline.clone(),
        slot: record.slot,
        parent: record.parent.map(|p| ParentHead { slot: p.slot, epoch: p.epoch, digest: Hex(p.digest) }),
        cut: body.cut(&record.cut),
        source: body.state(&record.source),
        tables: record.tables.clone(),
        sinks: record.sinks.iter().map(|sink| body.sink(sink)).collect(),
        created_micros: record.created_micros,
        config: record.config.clone(),
    };
    seal(&Head::Record(Box::new(head)), &body.0)
}

/// SHA-256 that stands at the end of an encoded object.
pub(crate) fn digest_of(object: &Bytes) -> [u8; 32] {
    let at = object.len().saturating_sub(CHECKSUM);
    object[at..].try_into().expect("an encoded object ends with its checksum")
}

fn seal(head: &Head, body: &[u8]) -> Bytes {
    let head = serde_json::to_vec(head).expect("heads are plain data with text keys");
    let mut object = Vec::with_capacity(FIXED + head.len() + body.len() + CHECKSUM);
    object.extend_from_slice(MAGIC);
    object.extend_from_slice(&FORMAT.to_le_bytes());
    // An object beyond the limits is refused by its writer before it is stored.
    object.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    object.extend_from_slice(&(body.len() as u64).to_le_bytes());
    object.extend_from_slice(&head);
    object.extend_from_slice(body);
    let checksum = Sha256::digest(&object);
    object.extend_from_slice(&checksum);
    object.into()
}

pub(crate) fn decode_slot(object: &Bytes) -> Result<SlotObject, DecodeError> {
    let (head, body) = open(object)?;
    match head {
        Head::Fence(fence) => Ok(SlotObject::Fence(fence)),
        Head::Record(head) => record(*head, &body, digest_of(object)).map(|r| SlotObject::Record(Box::new(r))),
        Head::Committed(_) => Err(DecodeError::Content("it is a note where a record or a fence belongs".into())),
    }
}

/// Checks everything around the content: length, checksum, format; then reads the head.
fn open(object: &Bytes) -> Result<(Head, Bytes), DecodeError> {
    let found = object.len() as u64;
    if !object.starts_with(MAGIC) {
        return Err(DecodeError::Magic);
    }
    let number = |at: usize, length: usize| -> Option<u64> {
        let mut wide = [0; 8];
        wide[..length].copy_from_slice(object.get(at..at + length)?);
        Some(u64::from_le_bytes(wide))
    };
    let (Some(format), Some(head_length), Some(body_length)) = (number(8, 4), number(12, 4), number(16, 8)) else {
        return Err(DecodeError::Length { found, expected: (FIXED + CHECKSUM) as u64 });
    };
    let expected = (FIXED + CHECKSUM) as u64 + head_length.saturating_add(body_length);
    if expected != found {
        return Err(DecodeError::Length { found, expected });
    }
    let content = object.len() - CHECKSUM;
    if Sha256::digest(&object[..content])[..] != object[content..] {
        return Err(DecodeError::Checksum);
    }
    if format != u64::from(FORMAT) {
        return Err(DecodeError::Format { found: format as u32, known: FORMAT }); // it was read from 4 bytes
    }
    if head_length > HEAD_BYTES_MAX || found > OBJECT_BYTES_MAX {
        return Err(DecodeError::Content(format!("its {found} bytes are more than is allowed")));
    }
    let body_at = FIXED + head_length as usize; // below the limit just checked
    let head = serde_json::from_slice(&object[FIXED..body_at]).map_err(|e| DecodeError::Content(e.to_string()))?;
    Ok((head, object.slice(body_at..content)))
}

fn record(head: RecordHead, body: &Bytes, digest: [u8; 32]) -> Result<Record, DecodeError> {
    let cut = Cut {
        epoch: head.cut.epoch,
        generation: head.cut.generation,
        lineage: head.cut.lineage,
        offset: SourceOffset(head.cut.offset.cut(body)?),
        change_seq: head.cut.change_seq,
        path_digest: head.cut.path_digest.0,
        tables_digest: head.cut.tables_digest.0,
        end_of_input: head.cut.end_of_input,
    };
    Ok(Record {
        pipeline: head.pipeline,
        slot: head.slot,
        parent: head.parent.map(|p| Parent { slot: p.slot, epoch: p.epoch, digest: p.digest.0 }),
        cut,
        source: state(&head.source, body)?,
        tables: head.tables,
        sinks: head.sinks.into_iter().map(|s| sink(s, body)).collect::<Result<_, _>>()?,
        created_micros: head.created_micros,
        config: head.config,
        digest,
    })
}

fn sink(head: SinkHead, body: &Bytes) -> Result<SinkRecord, DecodeError> {
    let committable = |c: CommittableHead| {
        Ok(Committable {
            epoch: c.epoch,
            generation: c.generation,
            key: c.key,
            format: c.format,
            payload: c.payload.cut(body)?,
            rows: c.rows,
            bytes: c.bytes,
        })
    };
    Ok(SinkRecord {
        id: head.id,
        version: head.version,
        digest: head.digest.0,
        writers: head.writers.iter().map(|w| state(w, body)).collect::<Result<_, _>>()?,
        committables: head.committables.into_iter().map(committable).collect::<Result<_, _>>()?,
    })
}

fn state(head: &StateHead, body: &Bytes) -> Result<StateBlob, DecodeError> {
    Ok(StateBlob { format: head.format, payload: head.payload.cut(body)? })
}

impl Span {
    fn cut(&self, body: &Bytes) -> Result<Bytes, DecodeError> {
        let end = self.offset.checked_add(self.length).filter(|&end| end <= body.len() as u64);
        match end {
            Some(end) => Ok(body.slice(self.offset as usize..end as usize)), // both within the body
            None => Err(DecodeError::Content(format!("a part of {} bytes lies outside its body", self.length))),
        }
    }
}

#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn push(&mut self, bytes: &[u8]) -> Span {
        let span = Span { offset: self.0.len() as u64, length: bytes.len() as u64 };
        self.0.extend_from_slice(bytes);
        span
    }

    fn state(&mut self, state: &StateBlob) -> StateHead {
        StateHead { format: state.format, payload: self.push(&state.payload) }
    }

    fn cut(&mut self, cut: &Cut) -> CutHead {
        CutHead {
            epoch: cut.epoch,
            generation: cut.generation,
            lineage: cut.lineage.clone(),
            offset: self.push(&cut.offset.0),
            change_seq: cut.change_seq,
            path_digest: Hex(cut.path_digest),
            tables_digest: Hex(cut.tables_digest),
            end_of_input: cut.end_of_input,
        }
    }

    fn sink(&mut self, sink: &SinkRecord) -> SinkHead {
        let committables = sink.committables.iter().map(|c| CommittableHead {
            epoch: c.epoch,
            generation: c.generation,
            key: c.key.clone(),
            format: c.format,
            payload: self.push(&c.payload),
            rows: c.rows,
            bytes: c.bytes,
        });
        let committables = committables.collect();
        let writers = sink.writers.iter().map(|w| self.state(w)).collect();
        SinkHead { id: sink.id.clone(), version: sink.version.clone(), digest: Hex(sink.digest), writers, committables }
    }
}
