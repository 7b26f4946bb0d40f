//! Scripted faults of a store, for tests: fail, do it and fail, delay, tear, never answer.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::StorageError;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads an object or a part of it.
    Get,
    /// Writes an object.
    Put,
    /// Writes an object unless it is there.
    PutIfAbsent,
    /// Lists objects.
    List,
    /// Removes an object.
    Delete,
    /// Begins an upload in parts.
    Upload,
}

/// A call that a script looks at.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What it does.
    pub operation: Operation,
    /// The path as the caller gave it.
    pub path: &'a str,
    /// Bytes it writes.
    pub bytes: usize,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It is not done, and an error comes back.
    Fail,
    /// It is not done, and access is denied.
    Deny,
    /// It is done, and an error comes back.
    DoneButFail,
    /// It is done after this time.
    Delay(Duration),
    /// It is done at once and answers after this time.
    Late(Duration),
    /// Only this many bytes get to the final name, and an error comes back. For calls that write nothing: as `Fail`.
    Tear(usize),
    /// It is not done and never answers.
    Hang,
}

/// A script: asked at each call what happens to it.
pub struct Faults {
    script: Box<dyn Fn(&Call<'_>) -> Fault + Send + Sync>,
}

impl Faults {
    /// Faults as a function of the call.
    pub fn new(script: impl Fn(&Call<'_>) -> Fault + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script) }
    }

    /// One fault at the `nth` call (from 0) of one operation.
    pub fn nth(operation: Operation, nth: usize, fault: Fault) -> Self {
        let seen = AtomicUsize::new(0);
        Self::new(move |call| {
            let hit = call.operation == operation && seen.fetch_add(1, Ordering::Relaxed) == nth;
            if hit { fault } else { Fault::None }
        })
    }

    pub(crate) fn decide(&self, call: &Call<'_>) -> Fault {
        (self.script)(call)
    }
}

impl Fault {
    pub(crate) async fn around<T, F, R>(self, path: &str, run: F) -> Result<T, StorageError>
    where
        F: FnOnce() -> R,
        R: Future<Output = Result<T, StorageError>>,
    {
        match self {
            Self::None => run().await,
            Self::Fail | Self::Tear(_) => Err(Self::error(path)),
            Self::Deny => Err(StorageError::Denied {
                path: path.into(),
                reason: "scripted fault".into(),
                instruction: "make it readable and writable for this user",
            }),
            Self::DoneButFail => run().await.and_then(|_| Err(Self::error(path))),
            Self::Delay(time) => {
                tokio::time::sleep(time).await;
                run().await
            }
            Self::Late(time) => {
                let answer = run().await;
                tokio::time::sleep(time).await;
                answer
            }
            Self::Hang => std::future::pending().await,
        }
    }

    pub(crate) fn error(path: &str) -> StorageError {
        StorageError::Unavailable { action: "scripted call", path: path.into(), source: "scripted fault".into() }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}
