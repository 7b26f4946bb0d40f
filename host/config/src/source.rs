//! `[source]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::{ByteSize, Secret};

/// `[source] type = "mysql"`.
#[derive(Clone, Debug, PartialEq)]
pub struct MysqlConfig {
    /// `host:port`, the first that can serve is used.
    pub hosts: Vec<String>,
    /// Account.
    pub username: String,
    /// Its password.
    pub password: Secret,
    /// `database.table` patterns, each part a regular expression; a leading `!` excludes.
    pub tables: Vec<String>,
    /// Where to begin when there is no checkpoint.
    pub startup: StartupMode,
    /// The id that this replica shows to the server; drawn at random by default.
    pub server_id: Option<u32>,
    /// Encryption of the connections.
    pub tls: TlsConfig,
    /// Connections that read tables (2).
    pub readers: u32,
    /// How tables are read.
    pub chunk: ChunkConfig,
    /// How a read is placed in the log.
    pub watermark: Watermark,
    /// What becomes of dates that no calendar has.
    pub zero_date: ZeroDate,
    /// Heartbeats of the log's connection (`"5s"`; half a second while a table is read).
    pub heartbeat: Duration,
    /// Time to connect and log in (`"10s"`).
    pub connect_timeout: Duration,
    /// How long lost connections are tried again before the pipeline gives up (`"5m"`).
    pub reconnect_timeout: Duration,
    /// A transaction larger than this is handed on before its end is read (`"64MiB"`).
    pub transaction_max_buffer: ByteSize,
}

/// Where a pipeline without checkpoint begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartupMode {
    /// Read all tables, then follow the log.
    #[default]
    Initial,
    /// Read all tables and end.
    Snapshot,
    /// Follow the log from where it ends now.
    Latest,
}

/// How tables are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkConfig {
    /// Rows a chunk at most (8,096).
    pub rows: u32,
    /// Bytes a chunk at most (8 MiB).
    pub bytes: ByteSize,
}

/// How a read of a table comes to see all that the log has up to the place where it is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watermark {
    /// By the server's GTIDs.
    #[default]
    Gtid,
    /// On a server without GTIDs, by share locks on the rows read.
    Lock,
    /// On a server without GTIDs, by waiting for so long.
    Lag(Duration),
}

/// What becomes of dates that no calendar has: zero dates, and those whose month or day is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroDate {
    /// The pipeline stops and names the column.
    #[default]
    Error,
    /// NULL; the columns of dates may be NULL at the target, whatever they are at the source.
    Null,
    /// All columns of dates are text, the server's own.
    Text,
}

/// Encryption of connections to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// How much is asked for; where none is given, see [`TlsConfig::mode_for`].
    pub mode: Option<TlsMode>,
    /// PEM file of the authorities to trust (default: the public ones).
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate.
    pub cert: Option<PathBuf>,
    /// PEM file of the client's key.
    pub key: Option<PathBuf>,
    /// Ask the server for its RSA key when a password must be sent without TLS (default: only on loopback).
    pub allow_public_key_retrieval: Option<bool>,
}

impl TlsConfig {
    /// How much is asked of a server. Where the file does not say it: `verify-identity`; on a loopback address, whose
    /// certificate is seldom made out to it, `verify-ca` where there is a `ca` and `preferred` where there is none.
    pub fn mode_for(&self, is_loopback: bool) -> TlsMode {
        match (self.mode, is_loopback) {
            (Some(mode), _) => mode,
            (None, false) => TlsMode::VerifyIdentity,
            (None, true) if self.ca.is_some() => TlsMode::VerifyCa,
            (None, true) => TlsMode::Preferred,
        }
    }
}

/// How much encryption is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// None.
    Disabled,
    /// Where the server offers it; certificates are not checked.
    Preferred,
    /// Always; certificates are not checked.
    Required,
    /// Always; the certificate must come from a trusted authority.
    VerifyCa,
    /// As `verify-ca`, and the certificate must be the host's.
    VerifyIdentity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_that_is_named_is_asked() {
        for (mode, ca, is_loopback, expect) in [
            (None, false, true, TlsMode::Preferred),
            (None, true, true, TlsMode::VerifyCa),
            (None, false, false, TlsMode::VerifyIdentity),
            (None, true, false, TlsMode::VerifyIdentity),
            (Some(TlsMode::Required), false, false, TlsMode::Required),
        ] {
            let tls = TlsConfig { mode, ca: ca.then(|| "ca.pem".into()), ..TlsConfig::default() };
            assert_eq!(tls.mode_for(is_loopback), expect, "{mode:?} {ca} {is_loopback}");
        }
    }
}
