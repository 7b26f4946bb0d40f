//! One spelling for each value, so that what the server says and what a reader says can be compared.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// What a column's values mean; decides what counts as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An exact number: equal by value, whatever its spelling.
    Number,
    /// A binary floating point number: equal by its bits.
    Double,
    /// One of single precision: equal by its bits, with the digits of a single or of the double of the same value.
    Single,
    /// Characters.
    Text,
    /// Bytes, spelled in hex.
    Bytes,
    /// Bits, spelled as the so many bytes that they take.
    Bits(usize),
    /// A day.
    Date,
    /// A signed duration.
    Time,
    /// A day and a time of day; of a column with time zone, in UTC.
    Moment,
}

/// The one spelling of a value, without quotes; NULL has one that no value has.
pub fn canonical(kind: Kind, value: &Value) -> Result<String> {
    let text = match value {
        Value::Null => return Ok("NULL".to_owned()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => u8::from(*yes).to_string(),
        Value::Array(_) | Value::Object(_) => bail!("a value that is not plain"),
    };
    spelled(kind, &text)
}

/// The one spelling of a value that is given as text.
pub fn spelled(kind: Kind, text: &str) -> Result<String> {
    match kind {
        Kind::Number => number(text),
        Kind::Double => Ok(format!("{:?}", text.parse::<f64>().context("not a number")?)),
        Kind::Single => Ok(format!("{:?}", f64::from(text.parse::<f32>().context("not a number")?))),
        Kind::Text => Ok(format!("'{text}")),
        Kind::Bytes | Kind::Bits(_) => Ok(format!("0x{}", text.to_ascii_lowercase())),
        Kind::Date => Ok(text.to_owned()),
        Kind::Time => duration(text),
        Kind::Moment => moment(text),
    }
}

fn number(text: &str) -> Result<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    ensure!(all_digits && !(whole.is_empty() && fraction.is_empty()), "not an exact number");
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(match (whole, fraction) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

/// `[-]H:MM:SS[.fraction]`, or a number of microseconds.
fn duration(text: &str) -> Result<String> {
    if !text.contains(':') {
        return Ok(text.parse::<i64>().context("not a duration")?.to_string());
    }
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let micros = clock(rest)?;
    Ok((if negative { -micros } else { micros }).to_string())
}

/// Microseconds of `H:MM[:SS[.fraction]]`.
fn clock(text: &str) -> Result<i64> {
    let mut parts = text.split(':');
    let (hours, minutes) = (parts.next().context("no hours")?, parts.next().context("no minutes")?);
    let seconds = parts.next().unwrap_or("0");
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let fraction = fraction.trim_end_matches('0');
    ensure!(fraction.len() <= 6 && parts.next().is_none(), "not a time of day");
    let whole = (hours.parse::<i64>()? * 60 + minutes.parse::<i64>()?) * 60 + seconds.parse::<i64>()?;
    Ok(whole * 1_000_000 + format!("{fraction:0<6}").parse::<i64>()?)
}

/// `YYYY-MM-DD` then a blank or `T`, then the time of day.
fn moment(text: &str) -> Result<String> {
    let (day, time) = text.split_once(['T', ' ']).context("not a moment")?;
    let micros = clock(time)?;
    Ok(format!("{day} +{micros}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn same(kind: Kind, one: Value, other: Value) {
        assert_eq!(canonical(kind, &one).unwrap(), canonical(kind, &other).unwrap());
    }

    #[track_caller]
    fn differ(kind: Kind, one: Value, other: Value) {
        assert_ne!(canonical(kind, &one).unwrap(), canonical(kind, &other).unwrap());
    }

    #[test]
    fn numbers_are_equal_by_value() {
        same(Kind::Number, json!(18_446_744_073_709_551_615_u64), json!("18446744073709551615"));
        same(Kind::Number, json!("-1.50"), json!("-1.5"));
        same(Kind::Number, json!("-0.00"), json!(0));
        same(Kind::Number, json!(true), json!("1"));
        differ(Kind::Number, json!("1.5"), json!("15"));
        differ(Kind::Number, json!("-2"), json!("2"));
        assert!(canonical(Kind::Number, &json!("1e5")).is_err());
        assert!(canonical(Kind::Number, &json!("")).is_err());
    }

    #[test]
    fn doubles_are_equal_by_bits() {
        same(Kind::Double, json!("1.0E10"), json!("10000000000"));
        same(Kind::Double, json!("0.10000000149011612"), json!("1.0000000149011612e-1"));
        differ(Kind::Double, json!("0.1"), json!("0.10000000000000002"));
        differ(Kind::Double, json!("-0"), json!("0"));
        same(Kind::Single, json!("0.1"), json!("0.10000000149011612"));
        same(Kind::Single, json!("16777216"), json!("1.6777216E7"));
        differ(Kind::Single, json!("0.1"), json!("0.10000001"));
    }

    #[test]
    fn times_are_equal_by_moment() {
        same(Kind::Time, json!("-838:59:59.000000"), json!("-838:59:59"));
        same(Kind::Time, json!("00:00:01.5"), json!(1_500_000));
        same(Kind::Moment, json!("2024-02-29 00:00:00"), json!("2024-02-29T00:00"));
        same(Kind::Moment, json!("2024-02-29 10:00:00.500000"), json!("2024-02-29T10:00:00.5"));
        differ(Kind::Moment, json!("2024-02-29 10:00:00"), json!("2024-02-28T10:00:00"));
    }

    #[test]
    fn null_is_no_value() {
        differ(Kind::Text, json!(null), json!("NULL"));
        differ(Kind::Text, json!(null), json!(""));
        differ(Kind::Bytes, json!(null), json!(""));
    }
}
