//! A value of a key, kept so that the server can be asked for what lies behind it.

use cdchost_mysql_wire::Param;
use serde::{Deserialize, Serialize};

/// A value of a key's column as a row of the binary protocol has it: it is bound again without being understood, so
/// that the server alone compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValue {
    /// The type it is bound as, by the server's number.
    #[serde(rename = "type")]
    pub column_type: u8,
    /// Whether a number is unsigned.
    pub unsigned: bool,
    /// Its bytes, with their length where the type has one.
    #[serde(with = "hexadecimal")]
    pub bytes: Vec<u8>,
}

impl KeyValue {
    /// The parameter that says the same value to the server again.
    pub fn param(&self) -> Param<'_> {
        Param::Encoded { column_type: self.column_type, unsigned: self.unsigned, bytes: &self.bytes }
    }
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if !text.is_ascii() || text.len() % 2 == 1 {
            return Err(D::Error::custom("bytes are not written in pairs of digits"));
        }
        let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
        pairs.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_text() {
        let value = KeyValue { column_type: 253, unsigned: false, bytes: vec![1, 0xff] };
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<KeyValue>(&text).unwrap(), value, "{text}");
        assert!(serde_json::from_str::<KeyValue>(r#"{"type":3,"unsigned":false,"bytes":"0g"}"#).is_err());
    }
}
