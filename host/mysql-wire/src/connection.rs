//! A logged-in connection, and what was agreed on with the server.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;

use crate::error::{ProtocolError, WireError};
use crate::handshake;
use crate::handshake::tls::{TlsMode, TlsOptions};
use crate::packet::{PacketStream, Transport, server_error};

/// Where to connect, as whom, and how.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account.
    pub username: String,
    /// Its password, empty for none.
    pub password: String,
    /// Database to begin in.
    pub database: Option<String>,
    /// Encryption.
    pub tls: TlsOptions,
    /// Ask the server for its RSA key where a password must be sent without TLS. Someone in the middle could answer
    /// with a key of their own, so off by default.
    pub allow_public_key_retrieval: bool,
    /// Time for connecting and logging in.
    pub connect_timeout: Duration,
    /// How long nothing may come while an answer or a row is awaited (5 minutes).
    pub silence_max: Duration,
    /// The largest packet taken, joined, in bytes (1 GiB, the server's own limit, and a little).
    pub packet_bytes_max: usize,
}

impl ConnectOptions {
    /// Options with their defaults: TLS preferred, 10 s to connect.
    pub fn new(host: impl Into<String>, port: u16, username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port,
            username: username.into(),
            password: password.into(),
            database: None,
            tls: TlsOptions::default(),
            allow_public_key_retrieval: false,
            connect_timeout: Duration::from_secs(10),
            silence_max: Duration::from_secs(300),
            packet_bytes_max: (1 << 30) + (1 << 20),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("username", &self.username)
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsState {
    /// In clear.
    Plain,
    /// By TLS.
    Encrypted,
}

/// What the server said of itself when it greeted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// As it says it, e.g. `8.0.15` or `10.11.19-MariaDB`.
    pub version: String,
    /// MariaDB, or one of its kind.
    pub is_mariadb: bool,
    /// The number of this connection, as in `SHOW PROCESSLIST`.
    pub connection_id: u32,
    /// Whether the connection is encrypted.
    pub tls: TlsState,
}

/// Whether it is the first time that this process says of a server that it connects in clear: each connection is made
/// like the one before.
pub(crate) fn is_news(host: &str, port: u16) -> bool {
    static TOLD: Mutex<BTreeSet<(String, u16)>> = Mutex::new(BTreeSet::new());
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert((host.to_owned(), port))
}

/// What a connection can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A command may be sent.
    Ours,
    /// An answer is being read. If nobody reads it to its end, the connection is of no more use.
    Server,
}

/// A connection that is logged in. One command at a time; dropping it cancels what runs.
#[derive(Debug)]
pub struct Connection {
    pub(crate) packets: PacketStream,
    server: ServerInfo,
    turn: Turn,
    /// The server ends results with an OK packet, not with the older EOF packet.
    pub(crate) deprecate_eof: bool,
}

impl Connection {
    /// Connects, agrees on encryption and logs in.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, WireError> {
        match tokio::time::timeout(options.connect_timeout, Self::connect_as_preferred(options)).await {
            Ok(result) => result,
            Err(_) => Err(WireError::Silent { doing: "connecting and logging in", silence: options.connect_timeout }),
        }
    }

    /// Where TLS is only preferred and cannot be agreed on, e.g. for want of a common cipher, connects again in clear
    /// and says so; a password is still not sent in clear.
    async fn connect_as_preferred(options: &ConnectOptions) -> Result<Self, WireError> {
        match Self::connect_once(options).await {
            Err(WireError::Tls { reason, source }) if options.tls.mode == TlsMode::Preferred => {
                let cause = source.map(|source| source.to_string()).unwrap_or_default();
                if is_news(&options.host, options.port) {
                    tracing::warn!(host = %options.host, port = options.port, reason, cause, "no tls: connecting in clear");
                }
                let tls = TlsOptions { mode: TlsMode::Disabled, ..options.tls.clone() };
                Self::connect_once(&ConnectOptions { tls, ..options.clone() }).await
            }
            result => result,
        }
    }

    async fn connect_once(options: &ConnectOptions) -> Result<Self, WireError> {
        let socket = TcpStream::connect((options.host.as_str(), options.port)).await;
        let socket = socket.and_then(|socket| socket.set_nodelay(true).map(|()| socket));
        let address = || format!("{}:{}", options.host, options.port);
        let socket = socket.map_err(|source| WireError::Connect { address: address(), source })?;
        Self::log_in(Box::new(socket), options).await
    }

    /// Logs in over a transport that is there.
    pub(crate) async fn log_in(transport: Box<dyn Transport>, options: &ConnectOptions) -> Result<Self, WireError> {
        let packets = PacketStream::new(transport, options.packet_bytes_max, options.silence_max);
        let session = handshake::log_in(packets, options).await?;
        Ok(Self {
            packets: session.packets,
            server: session.server,
            turn: Turn::Ours,
            deprecate_eof: session.deprecate_eof,
        })
    }

    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Says good-bye, so that the server does not count an aborted client.
    pub async fn quit(mut self) -> Result<(), WireError> {
        self.begin("leaving", &[0x01]).await
    }

    /// Sends a command; from here on an answer is awaited.
    pub(crate) async fn begin(&mut self, doing: &'static str, payload: &[u8]) -> Result<(), WireError> {
        if self.turn != Turn::Ours {
            return Err(WireError::Abandoned);
        }
        self.turn = Turn::Server;
        self.packets.command(doing, payload).await
    }

    /// The answer has been read to its end.
    pub(crate) fn end(&mut self) {
        self.turn = Turn::Ours;
    }

    /// The server answered with an error: that is the answer's end.
    #[cold]
    pub(crate) fn failed(&mut self, packet: &[u8]) -> WireError {
        match server_error(packet) {
            Ok(error) => {
                self.end();
                error.into()
            }
            Err(error) => error.into(),
        }
    }

    /// The first packet of an answer, copied; an error of the server is one here too.
    pub(crate) async fn answer(&mut self) -> Result<Vec<u8>, WireError> {
        let packet = self.packets.next().await?.to_vec();
        match packet.first() {
            Some(0xFF) => Err(self.failed(&packet)),
            Some(_) => Ok(packet),
            None => Err(ProtocolError::new("an empty packet came as an answer").into()),
        }
    }
}

#[cfg(test)]
mod tests;
