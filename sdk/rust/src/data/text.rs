//! Text forms of values: exact decimals, ISO dates and times.

use std::fmt::Write;

const MICROS_A_SECOND: u64 = 1_000_000;
const MICROS_A_DAY: i64 = 86_400_000_000;

/// Appends a decimal: the digits without the point, `scale` of them behind it. All of `scale` is written (`1.50`).
pub fn push_decimal128(out: &mut String, digits: i128, scale: i8) {
    push_digits(out, digits < 0, &digits.unsigned_abs().to_string(), scale);
}

/// As [`push_decimal128`], for a little-endian two's complement integer of 32 bytes.
pub fn push_decimal256(out: &mut String, digits: &[u8; 32], scale: i8) {
    let negative = digits[31] & 0x80 != 0;
    push_digits(out, negative, &magnitude_digits(digits, negative), scale);
}

/// Appends a date as `YYYY-MM-DD`, given in days since 1970-01-01 of the proleptic Gregorian calendar.
pub fn push_date(out: &mut String, days: i32) {
    let (year, month, day) = civil(i64::from(days));
    push(out, format_args!("{}{:04}-{month:02}-{day:02}", if year < 0 { "-" } else { "" }, year.unsigned_abs()));
}

/// Appends a signed duration as `[-]HH:MM:SS`, with `fraction` digits (at most 6) behind a point; hours may have more
/// than two digits.
pub fn push_time(out: &mut String, micros: i64, fraction: u8) {
    if micros < 0 {
        out.push('-');
    }
    let micros = micros.unsigned_abs();
    let seconds = micros / MICROS_A_SECOND;
    push(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    push_fraction(out, micros % MICROS_A_SECOND, fraction);
}

/// Appends a moment as `YYYY-MM-DDTHH:MM:SS`, with `fraction` digits (at most 6) behind a point, given in microseconds
/// since 1970-01-01. A moment in UTC gets its `Z` from the caller.
pub fn push_timestamp(out: &mut String, micros: i64, fraction: u8) {
    // Whole days of an i64 of microseconds are at most 107 million.
    push_date(out, i32::try_from(micros.div_euclid(MICROS_A_DAY)).expect("an i64 of microseconds has days for an i32"));
    out.push('T');
    push_time(out, micros.rem_euclid(MICROS_A_DAY), fraction);
}

fn push_fraction(out: &mut String, micros: u64, fraction: u8) {
    if fraction == 0 {
        return;
    }
    let digits = usize::from(fraction.min(6));
    let divisor = 10_u64.pow(6 - u32::try_from(digits).expect("at most 6"));
    push(out, format_args!(".{:0digits$}", micros / divisor));
}

fn push_digits(out: &mut String, negative: bool, digits: &str, scale: i8) {
    if negative {
        out.push('-');
    }
    let behind = usize::try_from(scale).unwrap_or(0);
    let (before, rest) = digits.split_at(digits.len().saturating_sub(behind));
    out.push_str(if before.is_empty() { "0" } else { before });
    if behind > 0 {
        push(out, format_args!(".{rest:0>behind$}"));
    }
    if scale < 0 && digits != "0" {
        out.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
    }
}

/// Decimal digits of the absolute value, by division in steps of 10^18.
fn magnitude_digits(bytes: &[u8; 32], negative: bool) -> String {
    const STEP: u128 = 1_000_000_000_000_000_000;
    let mut limbs = [0_u64; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_le_bytes(*chunk);
    }
    if negative {
        let mut carry = true;
        for limb in &mut limbs {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    let mut groups = Vec::new();
    while limbs.iter().any(|&limb| limb != 0) {
        let mut rest = 0_u128;
        for limb in limbs.iter_mut().rev() {
            let value = rest << 64 | u128::from(*limb);
            *limb = u64::try_from(value / STEP).expect("the rest is below the divisor, so the quotient fits a limb");
            rest = value % STEP;
        }
        groups.push(rest);
    }
    let mut digits = groups.pop().unwrap_or(0).to_string();
    while let Some(group) = groups.pop() {
        push(&mut digits, format_args!("{group:018}"));
    }
    digits
}

/// Year, month, day of a day number, by eras of 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468; // days since 0000-03-01
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153; // 0 = March
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn decimals_keep_every_digit() {
        let max38 = 10_i128.pow(38) - 1;
        for (digits, scale, expect) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (150, 2, "1.50"),
            (-12_345, 0, "-12345"),
            (12, -3, "12000"),
            (0, -3, "0"),
            (max38, 38, &format!("0.{}", "9".repeat(38))),
            (-max38, 10, &format!("-{}.{}", "9".repeat(28), "9".repeat(10))),
        ] {
            assert_eq!(written(|out| push_decimal128(out, digits, scale)), expect);
            let mut wide = [if digits < 0 { 0xff } else { 0 }; 32];
            wide[..16].copy_from_slice(&digits.to_le_bytes());
            assert_eq!(written(|out| push_decimal256(out, &wide, scale)), expect);
        }
    }

    #[test]
    fn wide_decimals_carry_over_their_limbs() {
        // 10^65 - 1, the widest that MySQL has, made by repeated multiplication.
        let mut limbs = [0_u64; 4];
        for _ in 0..65 {
            let mut carry = 9_u128;
            for limb in &mut limbs {
                let value = u128::from(*limb) * 10 + carry;
                (*limb, carry) = (u64::try_from(value & u128::from(u64::MAX)).unwrap(), value >> 64);
            }
        }
        let bytes = |limbs: [u64; 4]| -> [u8; 32] {
            limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect::<Vec<_>>().try_into().unwrap()
        };
        let nines = "9".repeat(65);
        assert_eq!(written(|out| push_decimal256(out, &bytes(limbs), 0)), nines);
        let mut negative = limbs.map(|limb| !limb);
        negative[0] += 1;
        assert_eq!(
            written(|out| push_decimal256(out, &bytes(negative), 30)),
            format!("-{}.{}", &nines[..35], &nines[..30])
        );
    }

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        for (days, expect) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (2_932_896, "9999-12-31"),
            (-719_528, "0000-01-01"),
            (-354_285, "1000-01-01"),
        ] {
            assert_eq!(written(|out| push_date(out, days)), expect);
        }
    }

    #[test]
    fn times_have_their_sign_and_as_many_fraction_digits_as_asked() {
        for (micros, fraction, expect) in [
            (0, 0, "00:00:00"),
            (-1, 6, "-00:00:00.000001"),
            (3_020_399_000_000, 0, "838:59:59"),
            (-3_020_399_000_000, 3, "-838:59:59.000"),
            (45_296_789_000, 3, "12:34:56.789"),
        ] {
            assert_eq!(written(|out| push_time(out, micros, fraction)), expect);
        }
    }

    #[test]
    fn moments_before_1970_count_down_whole_days() {
        for (micros, fraction, expect) in [
            (0, 0, "1970-01-01T00:00:00"),
            (-1, 6, "1969-12-31T23:59:59.999999"),
            (253_402_300_799_999_999, 6, "9999-12-31T23:59:59.999999"),
            (1_767_225_600_500_000, 1, "2026-01-01T00:00:00.5"),
        ] {
            assert_eq!(written(|out| push_timestamp(out, micros, fraction)), expect);
        }
    }
}
