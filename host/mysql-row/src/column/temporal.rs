//! Dates and times: the server's packed forms and calendar fields to days and microseconds.

use super::ValueError;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A day of the calendar, before it is known to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// Hours, minutes, seconds and microseconds of a day or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
    pub(crate) micro: u32,
}

impl Day {
    /// Days since 1970-01-01 in the calendar without gaps that the server uses. The server stores days whose month or
    /// day is zero, and all zeros; they are no day.
    pub(crate) fn days(self) -> Result<i32, ValueError> {
        let Self { year, month, day } = self;
        if month == 0 || day == 0 {
            return Err(ValueError::ZeroDate);
        }
        // With ALLOW_INVALID_DATES a server stores a 31st of February.
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if year > 9999 || month > 12 || day > last {
            return Err(ValueError::Malformed("date"));
        }
        // Years begin in March, so that the leap day is the last of its year; eras of 400 years repeat.
        let year = year as i32 - i32::from(month <= 2); // a year is below 10,000
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = (month as i32 + 9) % 12; // a month is below 13
        let day_of_year = (153 * month + 2) / 5 + day as i32 - 1; // a day is below 32
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Ok(era * 146_097 + day_of_era - 719_468)
    }
}

impl Clock {
    /// Microseconds in all.
    pub(crate) fn micros(self) -> i64 {
        let seconds = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        seconds * MICROS_PER_SECOND + i64::from(self.micro)
    }

    /// Fields that a clock can show.
    fn checked(self, hours: u32) -> Result<Self, ValueError> {
        let fits = self.hour <= hours && self.minute < 60 && self.second < 60 && self.micro < 1_000_000;
        if fits { Ok(self) } else { Err(ValueError::Malformed("time of day")) }
    }
}

/// Microseconds since 1970-01-01 00:00:00.
pub(crate) fn timestamp(day: Day, clock: Clock) -> Result<i64, ValueError> {
    let days = i64::from(day.days()?);
    Ok(days * SECONDS_PER_DAY * MICROS_PER_SECOND + clock.checked(23)?.micros())
}

/// A signed duration; the server's reach is ±838:59:59.
pub(crate) fn duration(negative: bool, clock: Clock) -> Result<i64, ValueError> {
    let micros = clock.checked(838)?.micros();
    Ok(if negative { -micros } else { micros })
}

/// Bytes that the log spends on a fraction of so many digits.
pub(crate) fn fraction_bytes(digits: u8) -> usize {
    usize::from(digits.div_ceil(2))
}

/// DATE in the log: 3 bytes, little-endian.
pub(crate) fn packed_date(bytes: [u8; 3]) -> Result<i32, ValueError> {
    let packed = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    Day { year: packed >> 9, month: (packed >> 5) & 15, day: packed & 31 }.days()
}

/// DATETIME in the log: 5 bytes and the fraction, big-endian, biased.
pub(crate) fn packed_datetime(bytes: &[u8], digits: u8) -> Result<i64, ValueError> {
    let (whole, fraction) = bytes.split_at_checked(5).ok_or(ValueError::Short)?;
    let whole = big_endian(whole).checked_sub(0x80_0000_0000).ok_or(ValueError::Malformed("datetime"))?;
    let micro = micros_of(fraction, digits)?;
    datetime_of(whole, micro)
}

/// The same packing without bias and fraction, as JSON documents have it too.
pub(crate) fn datetime_of(whole: u64, micro: u32) -> Result<i64, ValueError> {
    let (day, clock) = datetime_fields(whole, micro);
    timestamp(day, clock)
}

/// Calendar fields of a packed datetime.
pub(crate) fn datetime_fields(whole: u64, micro: u32) -> (Day, Clock) {
    let field = |shift: u32, mask: u64| ((whole >> shift) & mask) as u32; // masks are below 2^17
    let months = field(22, 0x1_ffff);
    let day = Day { year: months / 13, month: months % 13, day: field(17, 31) };
    (day, Clock { hour: field(12, 31), minute: field(6, 63), second: field(0, 63), micro })
}

/// Clock fields of a packed time.
pub(crate) fn time_fields(whole: u64, micro: u32) -> Clock {
    let field = |shift: u32, mask: u64| ((whole >> shift) & mask) as u32; // masks are below 2^10
    Clock { hour: field(12, 1023), minute: field(6, 63), second: field(0, 63), micro }
}

/// TIMESTAMP in the log: 4 bytes and the fraction, big-endian. Zero is the zero timestamp, not 1970.
pub(crate) fn packed_timestamp(bytes: &[u8], digits: u8) -> Result<i64, ValueError> {
    let (whole, fraction) = bytes.split_at_checked(4).ok_or(ValueError::Short)?;
    let micro = micros_of(fraction, digits)?;
    let seconds = i64::try_from(big_endian(whole)).expect("four bytes fit");
    if seconds == 0 && micro == 0 {
        return Err(ValueError::ZeroDate);
    }
    Ok(seconds * MICROS_PER_SECOND + i64::from(micro))
}

/// TIME in the log: 3 bytes and the fraction, big-endian, biased, negative ones as a two's complement of the whole.
pub(crate) fn packed_time(bytes: &[u8], digits: u8) -> Result<i64, ValueError> {
    let fraction_bits = 8 * fraction_bytes(digits) as u32; // at most 24
    let biased = i64::try_from(big_endian(bytes)).map_err(|_| ValueError::Malformed("time"))?;
    let signed = biased - (0x80_0000 << fraction_bits);
    let packed = signed.unsigned_abs();
    let fraction = packed & ((1 << fraction_bits) - 1);
    let micro = scaled_micros(fraction, digits)?;
    duration(signed < 0, time_fields(packed >> fraction_bits, micro))
}

/// YEAR in the log: one byte, 0 for the year 0000.
pub(crate) fn packed_year(byte: u8) -> u16 {
    if byte == 0 { 0 } else { 1900 + u16::from(byte) }
}

/// Microseconds of a fraction as the log has it.
fn micros_of(fraction: &[u8], digits: u8) -> Result<u32, ValueError> {
    scaled_micros(big_endian(fraction), digits)
}

fn scaled_micros(fraction: u64, digits: u8) -> Result<u32, ValueError> {
    let scale = match digits {
        0 => 0,
        1 | 2 => 10_000,
        3 | 4 => 100,
        _ => 1,
    };
    let micros = fraction * scale;
    u32::try_from(micros).ok().filter(|&micros| micros < 1_000_000).ok_or(ValueError::Malformed("fraction of a second"))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_1970() {
        let days = |year, month, day| Day { year, month, day }.days();
        assert_eq!(days(1970, 1, 1), Ok(0));
        assert_eq!(days(2000, 2, 29), Ok(11_016));
        assert_eq!(days(1000, 1, 1), Ok(-354_285));
        assert_eq!(days(9999, 12, 31), Ok(2_932_896));
        assert_eq!(days(0, 0, 0), Err(ValueError::ZeroDate));
        assert_eq!(days(2024, 0, 10), Err(ValueError::ZeroDate));
        assert_eq!(days(2024, 13, 1), Err(ValueError::Malformed("date")));
        for (year, month, day) in [(2021, 2, 29), (2024, 2, 30), (1900, 2, 29), (2024, 4, 31), (2024, 12, 32)] {
            assert_eq!(days(year, month, day), Err(ValueError::Malformed("date")), "{year}-{month}-{day}");
        }
        let mut expected = days(1, 1, 1).unwrap();
        for year in 1..=2400 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (month, length) in [31, 28 + u32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].iter().enumerate()
            {
                for day in 1..=*length {
                    assert_eq!(days(year, month as u32 + 1, day), Ok(expected));
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn packed_forms_come_apart() {
        // 2020-01-02 03:04:05.678 in a DATETIME(3).
        let whole = ((2020u64 * 13 + 1) << 22 | 2 << 17 | 3 << 12 | 4 << 6 | 5) + 0x80_0000_0000;
        let mut bytes = whole.to_be_bytes()[3..].to_vec();
        bytes.extend(6780u16.to_be_bytes());
        assert_eq!(packed_datetime(&bytes, 3), Ok(1_577_934_245_678_000));
        assert_eq!(packed_datetime(&[0x80, 0, 0, 0, 0], 0), Err(ValueError::ZeroDate));
        assert_eq!(packed_timestamp(&[0, 0, 0, 0], 0), Err(ValueError::ZeroDate));
        assert_eq!(packed_timestamp(&[0, 0, 0, 1, 0x0f, 0x42, 0x3f], 6), Ok(1_999_999));
        assert_eq!(packed_date([0x22, 0xc8, 0x0f]), Ok(Day { year: 2020, month: 1, day: 2 }.days().unwrap()));
        assert_eq!(packed_year(0), 0);
        assert_eq!(packed_year(255), 2155);
    }

    #[test]
    fn times_keep_their_sign() {
        for digits in 0..=6u8 {
            for (negative, hour, micro) in [(false, 838, 0), (true, 838, 0), (true, 0, 990_000), (false, 1, 990_000)] {
                let unit = 10i64.pow(6 - 2 * u32::from(digits.div_ceil(2)));
                let micro = i64::from(micro) / unit;
                let micro = if digits == 0 { 0 } else { micro };
                let bits = 8 * fraction_bytes(digits);
                let packed = (i64::from(hour) << 12 | 59 << 6 | 58) << bits | micro;
                let biased = (0x80_0000i64 << bits) + if negative { -packed } else { packed };
                let bytes = &biased.to_be_bytes()[5 - fraction_bytes(digits)..];
                let expected = (i64::from(hour) * 3600 + 59 * 60 + 58) * 1_000_000 + micro * unit;
                assert_eq!(packed_time(bytes, digits), Ok(if negative { -expected } else { expected }), "{digits}");
            }
        }
    }
}
