//! Signatures of version 4, checked as the store checks them.

use std::time::{SystemTime, UNIX_EPOCH};

use hyper::http::request::Parts;
use sha2::{Digest, Sha256};

use super::call::pairs;
use super::{ACCESS_KEY, REGION, SECRET};

/// Seconds that the clocks of the two sides may differ.
const SKEW_MAX: u64 = 15 * 60;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Lets a request in, or says the code of its refusal.
pub(super) fn check(head: &Parts, body: &[u8]) -> Result<(), &'static str> {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization").strip_prefix(ALGORITHM).ok_or("AccessDenied")?;
    let part = |name: &str| {
        let mut parts = authorization.split(',').filter_map(|part| part.trim().split_once('='));
        parts.find(|(found, _)| *found == name).map(|(_, value)| value).ok_or("AccessDenied")
    };
    let credential: Vec<&str> = part("Credential")?.split('/').collect();
    let [key, day, region, "s3", "aws4_request"] = credential[..] else { return Err("AuthorizationHeaderMalformed") };
    if key != ACCESS_KEY {
        return Err("InvalidAccessKeyId");
    }
    if region != REGION {
        return Err("AuthorizationHeaderMalformed");
    }
    let date = header("x-amz-date");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if !date.starts_with(day) || seconds(date).is_none_or(|signed| signed.abs_diff(now) > SKEW_MAX) {
        return Err("RequestTimeTooSkewed");
    }
    let content = header("x-amz-content-sha256");
    if content != "UNSIGNED-PAYLOAD" && content != hex(&Sha256::digest(body)) {
        return Err("XAmzContentSHA256Mismatch");
    }
    let names = part("SignedHeaders")?;
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", header(name).trim())).collect();
    // As sender and store spell it before they sign it, whatever it was on its way.
    let pairs = pairs(head.uri.query().unwrap_or_default());
    let mut query: Vec<_> = pairs.map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value))).collect();
    query.sort_unstable();
    let request = format!("{}\n{}\n{}\n{headers}\n{names}\n{content}", head.method, head.uri.path(), query.join("&"));
    let scope = format!("{day}/{region}/s3/aws4_request");
    let signed = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let first = hmac(format!("AWS4{SECRET}").as_bytes(), day.as_bytes());
    let key = [region, "s3", "aws4_request"].iter().fold(first, |key, part| hmac(&key, part.as_bytes()));
    let fits = part("Signature")? == hex(&hmac(&key, signed.as_bytes()));
    if fits { Ok(()) } else { Err("SignatureDoesNotMatch") }
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = [0; BLOCK];
    let short = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block[..short.len()].copy_from_slice(&short);
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All but letters, digits and `-._~` as `%XX`.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Seconds since the epoch of `20260131T235959Z`.
fn seconds(date: &str) -> Option<u64> {
    let number = |from: usize, to: usize| date.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    // Years begin in March here, so that the day that not each has comes last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?; // days from March of the year 0 to 1970
    Some(days * 86_400 + number(9, 11)? * 3_600 + number(11, 13)? * 60 + number(13, 15)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        assert_eq!(seconds("19700101T000000Z"), Some(0));
        assert_eq!(seconds("20000229T120001Z"), Some(951_825_601));
        assert_eq!(seconds("20261130T073000Z"), Some(1_796_023_800));
        assert_eq!(seconds("x"), None);
    }

    #[test]
    fn the_code_of_a_message_is_the_known_one() {
        let code = hmac(b"key", b"The quick brown fox jumps over the lazy dog");
        assert_eq!(hex(&code), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
    }
}
