//! What stands in the pipeline file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Options of the mask transform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Secret that hashes are made with, at least 16 bytes; best as a `${file:/path}`. Needed for `hash`.
    pub key: Option<String>,
    /// Columns to hash.
    #[serde(default)]
    #[schemars(extend("format" = "columns"))]
    pub hash: Vec<String>,
    /// Columns whose values are replaced.
    #[serde(default)]
    #[schemars(extend("format" = "columns"))]
    pub redact: Vec<String>,
    /// What stands in place of a redacted value.
    #[serde(default = "redact_with")]
    pub redact_with: String,
    /// Columns of text to shorten.
    #[serde(default)]
    #[schemars(extend("format" = "columns"))]
    pub truncate: Vec<String>,
    /// Characters that stay of a shortened text.
    #[serde(default = "truncate_length")]
    pub truncate_length: u32,
}

fn redact_with() -> String {
    "***".into()
}

fn truncate_length() -> u32 {
    4
}

/// Whether a column's name is meant by a pattern, in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        // The earliest place leaves the most for what follows.
        let Some(at) = name.find(piece) else { return false };
        name = name.get(at + piece.len()..).unwrap_or_default();
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expect) in [
            ("email", "email", true),
            ("email", "email2", false),
            ("*", "", true),
            ("*_id", "customer_id", true),
            ("*_id", "customer_id2", false),
            ("c*r_*d", "customer_id", true),
            ("a*a", "a", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("é*", "été", true),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        }
    }
}
