//! The greeting: what server and client agree on before the first command.

pub(crate) mod auth;
mod rsa;
pub(crate) mod tls;

use crate::connection::{ConnectOptions, ServerInfo, TlsState, is_news};
use crate::error::{ProtocolError, WireError};
use crate::packet::{PacketStream, Reader, put_string, server_error};
use auth::Method;
use tls::TlsMode;

/// What the two sides can do, one bit each, by MySQL's names.
mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const LONG_FLAG: u32 = 1 << 2;
    pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const SSL: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const CONNECT_ATTRS: u32 = 1 << 20;
    pub(super) const PLUGIN_AUTH_LENENC_CLIENT_DATA: u32 = 1 << 21;
    pub(super) const DEPRECATE_EOF: u32 = 1 << 24;

    /// Without these nothing here works; every server since 5.5 has them.
    pub(super) const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
    /// Asked for where offered. `LOCAL_FILES` (1 << 7) is never among them: no server may read files of this host.
    pub(super) const WANTED: u32 = NEEDED
        | LONG_PASSWORD
        | LONG_FLAG
        | TRANSACTIONS
        | PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CONNECT_ATTRS
        | DEPRECATE_EOF;
}

/// utf8mb4_general_ci: known to every server since 5.5.3.
const COLLATION: u8 = 45;
/// The largest packet that the server may send: its own upper limit.
const SERVER_PACKET_BYTES_MAX: u32 = 1 << 30;

/// A session that is logged in.
pub(crate) struct Session {
    pub(crate) packets: PacketStream,
    pub(crate) server: ServerInfo,
    pub(crate) deprecate_eof: bool,
}

/// The server's first packet.
#[derive(Debug)]
struct Greeting {
    version: String,
    connection_id: u32,
    capabilities: u32,
    nonce: Vec<u8>,
    method: String,
}

/// Greets, encrypts if asked to, and logs in.
pub(crate) async fn log_in(mut packets: PacketStream, options: &ConnectOptions) -> Result<Session, WireError> {
    let greeting = Greeting::read(packets.next().await?)?;
    if greeting.capabilities & capability::NEEDED != capability::NEEDED {
        return Err(WireError::unsupported(format!("a server that speaks an older protocol ({})", greeting.version)));
    }
    let mut capabilities = capability::WANTED & greeting.capabilities;
    if options.database.is_some() {
        capabilities |= capability::CONNECT_WITH_DB;
    }
    let mut tls = TlsState::Plain;
    if wants_tls(options, &greeting)? {
        capabilities |= capability::SSL;
        let encryption = tls::Encryption::new(&options.host, &options.tls)?;
        packets.send(&response_head(capabilities)).await?;
        packets = encryption.wrap(packets).await?;
        tls = TlsState::Encrypted;
    }
    packets.doing = "logging in";
    let method = Method::named(&greeting.method).unwrap_or(Method::CachingSha2);
    let proof = method.proof(&options.password, &greeting.nonce);
    packets.send(&response(capabilities, options, method, &proof)).await?;
    auth::answer(&mut packets, options, tls, method, greeting.nonce).await?;
    let server = ServerInfo {
        is_mariadb: greeting.version.contains("MariaDB"),
        version: greeting.version,
        connection_id: greeting.connection_id,
        tls,
    };
    Ok(Session { packets, server, deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0 })
}

/// Whether to encrypt; a server that cannot, where it must, is an error.
fn wants_tls(options: &ConnectOptions, greeting: &Greeting) -> Result<bool, WireError> {
    let offered = greeting.capabilities & capability::SSL != 0;
    match options.tls.mode {
        TlsMode::Disabled => Ok(false),
        TlsMode::Preferred => {
            if !offered && is_news(&options.host, options.port) {
                tracing::info!(host = %options.host, port = options.port, "the server offers no tls: connecting in clear");
            }
            Ok(offered)
        }
        TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity if offered => Ok(true),
        mode @ (TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity) => Err(WireError::Tls {
            reason: format!(
                "the server {}:{} offers none, but mode {} asks for it",
                options.host,
                options.port,
                mode.name()
            ),
            source: None,
        }),
    }
}

impl Greeting {
    fn read(packet: &[u8]) -> Result<Self, WireError> {
        if packet.first() == Some(&0xFF) {
            return Err(server_error(packet)?.into());
        }
        let mut reader = Reader::new("the server's greeting", packet);
        let protocol = reader.u8()?;
        if protocol != 10 {
            return Err(ProtocolError::new(format!("the server greets with protocol {protocol}, not 10")).into());
        }
        let version = String::from_utf8_lossy(reader.until_zero()?).into_owned();
        // Some MariaDB releases hide their number behind one that old replicas accept.
        let version = version.strip_prefix("5.5.5-").map_or(version.clone(), str::to_owned);
        let connection_id = reader.u32()?;
        let mut nonce = reader.take(8)?.to_vec();
        reader.skip(1)?;
        let low = reader.u16()?;
        reader.skip(3)?;
        let high = reader.u16()?;
        let nonce_bytes = reader.u8()?;
        reader.skip(10)?;
        nonce.extend_from_slice(reader.take(usize::from(nonce_bytes).saturating_sub(8).max(13))?);
        if nonce.last() == Some(&0) {
            nonce.pop();
        }
        let method = reader.rest().split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(Self {
            version,
            connection_id,
            capabilities: u32::from(low) | u32::from(high) << 16,
            nonce,
            method: String::from_utf8_lossy(method).into_owned(),
        })
    }
}

/// What the response begins with; alone, it asks for TLS.
fn response_head(capabilities: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&SERVER_PACKET_BYTES_MAX.to_le_bytes());
    out.push(COLLATION);
    out.extend_from_slice(&[0; 23]);
    out
}

fn response(capabilities: u32, options: &ConnectOptions, method: Method, proof: &[u8]) -> Vec<u8> {
    let mut out = response_head(capabilities);
    out.extend_from_slice(options.username.as_bytes());
    out.push(0);
    // A proof has at most 32 bytes, for which both forms of the length are one byte.
    put_string(&mut out, proof);
    if let Some(database) = &options.database {
        out.extend_from_slice(database.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(method.name().as_bytes());
    out.push(0);
    if capabilities & capability::CONNECT_ATTRS != 0 {
        let mut attributes = Vec::new();
        for (name, value) in [("program_name", "cdchost"), ("_client_version", env!("CARGO_PKG_VERSION"))] {
            put_string(&mut attributes, name.as_bytes());
            put_string(&mut attributes, value.as_bytes());
        }
        put_string(&mut out, &attributes);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::tests::{Random, mutate};
    use crate::query::{Column, refuse_more};

    const GREETING: &[u8] = b"\x0A8.0.15\0\x07\0\0\0nonce678\0\xFF\xFF\xFF\x02\0\xFF\xC3\x15\0\0\0\0\0\0\0\0\0\0\
        nonce6789012\0caching_sha2_password\0";
    const ERROR: &[u8] = b"\xFF\x15\x04#28000Access denied";
    const COLUMN: &[u8] = b"\x03def\x04shop\x01t\x01t\x02id\x02id\x0C\x3F\0\x14\0\0\0\x08\x21\0\0\0\0";
    const END: &[u8] = &[0xFE, 0xFC, 0, 1, 0, 2, 0, 0, 0];
    const KEY: &[u8] = include_bytes!("../tests/data/rsa-public.pem");

    #[test]
    fn no_damage_to_a_login_or_a_results_head_can_make_it_panic() {
        assert_eq!(Greeting::read(GREETING).unwrap().nonce.len(), 20);
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..40_000 {
            let parts = [GREETING, ERROR, COLUMN, END].map(|part| {
                let mut part = part.to_vec();
                mutate(&mut random, &mut part);
                part
            });
            let [greeting, error, column, end] = parts;
            let results = [
                Greeting::read(&greeting).is_ok(),
                server_error(&error).is_ok(),
                Column::read(&column).is_ok(),
                refuse_more(&end, true).is_ok(),
                refuse_more(&end, false).is_ok(),
            ];
            read += results.iter().filter(|&&ok| ok).count();
            refused += results.iter().filter(|&&ok| !ok).count();
        }
        assert!(read > 10_000 && refused > 10_000, "{read} read, {refused} refused");
    }

    #[test]
    fn no_damaged_key_can_make_it_panic() {
        rsa::encrypt_password("secret", &[1, 2, 3], KEY).unwrap();
        let mut random = Random(0xD1B5_4A32_D192_ED03);
        let mut refused = 0;
        for _ in 0..300 {
            let mut key = KEY.to_vec();
            mutate(&mut random, &mut key);
            refused += usize::from(rsa::encrypt_password("secret", &[1, 2, 3], &key).is_err());
        }
        assert!(refused > 30, "{refused} refused");
        assert!(rsa::encrypt_password("secret", &[], KEY).is_err());
        assert!(rsa::encrypt_password(&"x".repeat(300), &[1], KEY).is_err());
    }
}
