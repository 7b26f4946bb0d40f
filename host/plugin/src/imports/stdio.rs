//! Standard output and error of a guest, cut into log lines.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::GuestLog;

/// Bytes kept while a line is not ended; a longer one is cut in two.
const LINE_BYTES_MAX: usize = 4096;

/// A stream whose lines go to the log. Never full, never closed.
#[derive(Clone)]
pub(super) struct Lines {
    log: Arc<GuestLog>,
    open: Arc<Mutex<Vec<u8>>>,
}

impl Lines {
    pub(super) fn new(log: Arc<GuestLog>) -> Self {
        Self { log, open: Arc::default() }
    }

    fn take(&self, bytes: &[u8]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|&byte| byte == b'\n').flat_map(|line| line.chunks(LINE_BYTES_MAX)) {
            open.extend_from_slice(piece);
            if piece.ends_with(b"\n") || open.len() >= LINE_BYTES_MAX {
                self.log.write(Level::INFO, String::from_utf8_lossy(&open).trim_end(), &[]);
                open.clear();
            }
        }
    }
}

impl IsTerminal for Lines {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Lines {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Lines {
    async fn ready(&mut self) {}
}

impl OutputStream for Lines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(LINE_BYTES_MAX)
    }
}

impl AsyncWrite for Lines {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
