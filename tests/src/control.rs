//! The control surface of a running pipeline, as a client sees it: HTTP over the unix socket in its state folder.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// An answer: the HTTP status and the JSON body.
#[derive(Clone, Debug)]
pub struct Reply {
    /// 200 and so on.
    pub code: u16,
    /// What it says.
    pub body: Value,
}

/// Sends one request; none if nobody listens there (any more).
pub fn request(socket: &Path, method: &str, path: &str, limit: Duration) -> Result<Option<Reply>> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(None) };
    stream.set_read_timeout(Some(limit))?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
    match sent {
        // The other side died while it answered.
        Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return Ok(None),
        sent => sent.with_context(|| format!("{method} {path}"))?,
    };
    if answer.is_empty() {
        return Ok(None);
    }
    parse(&answer).map(Some).with_context(|| format!("the answer to {method} {path}"))
}

fn parse(answer: &[u8]) -> Result<Reply> {
    let text = std::str::from_utf8(answer)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no end of the head")?;
    let code = head.split(' ').nth(1).context("no status")?.parse()?;
    ensure!(!head.to_ascii_lowercase().contains("transfer-encoding"), "a body in pieces");
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body)? };
    Ok(Reply { code, body })
}
