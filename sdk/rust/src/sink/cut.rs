//! Epochs: the cut that each ends with, what a writer hands over, what became of it.

use serde::{Deserialize, Serialize};

use crate::PluginError;

/// The cut of whole source transactions that an epoch ends with. A sink that reports progress keeps it in the target,
/// with the data; its serde form (kebab-case keys, bytes in hex) is there for that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cut {
    /// The epoch that ends here. Numbers are never used twice in a pipeline.
    pub epoch: u64,
    /// The run that made it; grows with each start.
    pub generation: u64,
    /// The chain of checkpoints it belongs to.
    pub lineage: String,
    /// Where the source stands, opaque.
    #[serde(with = "hex")]
    pub offset: Vec<u8>,
    /// The highest change-seq up to here.
    pub change_seq: i64,
    /// Digest of transforms, routes and their options.
    #[serde(with = "hex")]
    pub path_digest: Vec<u8>,
    /// Digest of the set of captured tables.
    #[serde(with = "hex")]
    pub tables_digest: Vec<u8>,
    /// Nothing follows: a bounded run has ended.
    pub end_of_input: bool,
}

/// How far a target is: the newest epoch that is wholly visible there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Progress {
    /// The pipeline that wrote it.
    pub pipeline: String,
    /// The cut that the target shows.
    pub cut: Cut,
}

/// What a writer hands over at prepare: enough to make its work visible, also after a crash, by another process.
/// The host keeps it in the checkpoint until the epoch is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committable {
    /// The epoch it was prepared for.
    pub epoch: u64,
    /// The run that prepared it.
    pub generation: u64,
    /// What it concerns, in the sink's own words (a table, a transaction name); for people.
    pub key: String,
    /// Version of the payload's format.
    pub format: u32,
    /// Opaque to the host.
    pub payload: Vec<u8>,
    /// Rows it makes visible.
    pub rows: u64,
    /// Bytes it makes visible.
    pub bytes: u64,
}

/// A writer's state, opaque to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// Version of the payload's format.
    pub format: u32,
    /// Whatever the writer needs.
    pub payload: Vec<u8>,
}

/// What became of one committable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Visible now.
    Committed,
    /// Was visible before this call.
    AlreadyCommitted,
    /// Not yet; call again with this item after so many milliseconds.
    RetryAfter(u32),
    /// The target no longer has what was prepared. Never silent: the restart policy decides.
    Lost(String),
    /// Not done; the error says what now.
    Failed(PluginError),
}

/// What [`Committer::recover`](crate::Committer::recover) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// One outcome a pending item, in order.
    pub outcomes: Vec<Outcome>,
    /// The newest epoch that is wholly visible; none where the target has no marker, or the sink keeps none.
    pub progress: Option<Progress>,
}

/// Bytes as hex digits.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
        let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<Vec<u8>>>();
        bytes.filter(|_| rest.is_empty()).ok_or_else(|| D::Error::custom("not pairs of hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_comes_back_from_its_json_as_it_was() {
        let cut = Cut {
            epoch: 7,
            generation: 3,
            lineage: "a".into(),
            offset: vec![0, 255, 16],
            change_seq: -1,
            path_digest: vec![1; 32],
            tables_digest: Vec::new(),
            end_of_input: true,
        };
        let json = serde_json::to_string(&cut).unwrap();
        assert!(json.contains(r#""offset":"00ff10""#) && json.contains(r#""end-of-input":true"#), "{json}");
        assert_eq!(serde_json::from_str::<Cut>(&json).unwrap(), cut);
        for broken in [json.replace("00ff10", "00ff1"), json.replace("00ff10", "00fg10")] {
            assert!(serde_json::from_str::<Cut>(&broken).is_err(), "{broken}");
        }
    }
}
