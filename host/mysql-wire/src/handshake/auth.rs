//! Proving who we are: caching_sha2_password and mysql_native_password, nothing else.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::rsa;
use crate::connection::{ConnectOptions, TlsState};
use crate::error::{ProtocolError, WireError};
use crate::packet::{PacketStream, Reader, server_error};

/// Packets of a login at most: every healthy one needs fewer.
const PACKETS_MAX: usize = 8;

/// A way to prove a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `caching_sha2_password`, the default since MySQL 8.
    CachingSha2,
    /// `mysql_native_password`.
    Native,
}

impl Method {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::CachingSha2, Self::Native].into_iter().find(|method| method.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
        }
    }

    /// Shows knowledge of the password without sending it; empty for an empty password.
    pub(crate) fn proof(self, password: &str, nonce: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        let hash = match self {
            Self::CachingSha2 => &SHA256,
            Self::Native => &SHA1_FOR_LEGACY_USE_ONLY,
        };
        let once = digest(hash, password.as_bytes());
        let twice = digest(hash, once.as_ref());
        let mut salted = Context::new(hash);
        let (first, second) = match self {
            Self::CachingSha2 => (twice.as_ref(), nonce),
            Self::Native => (nonce, twice.as_ref()),
        };
        salted.update(first);
        salted.update(second);
        once.as_ref().iter().zip(salted.finish().as_ref()).map(|(one, other)| one ^ other).collect()
    }
}

/// Answers the server's questions until it lets us in or sends us away.
pub(crate) async fn answer(
    packets: &mut PacketStream,
    options: &ConnectOptions,
    tls: TlsState,
    mut method: Method,
    mut nonce: Vec<u8>,
) -> Result<(), WireError> {
    for _ in 0..PACKETS_MAX {
        let packet = packets.next().await?.to_vec();
        let reply = match packet.first() {
            Some(0x00) => return Ok(()),
            Some(0xFF) => return Err(refused(server_error(&packet)?, options)),
            Some(0xFE) => {
                (method, nonce) = switch(&packet)?;
                method.proof(&options.password, &nonce)
            }
            Some(0x01) => match (method, packet.get(1..)) {
                // The proof was right: the OK packet follows.
                (Method::CachingSha2, Some([3])) => continue,
                (Method::CachingSha2, Some([4])) => full_proof(options, tls)?,
                (Method::CachingSha2, Some(key)) if allows_public_key(options, tls) => {
                    rsa::encrypt_password(&options.password, &nonce, key)?
                }
                _ => return Err(ProtocolError::new(format!("a reply that {} does not know", method.name())).into()),
            },
            _ => return Err(ProtocolError::new("an unknown packet came during the login").into()),
        };
        packets.send(&reply).await?;
    }
    Err(ProtocolError::new("the login does not come to an end").into())
}

/// What to send when the server does not have the password in its cache.
fn full_proof(options: &ConnectOptions, tls: TlsState) -> Result<Vec<u8>, WireError> {
    match tls {
        TlsState::Encrypted => Ok([options.password.as_bytes(), &[0]].concat()),
        TlsState::Plain if options.allow_public_key_retrieval => Ok(vec![2]),
        TlsState::Plain => Err(WireError::Auth {
            reason: format!(
                "the server wants the password of '{}' itself, which is not sent without tls; use tls, or allow public \
                 key retrieval",
                options.username
            ),
            source: None,
        }),
    }
}

fn allows_public_key(options: &ConnectOptions, tls: TlsState) -> bool {
    tls == TlsState::Plain && options.allow_public_key_retrieval
}

/// Reads which method the server wants instead, and its new nonce.
fn switch(packet: &[u8]) -> Result<(Method, Vec<u8>), WireError> {
    if packet.len() == 1 {
        return Err(WireError::unsupported("passwords of MySQL before 4.1"));
    }
    let mut reader = Reader::new("the switch of the login method", packet);
    reader.skip(1)?;
    let name = String::from_utf8_lossy(reader.until_zero()?).into_owned();
    let method = Method::named(&name).ok_or_else(|| {
        WireError::unsupported(format!(
            "the login method '{name}' (caching_sha2_password and mysql_native_password are)"
        ))
    })?;
    let nonce = reader.rest();
    Ok((method, nonce.strip_suffix(&[0]).unwrap_or(nonce).to_vec()))
}

fn refused(error: crate::ServerError, options: &ConnectOptions) -> WireError {
    // Access denied, host not allowed, account locked, password expired, unknown database, method not supported.
    if matches!(error.code, 1044 | 1045 | 1049 | 1130 | 1251 | 1524 | 1820 | 1862 | 3118 | 3955) {
        let reason = format!("the server refuses '{}' at {}:{}", options.username, options.host, options.port);
        return WireError::Auth { reason, source: Some(error) };
    }
    error.into()
}
