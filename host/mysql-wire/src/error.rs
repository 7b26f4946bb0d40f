//! The crate's errors, shaped by the question that their reader has: what now?

use std::io;
use std::time::Duration;

/// Bytes that no healthy server sends. The message says what was read and how it was wrong, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    message: String,
}

impl ProtocolError {
    /// An error in lower case, without full stop.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// `what` ends before all of its parts were there.
    #[cold]
    pub(crate) fn short(what: &str) -> Self {
        Self::new(format!("{what} ends too early"))
    }
}

/// An error that the server reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server answered error {code} ({state}): {message}")]
pub struct ServerError {
    /// MySQL's error number, e.g. 1236.
    pub code: u16,
    /// SQLSTATE, five characters.
    pub state: String,
    /// The server's text, at most 512 characters.
    pub message: String,
}

impl ServerError {
    /// Whether the same call may well succeed a little later: the server is starting, stopping, full or cut us off.
    pub fn is_passing(&self) -> bool {
        // too many connections (also of a user), shutdown, killed, aborted, net read/write faults, lock waits,
        // query killed, host's resources used up, connection killed by the server.
        matches!(
            self.code,
            1040 | 1203 | 1226 | 1053 | 1077 | 1079 | 1152 | 1158
                ..=1161 | 1205 | 1213 | 1317 | 1927 | 3168 | 3169 | 4031
        )
    }
}

/// What the caller does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Connect again after a pause.
    Reconnect,
    /// A person must mend host, account, certificate or options.
    FixConfig,
    /// The server said no; its code decides.
    AskServerCode,
    /// Nothing mends it: the server sends what this program does not take.
    Stop,
    /// A fault of the calling code.
    Bug,
}

/// What went wrong on a connection.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server cannot be reached.
    #[error("{address} cannot be reached")]
    Connect {
        /// `host:port`.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection was lost while {doing}")]
    Lost {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nothing came for too long: a half-open link, or a server that hangs.
    #[error("no byte came for {silence:?} while {doing}: the link is half-open, or the server hangs")]
    Silent {
        /// What was being done.
        doing: &'static str,
        /// How long nothing came.
        silence: Duration,
    },
    /// The server ended a stream that has no end.
    #[error("the server ended the binlog stream")]
    StreamEnded,
    /// The server reported an error.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The account cannot log in, or not in a way that is allowed here.
    #[error("cannot log in: {reason}")]
    Auth {
        /// Why.
        reason: String,
        /// The server's own answer, where it gave one.
        #[source]
        source: Option<ServerError>,
    },
    /// Encryption is asked for and cannot be had, or not the way it is asked for.
    #[error("tls: {reason}")]
    Tls {
        /// Why.
        reason: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Bytes were changed on their way or at rest: reading them again may give them right.
    #[error("damaged bytes: {0}")]
    Damaged(ProtocolError),
    /// Something is larger than the limit set for it.
    #[error("{what} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The server sends or asks for what is refused here.
    #[error("not supported: {what}")]
    Unsupported {
        /// What.
        what: String,
    },
    /// The connection was used again after a result was left half-read or a call was given up.
    #[error("the connection was given up in the middle of an earlier result")]
    Abandoned,
    /// The caller asked for what cannot be.
    #[error("wrong use of a connection: {0}")]
    Misuse(String),
}

impl WireError {
    /// What to do now.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Connect { .. } | Self::Lost { .. } | Self::Silent { .. } | Self::StreamEnded | Self::Damaged(_) => {
                Remedy::Reconnect
            }
            Self::Server(error) if error.is_passing() => Remedy::Reconnect,
            Self::Server(_) => Remedy::AskServerCode,
            Self::Auth { .. } | Self::Tls { .. } | Self::TooLarge { .. } => Remedy::FixConfig,
            Self::Protocol(_) | Self::Unsupported { .. } => Remedy::Stop,
            Self::Abandoned | Self::Misuse(_) => Remedy::Bug,
        }
    }

    pub(crate) fn lost(doing: &'static str, source: io::Error) -> Self {
        Self::Lost { doing, source }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
