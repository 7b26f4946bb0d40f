//! Dates and times of day on their way into a column, and what becomes of those that no calendar has.

use std::io::Write as _;

use super::temporal::{Clock, Day, timestamp};
use super::{Column, ValueError};

/// What becomes of dates that no calendar has: zero, of month or day zero, of a day behind its month's last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroDate {
    /// An error that names the column.
    #[default]
    Error,
    /// NULL.
    Null,
    /// The column's values are the server's text.
    Text,
}

/// Takes a DATE.
#[inline]
pub(crate) fn push_date(column: &mut Column, zero_date: ZeroDate, day: Day) -> Result<(), ValueError> {
    match day.days() {
        _ if zero_date == ZeroDate::Text => return push_text(column, day, None),
        Ok(days) => column.push_i32(days),
        Err(ValueError::ZeroDate) if zero_date == ZeroDate::Null => column.push_null(true)?,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Takes a DATETIME or TIMESTAMP of so many digits of fraction.
#[inline]
pub(crate) fn push_moment(
    column: &mut Column,
    zero_date: ZeroDate,
    digits: u8,
    (day, clock): (Day, Clock),
) -> Result<(), ValueError> {
    match timestamp(day, clock) {
        _ if zero_date == ZeroDate::Text => return push_text(column, day, Some((clock, digits))),
        Ok(micros) => column.push_i64(micros),
        Err(ValueError::ZeroDate) if zero_date == ZeroDate::Null => column.push_null(true)?,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Takes a TIMESTAMP as the log has it: seconds and microseconds, none for the zero one.
#[inline]
pub(crate) fn push_instant(
    column: &mut Column,
    zero_date: ZeroDate,
    digits: u8,
    micros: Option<i64>,
) -> Result<(), ValueError> {
    match micros {
        Some(micros) if zero_date != ZeroDate::Text => {
            column.push_i64(micros);
            Ok(())
        }
        Some(micros) => push_moment(column, zero_date, digits, Day::at(micros)),
        None => push_moment(column, zero_date, digits, (Day::ZERO, Clock::default())),
    }
}

/// The server's text, in a column that is text.
fn push_text(column: &mut Column, day: Day, clock: Option<(Clock, u8)>) -> Result<(), ValueError> {
    day.checked()?;
    column.push_with(|out| {
        let written = write!(out, "{:04}-{:02}-{:02}", day.year, day.month, day.day);
        written.expect("writing to memory does not fail");
        let Some((clock, digits)) = clock else { return Ok(()) };
        let Clock { hour, minute, second, micro } = clock.checked(23)?;
        write!(out, " {hour:02}:{minute:02}:{second:02}").expect("writing to memory does not fail");
        if digits > 0 {
            let fraction = format!("{micro:06}");
            out.push(b'.');
            out.extend(fraction.bytes().take(digits.into()));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Date32Type, TimestampMicrosecondType};
    use arrow_schema::{DataType, TimeUnit};

    use super::*;

    const DAY: Day = Day { year: 2024, month: 2, day: 29 };
    const NO_DAY: Day = Day { year: 2024, month: 2, day: 0 };

    #[test]
    fn zero_dates_follow_the_rule() {
        let mut column = Column::new(DataType::Date32);
        push_date(&mut column, ZeroDate::Error, DAY).unwrap();
        assert_eq!(push_date(&mut column, ZeroDate::Error, NO_DAY), Err(ValueError::ZeroDate));
        push_date(&mut column, ZeroDate::Null, NO_DAY).unwrap();
        let array = column.finish().unwrap();
        assert_eq!((array.len(), array.null_count()), (2, 1));
        assert_eq!(array.as_primitive::<Date32Type>().value(0), 19_782);

        let mut column = Column::new(DataType::Timestamp(TimeUnit::Microsecond, None));
        push_instant(&mut column, ZeroDate::Null, 0, None).unwrap();
        push_instant(&mut column, ZeroDate::Null, 0, Some(7)).unwrap();
        assert_eq!(push_instant(&mut column, ZeroDate::Error, 0, None), Err(ValueError::ZeroDate));
        let array = column.finish().unwrap();
        assert!(array.is_null(0) && array.as_primitive::<TimestampMicrosecondType>().value(1) == 7);
    }

    #[test]
    fn texts_are_the_servers() {
        let mut column = Column::new(DataType::Utf8);
        let clock = Clock { hour: 1, minute: 2, second: 3, micro: 45_600 };
        push_date(&mut column, ZeroDate::Text, DAY).unwrap();
        push_date(&mut column, ZeroDate::Text, Day::ZERO).unwrap();
        push_moment(&mut column, ZeroDate::Text, 0, (NO_DAY, clock)).unwrap();
        push_moment(&mut column, ZeroDate::Text, 3, (DAY, clock)).unwrap();
        push_instant(&mut column, ZeroDate::Text, 6, None).unwrap();
        push_instant(&mut column, ZeroDate::Text, 1, Some(1_999_999)).unwrap();
        let bad = Day { month: 13, ..DAY };
        assert_eq!(push_date(&mut column, ZeroDate::Text, bad), Err(ValueError::Malformed("date")));
        let array = column.finish().unwrap();
        let texts: Vec<&str> = array.as_string::<i32>().iter().flatten().collect();
        assert_eq!(
            texts,
            [
                "2024-02-29",
                "0000-00-00",
                "2024-02-00 01:02:03",
                "2024-02-29 01:02:03.045",
                "0000-00-00 00:00:00.000000",
                "1970-01-01 00:00:01.9",
            ]
        );
    }
}
