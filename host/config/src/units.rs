//! Durations and sizes with units.

use std::fmt;
use std::time::Duration;

/// A number of bytes, written as `"64MiB"`, `"2MB"`, `"512"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

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

const DURATIONS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl ByteSize {
    /// Reads a whole number with a unit; none when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        number_with_unit(text, &SIZES).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = SIZES.iter().take(3).find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit));
        match fits {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// Reads a duration such as `"10s"`: a whole number and one of `ms`, `s`, `m`, `h`, `d`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    number_with_unit(text, &DURATIONS).map(Duration::from_millis)
}

/// A duration as it is written in the pipeline file.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let fits = DURATIONS.iter().rev().find(|(_, unit)| millis != 0 && millis.is_multiple_of(u128::from(*unit)));
    match fits {
        Some((name, unit)) => format!("{}{name}", millis / u128::from(*unit)),
        None => "0s".to_owned(),
    }
}

fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let size = |text| ByteSize::parse(text).map(|size| size.0);
        assert_eq!(size("64MiB"), Some(64 << 20));
        assert_eq!(size("2MB"), Some(2_000_000));
        assert_eq!(size("512"), Some(512));
        assert_eq!(size("1 GiB"), Some(1 << 30));
        for wrong in ["", "MiB", "-1", "1.5GiB", "10mib", "99999999999999999999", "18446744073709551615GiB", "1é"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(ByteSize(8 << 20).to_string(), "8MiB");
        assert_eq!(ByteSize(1_000).to_string(), "1000B");
        assert_eq!(ByteSize(0).to_string(), "0B");
    }

    #[test]
    fn durations_read_back_as_shown() {
        for text in ["200ms", "10s", "5m", "1h", "2d", "1500ms", "0s"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
        for wrong in ["", "10", "s", "1.5s", "10 sec", "-1s", "1m30s", "99999999999999999999d"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }
}
