//! Standard output and error of a guest: lines of the log, or, where that is granted, lines of the host's own output.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::GuestLog;

/// Bytes of a log line kept while it is not ended; a longer one is cut in two.
const LINE_BYTES_MAX: usize = 4096;
/// Bytes of a printed line; a row is smaller.
const PRINTED_LINE_BYTES_MAX: usize = 256 << 20;

/// Takes what a guest writes; never full.
pub(super) trait Taker: Send + Sync + 'static {
    fn take(&self, bytes: &[u8]) -> io::Result<()>;
}

/// One of a guest's streams.
pub(super) struct Stream<T>(Arc<T>);

impl<T> Clone for Stream<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Lines to the log. Never closed.
pub(super) struct Logged {
    log: Arc<GuestLog>,
    open: Mutex<Vec<u8>>,
}

/// Whole lines to the host's standard output, so that lines of several guests do not run into each other.
#[derive(Default)]
pub(super) struct Printed {
    open: Mutex<Vec<u8>>,
}

impl Stream<Logged> {
    pub(super) fn logged(log: Arc<GuestLog>) -> Self {
        Self(Arc::new(Logged { log, open: Mutex::default() }))
    }
}

impl Stream<Printed> {
    pub(super) fn printed() -> Self {
        Self(Arc::default())
    }
}

impl Taker for Logged {
    fn take(&self, bytes: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|&byte| byte == b'\n').flat_map(|line| line.chunks(LINE_BYTES_MAX)) {
            open.extend_from_slice(piece);
            if piece.ends_with(b"\n") || open.len() >= LINE_BYTES_MAX {
                self.log.write(Level::INFO, String::from_utf8_lossy(&open).trim_end(), &[]);
                open.clear();
            }
        }
        Ok(())
    }
}

impl Taker for Printed {
    fn take(&self, bytes: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            if open.len() + bytes.len() > PRINTED_LINE_BYTES_MAX {
                return Err(io::Error::other("a line is too long to be printed"));
            }
            open.extend_from_slice(bytes);
            return Ok(());
        };
        let (lines, rest) = bytes.split_at(end + 1);
        open.extend_from_slice(lines);
        // A reader that is slow holds up this guest alone.
        let printed = tokio::task::block_in_place(|| {
            let mut out = io::stdout().lock();
            out.write_all(&open).and_then(|()| out.flush())
        });
        open.clear();
        open.extend_from_slice(rest);
        printed
    }
}

impl<T> IsTerminal for Stream<T> {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl<T: Taker> StdoutStream for Stream<T> {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl<T: Taker> Pollable for Stream<T> {
    async fn ready(&mut self) {}
}

impl<T: Taker> OutputStream for Stream<T> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.take(&bytes).map_err(|error| match error.kind() {
            // The guest is told no more of other errors than that there was one.
            io::ErrorKind::BrokenPipe => StreamError::Closed,
            _ => {
                tracing::error!(event = "output-failed", reason = %error, "standard output takes no more lines");
                StreamError::LastOperationFailed(error.into())
            }
        })
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(LINE_BYTES_MAX)
    }
}

impl<T: Taker> AsyncWrite for Stream<T> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.take(bytes).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
