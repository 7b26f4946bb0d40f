//! A double of an object store that speaks S3's API: one bucket in memory, served on this machine, faults by script.
//!
//! It knows GET (whole, and one range), HEAD, PUT (with `If-None-Match: *`), DELETE, LIST version 2 with prefix,
//! delimiter, start and pages, and uploads in parts. Signatures of version 4 are checked whole: key, date, headers,
//! content. Not there: several buckets, versions, ACLs, copies, deletion in bulk, other conditions, checksums beside
//! the content's own, chunked signatures, presigned addresses, the virtual-hosted style, TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use self::answers::{Answer, refusal};
use self::call::Call;
use crate::wait;

mod answers;
mod call;
mod objects;
mod signature;

/// The name of the only bucket.
pub const NAME: &str = "lake-bucket";
/// The only access key that it knows.
pub const ACCESS_KEY: &str = "AKTESTTESTTEST";
/// The key's secret; nothing may ever show it.
pub const SECRET: &str = "s3cret-canary/of+the=bucket";
/// Its region.
pub const REGION: &str = "eu-test-1";

/// What happens to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It is not done: 500.
    Error,
    /// It is done, and the connection ends without an answer.
    LostAnswer,
    /// It is done after this time.
    Slow(Duration),
    /// It is not done: 409, as when another write of the same key is under way.
    Conflict,
    /// It is done as if it had no condition, as stores do that do not know conditions.
    Unconditional,
}

type Script = Box<dyn FnMut(&Method, &str) -> Fault + Send>;

/// A bucket and its server.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropped, the server ends.
    _end: tokio::sync::oneshot::Sender<()>,
}

struct Shared {
    bucket: Mutex<objects::Objects>,
    script: Mutex<Option<Script>>,
    asked: Mutex<Vec<String>>,
}

impl Bucket {
    /// Serves an empty bucket.
    pub fn open() -> Result<Self> {
        let script = Mutex::new(None);
        let shared = Arc::new(Shared { bucket: Mutex::default(), script, asked: Mutex::default() });
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (end, ended) = tokio::sync::oneshot::channel();
        let served = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("bucket".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = ended => {}
                    _ = serve(listener, served) => {}
                }
            });
        })?;
        Ok(Self { address, shared, _end: end })
    }

    /// The options with which a store opens it.
    pub fn options(&self) -> BTreeMap<String, String> {
        let options = [
            ("endpoint", format!("http://{}", self.address)),
            ("region", REGION.to_owned()),
            ("access-key-id", ACCESS_KEY.to_owned()),
            ("secret-access-key", SECRET.to_owned()),
            ("allow-http", "true".to_owned()),
        ];
        options.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// What happens to the requests from now on, by method and key.
    pub fn script(&self, script: impl FnMut(&Method, &str) -> Fault + Send + 'static) {
        *held(&self.shared.script) = Some(Box::new(script));
    }

    /// What was asked since the last time: `METHOD key`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut held(&self.shared.asked))
    }

    /// Keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        held(&self.shared.bucket).keys()
    }

    /// Uploads in parts that are neither complete nor given up.
    pub fn open_uploads(&self) -> usize {
        held(&self.shared.bucket).open_uploads()
    }

    /// Writes all objects below a prefix into a folder, for readers of files.
    pub fn copy_to(&self, prefix: &str, folder: &Path) -> Result<()> {
        for (key, data) in held(&self.shared.bucket).below(prefix) {
            let path = folder.join(key);
            std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
            std::fs::write(path, data)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// A lock whose content is whole between two statements, whoever panicked.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| answer(Arc::clone(&shared), request));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// An error ends the connection without an answer.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = match Call::parse(head, body) {
        Ok(call) => call,
        Err(refused) => return Ok(refused),
    };
    held(&shared.asked).push(format!("{} {}", call.method, call.key));
    let fault = held(&shared.script).as_mut().map_or(Fault::None, |script| script(&call.method, &call.key));
    let done = |call: Call| -> Answer { held(&shared.bucket).answer(call) };
    match fault {
        Fault::None => Ok(done(call)),
        Fault::Error => Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
        Fault::Conflict => Ok(refusal(StatusCode::CONFLICT, "ConditionalRequestConflict")),
        Fault::LostAnswer => {
            done(call);
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        Fault::Slow(time) => {
            wait::pass(time).await;
            Ok(done(call))
        }
        Fault::Unconditional => Ok(done(Call { only_if_absent: false, ..call })),
    }
}
