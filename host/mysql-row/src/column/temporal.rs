//! Dates and times: the server's packed forms and calendar fields to days and microseconds.

use super::ValueError;

/// Hours that a TIME reaches, with its minutes and seconds.
const TIME_SECONDS_MAX: i64 = 838 * 3600 + 59 * 60 + 59;
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
    /// The zero date.
    pub(crate) const ZERO: Self = Self { year: 0, month: 0, day: 0 };

    /// Fields that the server can store, zeros among them.
    pub(crate) fn checked(self) -> Result<Self, ValueError> {
        let fits = self.year <= 9999 && self.month <= 12 && self.day <= 31;
        if fits { Ok(self) } else { Err(ValueError::Malformed("date")) }
    }

    /// Day and time of day of a moment in microseconds since 1970-01-01.
    pub(crate) fn at(micros: i64) -> (Self, Clock) {
        let seconds = micros.div_euclid(MICROS_PER_SECOND);
        let (days, of_day) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
        // The same years from March on and eras as in `days`, backwards.
        let days = days + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let field = |value: i64| u32::try_from(value).unwrap_or(u32::MAX); // a year before 0 is out of any calendar
        let clock = Clock {
            hour: field(of_day / 3600),
            minute: field(of_day / 60 % 60),
            second: field(of_day % 60),
            micro: field(micros.rem_euclid(MICROS_PER_SECOND)),
        };
        (Self { year: field(year), month: field(month), day: field(day) }, clock)
    }

    /// Days since 1970-01-01 in the calendar without gaps that the server uses. The server stores days whose month or
    /// day is zero, all zeros, and days behind a month's last; they are no day.
    pub(crate) fn days(self) -> Result<i32, ValueError> {
        let Self { year, month, day } = self;
        if month == 0 || day == 0 {
            return Err(ValueError::ZeroDate);
        }
        self.checked()?;
        // With ALLOW_INVALID_DATES there is a 31st of February.
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day > last {
            return Err(ValueError::ZeroDate);
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
    pub(crate) fn checked(self, hours: u32) -> Result<Self, ValueError> {
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
pub(crate) fn packed_date(bytes: [u8; 3]) -> Day {
    let packed = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    Day { year: packed >> 9, month: (packed >> 5) & 15, day: packed & 31 }
}

/// DATETIME in the log: 5 bytes and the fraction, big-endian, biased.
pub(crate) fn packed_datetime(bytes: &[u8], digits: u8) -> Result<(Day, Clock), ValueError> {
    let (whole, fraction) = bytes.split_at_checked(5).ok_or(ValueError::Short)?;
    let whole = big_endian(whole).checked_sub(0x80_0000_0000).ok_or(ValueError::Malformed("datetime"))?;
    Ok(datetime_fields(whole, micros_of(fraction, digits)?))
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

/// TIMESTAMP in the log: 4 bytes and the fraction, big-endian. All zeros are the zero timestamp, not 1970: none.
pub(crate) fn packed_timestamp(bytes: &[u8], digits: u8) -> Result<Option<i64>, ValueError> {
    let (whole, fraction) = bytes.split_at_checked(4).ok_or(ValueError::Short)?;
    let micro = micros_of(fraction, digits)?;
    Ok(instant(big_endian(whole), micro))
}

fn instant(seconds: u64, micro: u32) -> Option<i64> {
    let seconds = i64::try_from(seconds).expect("four bytes fit");
    (seconds != 0 || micro != 0).then(|| seconds * MICROS_PER_SECOND + i64::from(micro))
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

/// Bytes of a TIMESTAMP as servers wrote it before MySQL 5.6, and as MariaDB may still hold it.
pub(crate) fn old_timestamp_bytes(digits: u8) -> usize {
    4 + fraction_bytes(digits)
}

/// Bytes of a DATETIME of that kind.
pub(crate) fn old_datetime_bytes(digits: u8) -> usize {
    [8, 6, 6, 7, 7, 7, 8].get(usize::from(digits)).copied().unwrap_or(8)
}

/// Bytes of a TIME of that kind.
pub(crate) fn old_time_bytes(digits: u8) -> usize {
    [3, 4, 4, 5, 5, 5, 6].get(usize::from(digits)).copied().unwrap_or(6)
}

/// TIMESTAMP of that kind: the seconds, little-endian without a fraction, big-endian in front of one.
pub(crate) fn old_timestamp(bytes: &[u8], digits: u8) -> Result<Option<i64>, ValueError> {
    let (whole, fraction) = bytes.split_first_chunk::<4>().ok_or(ValueError::Short)?;
    if digits == 0 {
        return Ok(instant(u32::from_le_bytes(*whole).into(), 0));
    }
    let micro = big_endian(fraction).checked_mul(digit_micros(digits)).and_then(|micro| u32::try_from(micro).ok());
    let micro = micro.filter(|&micro| micro < 1_000_000).ok_or(ValueError::Malformed("fraction of a second"))?;
    Ok(instant(u32::from_be_bytes(*whole).into(), micro))
}

/// DATETIME of that kind: its digits as a number, little-endian; with a fraction a count of its smallest steps, as if
/// years had 13 months of 32 days.
pub(crate) fn old_datetime(bytes: &[u8], digits: u8) -> Result<(Day, Clock), ValueError> {
    if digits == 0 {
        let number = u64::from_le_bytes(bytes.try_into().map_err(|_| ValueError::Short)?);
        let (date, time) = (number / 1_000_000, number % 1_000_000);
        let field = |value: u64| u32::try_from(value).map_err(|_| ValueError::Malformed("datetime"));
        let day = Day { year: field(date / 10_000)?, month: field(date / 100 % 100)?, day: field(date % 100)? };
        return Ok((day, clock_of_digits(field(time)?)));
    }
    let micros = big_endian(bytes).checked_mul(digit_micros(digits)).ok_or(ValueError::Malformed("datetime"))?;
    let (seconds, micro) = (micros / 1_000_000, micros % 1_000_000);
    let field = |value: u64| u32::try_from(value).map_err(|_| ValueError::Malformed("datetime"));
    let (days, of_day) = (seconds / 86_400, field(seconds % 86_400)?);
    let day = Day { year: field(days / 416)?, month: field(days / 32 % 13)?, day: field(days % 32)? };
    Ok((day, Clock { hour: of_day / 3600, minute: of_day / 60 % 60, second: of_day % 60, micro: field(micro)? }))
}

/// TIME of that kind: its digits as a signed number, little-endian; with a fraction a count of its smallest steps above
/// the least TIME.
pub(crate) fn old_time(bytes: &[u8], digits: u8) -> Result<i64, ValueError> {
    if digits == 0 {
        let &[low, middle, high] = bytes.first_chunk::<3>().ok_or(ValueError::Short)?;
        let number = i32::from_le_bytes([0, low, middle, high]) >> 8;
        return duration(number < 0, clock_of_digits(number.unsigned_abs()));
    }
    let step = i64::try_from(digit_micros(digits)).expect("a second has a million microseconds");
    let zero = (TIME_SECONDS_MAX + 1) * MICROS_PER_SECOND / step;
    let steps = i64::try_from(big_endian(bytes)).map_err(|_| ValueError::Malformed("time"))? - zero;
    let micros = steps.checked_mul(step).ok_or(ValueError::Malformed("time"))?;
    let fits = micros.abs() < (TIME_SECONDS_MAX + 1) * MICROS_PER_SECOND;
    if fits { Ok(micros) } else { Err(ValueError::Malformed("time")) }
}

fn clock_of_digits(number: u32) -> Clock {
    Clock { hour: number / 10_000, minute: number / 100 % 100, second: number % 100, micro: 0 }
}

/// Microseconds of the last of so many digits of a fraction.
fn digit_micros(digits: u8) -> u64 {
    10u64.pow(6 - u32::from(digits.min(6)))
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
        assert_eq!(days(2024, 12, 32), Err(ValueError::Malformed("date")));
        for (year, month, day) in [(2021, 2, 29), (2024, 2, 30), (1900, 2, 29), (2024, 4, 31)] {
            assert_eq!(days(year, month, day), Err(ValueError::ZeroDate), "{year}-{month}-{day}");
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
    fn moments_have_a_day() {
        for (micros, year, month, day) in [
            (0, 1970, 1, 1),
            (-1, 1969, 12, 31),
            (951_782_400_000_000, 2000, 2, 29),
            (4_294_967_295_000_000, 2106, 2, 7),
        ] {
            let (found, clock) = Day::at(micros);
            assert_eq!(found, Day { year, month, day }, "{micros}");
            assert_eq!(timestamp(found, clock), Ok(micros));
        }
        for days in (-700_000..3_000_000).step_by(17) {
            let micros = days * SECONDS_PER_DAY * MICROS_PER_SECOND + 86_399_999_999;
            let (day, clock) = Day::at(micros);
            if day.year < 10_000 {
                assert_eq!(timestamp(day, clock), Ok(micros));
            }
        }
    }

    #[test]
    fn packed_forms_come_apart() {
        // 2020-01-02 03:04:05.678 in a DATETIME(3).
        let whole = ((2020u64 * 13 + 1) << 22 | 2 << 17 | 3 << 12 | 4 << 6 | 5) + 0x80_0000_0000;
        let mut bytes = whole.to_be_bytes()[3..].to_vec();
        bytes.extend(6780u16.to_be_bytes());
        let micros = |bytes: &[u8], digits| {
            let (day, clock) = packed_datetime(bytes, digits)?;
            timestamp(day, clock)
        };
        assert_eq!(micros(&bytes, 3), Ok(1_577_934_245_678_000));
        assert_eq!(micros(&[0x80, 0, 0, 0, 0], 0), Err(ValueError::ZeroDate));
        assert_eq!(packed_timestamp(&[0, 0, 0, 0], 0), Ok(None));
        assert_eq!(packed_timestamp(&[0, 0, 0, 1, 0x0f, 0x42, 0x3f], 6), Ok(Some(1_999_999)));
        assert_eq!(packed_date([0x22, 0xc8, 0x0f]), Day { year: 2020, month: 1, day: 2 });
        assert_eq!(packed_year(0), 0);
        assert_eq!(packed_year(255), 2155);
    }

    /// Bytes as MariaDB 10.11 writes them without `mysql56_temporal_format`.
    #[test]
    fn old_forms_come_apart() {
        let moment = Ok(Some(1_709_210_096_000_000));
        assert_eq!(old_timestamp(&[0xf0, 0x79, 0xe0, 0x65], 0), moment);
        assert_eq!(old_timestamp(&[0x65, 0xe0, 0x79, 0xf0, 0x03, 0x15], 3), Ok(Some(1_709_210_096_789_000)));
        assert_eq!(old_timestamp(&[0x65, 0xe0, 0x79, 0xf0, 0x0c, 0x0a, 0x14], 6), Ok(Some(1_709_210_096_789_012)));
        assert_eq!(old_timestamp(&[0; 4], 0), Ok(None));
        let datetime =
            |bytes: &[u8], digits| old_datetime(bytes, digits).and_then(|(day, clock)| timestamp(day, clock));
        assert_eq!(datetime(&[0x80, 0xc5, 0xaa, 0x8b, 0x68, 0x12, 0, 0], 0).map(Some), moment);
        assert_eq!(datetime(&[0x06, 0x9d, 0xf8, 0x8f, 0xdc, 0x0e], 2), Ok(1_709_210_096_780_000));
        assert_eq!(datetime(&[0x01, 0x02, 0x7a, 0xbd, 0x73, 0x84, 0x06, 0x14], 6), Ok(1_709_210_096_789_012));
        let time = (12 * 3600 + 34 * 60 + 56) * 1_000_000;
        assert_eq!(old_time(&[0x40, 0xe2, 0x01], 0), Ok(time));
        assert_eq!(old_time(&[0x01, 0xd3, 0xc9, 0xc7], 1), Ok(time + 700_000));
        assert_eq!(old_time(&[0, 0, 0, 1], 1), Ok(-(TIME_SECONDS_MAX * 1_000_000 + 900_000)));
        assert_eq!(old_time(&[0; 4], 1), Err(ValueError::Malformed("time")));
        assert_eq!(old_time(&[0xb1, 0x04, 0x80], 0), Err(ValueError::Malformed("time of day")));
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
