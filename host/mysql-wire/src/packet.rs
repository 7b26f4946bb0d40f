//! Packets of a connection: framing, sequence ids and size limits, taken out of one buffer without a copy each.

mod buffer;
mod reader;

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use buffer::PacketBuffer;
pub(crate) use buffer::Taken;
pub(crate) use reader::{Reader, put_string};

use crate::error::{ProtocolError, ServerError, WireError};

/// The payload of a packet that is continued by the next one.
pub(crate) const PART_BYTES: usize = 0xFF_FFFF;

/// What carries the bytes: TCP, TLS over TCP, or a pipe in tests.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Transport for T {}

/// Packets in both directions over one transport.
pub(crate) struct PacketStream {
    transport: Box<dyn Transport>,
    input: PacketBuffer,
    output: Vec<u8>,
    /// How long nothing may come while something is awaited.
    pub(crate) silence_max: Duration,
    /// What is being done, for errors.
    pub(crate) doing: &'static str,
}

impl fmt::Debug for PacketStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketStream").field("doing", &self.doing).finish_non_exhaustive()
    }
}

impl PacketStream {
    pub(crate) fn new(transport: Box<dyn Transport>, packet_bytes_max: usize, silence_max: Duration) -> Self {
        Self {
            transport,
            input: PacketBuffer::new(packet_bytes_max),
            output: Vec::new(),
            silence_max,
            doing: "greeting the server",
        }
    }

    /// Wraps the transport into another. Refused while bytes of the old one wait: they would be taken for bytes of
    /// the new one.
    pub(crate) async fn rewrap<F>(self, wrap: impl FnOnce(Box<dyn Transport>) -> F) -> Result<Self, WireError>
    where
        F: Future<Output = Result<Box<dyn Transport>, WireError>> + Send,
    {
        if self.input.has_bytes() {
            return Err(ProtocolError::new("bytes came in clear after encryption was agreed on").into());
        }
        Ok(Self { transport: wrap(self.transport).await?, ..self })
    }

    /// Sends the first packet of a command.
    pub(crate) async fn command(&mut self, doing: &'static str, payload: &[u8]) -> Result<(), WireError> {
        self.doing = doing;
        self.input.expect_sequence(0);
        self.send(payload).await
    }

    /// Sends a packet, in parts where it is long.
    pub(crate) async fn send(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.output.clear();
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES));
            let length = u32::try_from(part.len()).expect("a part has less than 2^24 bytes").to_le_bytes();
            self.output.extend_from_slice(&length[..3]);
            self.output.push(self.input.use_sequence());
            self.output.extend_from_slice(part);
            rest = after;
            if part.len() < PART_BYTES {
                break;
            }
        }
        let written = async {
            self.transport.write_all(&self.output).await?;
            self.transport.flush().await
        };
        let written = tokio::time::timeout(self.silence_max, written).await;
        self.output = Vec::new();
        match written {
            Ok(result) => result.map_err(|error| WireError::lost(self.doing, error)),
            Err(_) => Err(WireError::Silent { doing: self.doing, silence: self.silence_max }),
        }
    }

    /// Takes the next packet if all of it has been read from the transport. Never waits.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<Taken>, WireError> {
        self.input.take()
    }

    /// The bytes of the packet just taken.
    #[inline]
    pub(crate) fn bytes(&self, taken: &Taken) -> &[u8] {
        self.input.bytes(taken)
    }

    /// The next packet, waiting for it.
    pub(crate) async fn next(&mut self) -> Result<&[u8], WireError> {
        let taken = self.next_taken().await?;
        Ok(self.input.bytes(&taken))
    }

    /// Waits for the next packet and takes it.
    pub(crate) async fn next_taken(&mut self) -> Result<Taken, WireError> {
        loop {
            if let Some(taken) = self.input.take()? {
                return Ok(taken);
            }
            self.fill().await?;
        }
    }

    /// Waits for more bytes. May be dropped at any time without losing any.
    pub(crate) async fn fill(&mut self) -> Result<(), WireError> {
        let space = self.input.space();
        let read = match tokio::time::timeout(self.silence_max, self.transport.read(space)).await {
            Ok(Ok(0)) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(read) => read,
            Err(_) => return Err(WireError::Silent { doing: self.doing, silence: self.silence_max }),
        };
        let count = read.map_err(|error| WireError::lost(self.doing, error))?;
        self.input.filled(count);
        Ok(())
    }
}

/// Reads an ERR packet, its first byte 0xFF included.
pub(crate) fn server_error(packet: &[u8]) -> Result<ServerError, ProtocolError> {
    let mut reader = Reader::new("an error packet", packet);
    reader.skip(1)?;
    let code = reader.u16()?;
    // Before the login is through, some servers leave the state out.
    let state = if reader.rest().first() == Some(&b'#') {
        reader.skip(1)?;
        String::from_utf8_lossy(reader.take(5)?).into_owned()
    } else {
        "HY000".to_owned()
    };
    let message = String::from_utf8_lossy(reader.rest()).chars().take(512).collect();
    Ok(ServerError { code, state, message })
}
