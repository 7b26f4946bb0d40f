//! A TCP link that can be broken: held open and dead, cut after some bytes, one bit flipped, too short.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Bytes moved at once.
const PIECE: usize = 16 << 10;

/// A link to a server; gone when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    faults: Arc<Faults>,
    _tasks: JoinSet<()>,
}

/// What is to go wrong. Counts are of bytes from the server, over all connections.
#[derive(Debug)]
struct Faults {
    /// Connections up to this number are dead: what they get goes nowhere.
    held: AtomicU64,
    made: AtomicU64,
    /// Bytes until the connection that brings them is cut; none if negative.
    cut: AtomicI64,
    /// Bytes until a bit is flipped; none if negative.
    flip: AtomicI64,
    /// A cut or a flip was done.
    struck: AtomicBool,
    /// Bytes that a new connection brings before it is reset; all of them if negative.
    brings: AtomicI64,
}

impl Proxy {
    /// A link to `address` (`host:port`) on a port of its own.
    pub async fn to(address: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let port = listener.local_addr()?.port();
        let faults = Arc::new(Faults {
            held: AtomicU64::new(0),
            made: AtomicU64::new(0),
            cut: AtomicI64::new(-1),
            flip: AtomicI64::new(-1),
            struck: AtomicBool::new(false),
            brings: AtomicI64::new(-1),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, address, Arc::clone(&faults)));
        Ok(Self { port, faults, _tasks: tasks })
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// All connections that are there go dead without being closed; new ones work.
    pub fn hold(&self) {
        self.faults.held.store(self.faults.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// After so many more bytes from the server, the connection that brings them is reset.
    pub fn cut_after(&self, bytes: u32) {
        self.arm(&self.faults.cut, bytes);
    }

    /// A bit of the byte after so many more from the server is flipped.
    pub fn flip_after(&self, bytes: u32) {
        self.arm(&self.faults.flip, bytes);
    }

    /// Each new connection is reset after so many bytes from the server; all of them work for none.
    pub fn bring(&self, bytes: Option<u32>) {
        self.faults.brings.store(bytes.map_or(-1, i64::from), Ordering::SeqCst);
    }

    /// Whether the cut or the flip was done.
    pub fn has_struck(&self) -> bool {
        self.faults.struck.load(Ordering::SeqCst)
    }

    fn arm(&self, fault: &AtomicI64, bytes: u32) {
        self.faults.struck.store(false, Ordering::SeqCst);
        fault.store(bytes.into(), Ordering::SeqCst);
    }
}

async fn serve(listener: TcpListener, address: String, faults: Arc<Faults>) {
    let mut links = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = faults.made.fetch_add(1, Ordering::SeqCst) + 1;
        let Ok(server) = TcpStream::connect(&address).await else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        links.spawn(pass(from_client, to_server, number, Arc::clone(&faults), false));
        links.spawn(pass(from_server, to_client, number, Arc::clone(&faults), true));
    }
}

/// Moves bytes one way until an end or a fault; then both ends are closed by being dropped.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, number: u64, faults: Arc<Faults>, is_down: bool) {
    let mut piece = vec![0; PIECE];
    let mut left = usize::try_from(faults.brings.load(Ordering::SeqCst)).ok().filter(|_| is_down);
    while let Ok(length @ 1..) = from.read(&mut piece[..left.unwrap_or(PIECE).min(PIECE)]).await {
        if faults.held.load(Ordering::SeqCst) >= number {
            continue;
        }
        let mut bytes = &mut piece[..length];
        if is_down {
            if let Some(at) = faults.strikes(&faults.flip, bytes.len()) {
                bytes[at] ^= 0x10;
            }
            if let Some(at) = faults.strikes(&faults.cut, bytes.len()) {
                bytes = &mut bytes[..at];
                let _ = to.write_all(bytes).await;
                break;
            }
        }
        left = left.map(|left| left - length);
        if to.write_all(bytes).await.is_err() || left == Some(0) {
            break;
        }
    }
    let _ = to.shutdown().await;
}

impl Faults {
    /// Where among the next bytes a fault lies; it is done once.
    fn strikes(&self, fault: &AtomicI64, length: usize) -> Option<usize> {
        let left = fault.load(Ordering::SeqCst);
        let at = usize::try_from(left).ok()?;
        if at >= length {
            fault.store(left - i64::try_from(length).expect("a piece is small"), Ordering::SeqCst);
            return None;
        }
        fault.store(-1, Ordering::SeqCst);
        self.struck.store(true, Ordering::SeqCst);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn faults_strike_where_they_are_told_to() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(server.local_addr().unwrap().to_string()).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut peer, _) = server.accept().await.unwrap();
        let mut got = [0; 4];
        proxy.flip_after(2);
        peer.write_all(&[1, 2, 3, 4]).await.unwrap();
        client.read_exact(&mut got).await.unwrap();
        assert_eq!(got, [1, 2, 3 ^ 0x10, 4]);
        assert!(proxy.has_struck());
        proxy.cut_after(1);
        assert!(!proxy.has_struck());
        peer.write_all(&[5, 6]).await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, [5]);
        proxy.bring(Some(2));
        let mut short = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut peer, _) = server.accept().await.unwrap();
        peer.write_all(&[1, 2, 3]).await.unwrap();
        rest.clear();
        short.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, [1, 2]);
        proxy.bring(None);
        let mut held = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut peer, _) = server.accept().await.unwrap();
        proxy.hold();
        peer.write_all(&[7]).await.unwrap();
        let mut other = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut other_peer, _) = server.accept().await.unwrap();
        other_peer.write_all(&[8]).await.unwrap();
        assert_eq!(other.read_u8().await.unwrap(), 8);
        let silence = tokio::time::timeout(std::time::Duration::from_millis(50), held.read_u8()).await;
        assert!(silence.is_err(), "a held link is silent, not closed: {silence:?}");
    }
}
