//! Packets over a blocking socket, and a login without password.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Result, bail, ensure};

const LONG_PASSWORD: u32 = 1;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;

/// A connection with one large buffer; packets are slices of it.
pub(super) struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Socket {
    /// Logs in as root with an empty password.
    pub(super) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut socket = Self { stream, buffer: vec![0; 1 << 20], start: 0, end: 0 };
        socket.packet()?;
        let flags = LONG_PASSWORD | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH;
        let mut login = flags.to_le_bytes().to_vec();
        login.extend_from_slice(&(1u32 << 30).to_le_bytes());
        login.push(45);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(b"root\0\0caching_sha2_password\0");
        socket.send(1, &login)?;
        let answer = socket.packet()?.to_vec();
        if answer.first() == Some(&0xfe) {
            socket.send(3, &[])?;
            ensure!(socket.packet()?.first() == Some(&0), "the server refuses root without password");
        } else {
            ensure!(answer.first() == Some(&0), "the server refuses root without password");
        }
        Ok(socket)
    }

    /// Sends a command.
    pub(super) fn command(&mut self, payload: &[u8]) -> Result<()> {
        self.send(0, payload)
    }

    /// A statement without result.
    pub(super) fn run(&mut self, statement: &str) -> Result<()> {
        self.command(&[&[3], statement.as_bytes()].concat())?;
        ensure!(self.packet()?.first() == Some(&0), "the server refuses: {statement}");
        Ok(())
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) -> Result<()> {
        let length = u32::try_from(payload.len())?.to_le_bytes();
        let mut packet = vec![length[0], length[1], length[2], sequence];
        packet.extend_from_slice(payload);
        self.stream.write_all(&packet)?;
        Ok(())
    }

    /// The next packet; those of 16 MiB and more do not occur here.
    #[inline]
    pub(super) fn packet(&mut self) -> Result<&[u8]> {
        if self.end - self.start < 4 {
            self.fill(4)?;
        }
        let head = &self.buffer[self.start..self.start + 4];
        let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        if length == 0xff_ffff {
            bail!("a packet of 16 MiB");
        }
        if self.end - self.start < length + 4 {
            self.fill(length + 4)?;
        }
        let from = self.start + 4;
        self.start = from + length;
        Ok(&self.buffer[from..from + length])
    }

    fn fill(&mut self, wanted: usize) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted {
            let read = self.stream.read(&mut self.buffer[self.end..])?;
            ensure!(read > 0, "the server closed the connection");
            self.end += read;
        }
        Ok(())
    }
}
