//! A request, taken apart and let in.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use hyper::header::{IF_NONE_MATCH, RANGE};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::answers::{Answer, refusal};
use super::{NAME, signature};

pub(super) struct Call {
    pub(super) method: Method,
    pub(super) key: String,
    pub(super) query: BTreeMap<String, String>,
    /// First byte, and the one after the last, if the request says it.
    pub(super) range: Option<(u64, Option<u64>)>,
    pub(super) only_if_absent: bool,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn parse(head: Parts, body: Bytes) -> Result<Self, Answer> {
        signature::check(&head, &body).map_err(|code| refusal(StatusCode::FORBIDDEN, code))?;
        let path = head.uri.path().trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        if bucket != NAME {
            return Err(refusal(StatusCode::NOT_FOUND, "NoSuchBucket"));
        }
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Self {
            key: decoded(key),
            query: pairs(head.uri.query().unwrap_or_default()).collect(),
            range: header(RANGE).and_then(range),
            only_if_absent: header(IF_NONE_MATCH) == Some("*"),
            method: head.method,
            body,
        })
    }

    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// The part of an object of this size that is asked for; none if it begins behind the end.
    pub(super) fn part(&self, size: usize) -> Option<Range<usize>> {
        let Some((start, end)) = self.range else { return Some(0..size) };
        let start = usize::try_from(start).ok().filter(|start| *start < size)?;
        let end = end.and_then(|end| usize::try_from(end).ok()).unwrap_or(size).min(size);
        (start < end).then_some(start..end)
    }
}

/// `name=value` pairs of a query; a plus sign there is a space.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let plain = |text: &str| decoded(&text.replace('+', " "));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(move |pair| pair.split_once('=').unwrap_or((pair, ""))).map(move |(k, v)| (plain(k), plain(v)))
}

fn range(text: &str) -> Option<(u64, Option<u64>)> {
    let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((start.parse().ok()?, end.parse::<u64>().ok().map(|last| last.saturating_add(1))))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
