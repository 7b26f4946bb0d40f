//! What the store answers, as bytes.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED};
use hyper::{Response, StatusCode};

pub(super) type Answer = Response<Full<Bytes>>;

pub(super) fn plain(status: StatusCode) -> Answer {
    answer(status, Bytes::new())
}

pub(super) fn answer(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
}

pub(super) fn xml(body: &str) -> Answer {
    let mut answer = answer(StatusCode::OK, format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}").into());
    answer.headers_mut().insert(CONTENT_TYPE, "application/xml".parse().expect("it is a header's value"));
    answer
}

pub(super) fn refusal(status: StatusCode, code: &str) -> Answer {
    let body = format!("<Error><Code>{code}</Code><Message>as the double has it</Message></Error>");
    answer(status, body.into())
}

/// The head of an object that is sent.
pub(super) fn with_head(mut answer: Answer, etag: &str, modified: SystemTime) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(ETAG, etag.parse().expect("a tag is hexadecimal digits in quotes"));
    headers.insert(LAST_MODIFIED, http_date(modified).parse().expect("a date is plain text"));
    answer
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `2026-01-31T23:59:59.000Z`
pub(super) fn iso_date(time: SystemTime) -> String {
    let (year, month, day, rest, _) = civil(time);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.000Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// `Sat, 31 Jan 2026 23:59:59 GMT`
fn http_date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, rest, days) = civil(time);
    let (weekday, month) = (DAYS[days as usize % 7], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year} {:02}:{:02}:{:02} GMT", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// Year, month, day, seconds of the day, days since the epoch.
fn civil(time: SystemTime) -> (u64, u64, u64, u64, u64) {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let days = seconds / 86_400;
    let (mut year, mut left) = (1970, days);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1, seconds % 86_400, days)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_written_as_the_store_writes_them() {
        let at = UNIX_EPOCH + Duration::from_secs(1_796_023_800);
        assert_eq!(iso_date(at), "2026-11-30T07:30:00.000Z");
        assert_eq!(http_date(at), "Mon, 30 Nov 2026 07:30:00 GMT");
        assert_eq!(iso_date(UNIX_EPOCH + Duration::from_secs(951_825_601)), "2000-02-29T12:00:01.000Z");
    }
}
