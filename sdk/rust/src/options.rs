//! Types of options that are written with a unit, in the forms that the rest of the pipeline file has.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A number of bytes: `"64MiB"`, `"2MB"`, `"512"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Cow<str>", into = "String")]
pub struct ByteSize(pub u64);

/// A stretch of time: `"200ms"`, `"10s"`, `"5m"`, `"1h"`, `"2d"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Cow<str>", into = "String")]
pub struct Interval(pub Duration);

const SIZES: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
    ("", 1),
];

/// In milliseconds.
const INTERVALS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl TryFrom<Cow<'_, str>> for ByteSize {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Self, Self::Error> {
        let bytes = number_with_unit(&text, &SIZES);
        bytes.map(Self).ok_or("not a number of bytes, such as \"64MiB\"")
    }
}

impl TryFrom<Cow<'_, str>> for Interval {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Self, Self::Error> {
        let millis = number_with_unit(&text, &INTERVALS);
        millis.map(|millis| Self(Duration::from_millis(millis))).ok_or("not a stretch of time, such as \"10s\"")
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = SIZES.iter().take(3).find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit));
        let (name, unit) = fits.copied().unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let fits = INTERVALS.iter().find(|(_, unit)| millis != 0 && millis.is_multiple_of(u128::from(*unit)));
        let (name, unit) = fits.copied().unwrap_or(("s", 1_000));
        write!(f, "{}{name}", millis / u128::from(unit))
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

impl From<Interval> for String {
    fn from(interval: Interval) -> Self {
        interval.to_string()
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+ *([kMG]?B|[KMG]iB)?$" })
    }
}

impl JsonSchema for Interval {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+ *(ms|s|m|h|d)$" })
    }
}

fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Option<u64> {
        serde_json::from_value::<ByteSize>(text.into()).ok().map(|size| size.0)
    }

    #[test]
    fn sizes_have_units_of_both_kinds() {
        let all = [("64MiB", 64 << 20), ("2MB", 2_000_000), ("512", 512), ("1 GiB", 1 << 30), ("0B", 0), ("1kB", 1000)];
        for (text, bytes) in all {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for wrong in ["", "MiB", "-1", "1.5GiB", "10mib", "18446744073709551615GiB", "1é"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(ByteSize(8 << 20).to_string(), "8MiB");
        assert_eq!(ByteSize(1000).to_string(), "1000B");
    }

    #[test]
    fn intervals_read_back_as_shown() {
        let parse = |text: &str| serde_json::from_value::<Interval>(text.into()).ok();
        for text in ["200ms", "10s", "5m", "1h", "2d", "1500ms", "0s"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "10", "s", "1.5s", "10 sec", "-1s", "1m30s", "99999999999999999999d"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
