//! The server's side of the protocol, packet by packet, as a test scripts it.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::packet::PART_BYTES;

pub(super) struct FakeServer<S> {
    pub(super) stream: S,
    /// Id of the next packet, of either side.
    pub(super) sequence: u8,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FakeServer<S> {
    /// Protocol 4.1, TLS, LOCAL INFILE, login methods, the newer end of rows, and what else 8.0 offers.
    pub(super) const CAPABILITIES: u32 = 0xC3FF_FFFF;
    pub(super) const SSL: u32 = 1 << 11;
    pub(super) const DEPRECATE_EOF: u32 = 1 << 24;
    pub(super) const NONCE: [u8; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

    pub(super) fn new(stream: S) -> Self {
        Self { stream, sequence: 0 }
    }

    pub(super) async fn greet(&mut self, version: &str, method: &str, capabilities: u32) {
        let [a, b, c, d] = capabilities.to_le_bytes();
        let (nonce, more) = Self::NONCE.split_at(8);
        let parts: [&[u8]; 10] = [
            &[10],
            version.as_bytes(),
            &[0, 7, 0, 0, 0],
            nonce,
            &[0, a, b, 45, 2, 0, c, d, 21],
            &[0; 10],
            more,
            &[0],
            method.as_bytes(),
            &[0],
        ];
        self.send(&parts.concat()).await;
    }

    /// Reads a packet of the client, joined.
    pub(super) async fn receive(&mut self) -> Vec<u8> {
        let mut joined = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header).await.unwrap();
            let [a, b, c, sequence] = header;
            self.sequence = sequence.wrapping_add(1);
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            let mut part = vec![0; length];
            self.stream.read_exact(&mut part).await.unwrap();
            joined.extend_from_slice(&part);
            if length < PART_BYTES {
                return joined;
            }
        }
    }

    /// Sends a packet, in parts where it is long. A client that is gone is none of the server's troubles.
    pub(super) async fn send(&mut self, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES));
            let [a, b, c, ..] = (part.len() as u32).to_le_bytes();
            let _gone = self.stream.write_all(&[a, b, c, self.sequence]).await;
            let _gone = self.stream.write_all(part).await;
            self.sequence = self.sequence.wrapping_add(1);
            rest = after;
            if part.len() < PART_BYTES {
                return;
            }
        }
    }

    /// Answers with columns of 64-bit numbers by these names, and what ends their definitions.
    pub(super) async fn send_columns(&mut self, names: &[&str], eof: Option<&[u8]>) {
        self.send(&[names.len() as u8]).await;
        for name in names {
            self.send(&column(name)).await;
        }
        if let Some(eof) = eof {
            self.send(eof).await;
        }
    }
}

pub(super) fn column(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for text in ["def", "shop", "t", "t", name, name] {
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&[0x0C, 63, 0, 20, 0, 0, 0, 8, 0x21, 0, 0, 0, 0]);
    out
}
