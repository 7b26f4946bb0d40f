//! What can go wrong with a store, shaped by what the caller does next.

use std::io;

/// An error of a store. Paths are relative to the root, and followed by the bucket and its endpoint where it is one;
/// contents and keys are never shown.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// There is no such object.
    #[error("object {path} does not exist")]
    NotFound {
        /// The object.
        path: String,
    },
    /// The store refuses: calling again changes nothing.
    #[error("access to {path} is denied: {reason}")]
    Denied {
        /// The object or root.
        path: String,
        /// Why.
        reason: String,
        /// What a person can do about it.
        instruction: &'static str,
    },
    /// The path is none.
    #[error("{path:?} is no object path: {reason}")]
    Path {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The URL or the options of a store are wrong.
    #[error("store {url:?} cannot be opened: {reason}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },
    /// The store did not do it, or did it and could not say so. Calling again may help; a write that failed so may
    /// still have happened.
    #[error("{action} of {path} failed")]
    Unavailable {
        /// What was tried.
        action: &'static str,
        /// The object.
        path: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StorageError {
    /// Whether calling again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// What a person can do about it.
    pub fn instruction(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "put the object back",
            Self::Denied { instruction, .. } => instruction,
            Self::Path { .. } => "choose another name",
            Self::Url { .. } => "correct the storage's section of the pipeline file",
            Self::Unavailable { .. } => "make the store reachable and writable, then start again",
        }
    }

    pub(crate) fn io(action: &'static str, path: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path: path.into() },
            io::ErrorKind::PermissionDenied => Self::Denied {
                path: path.into(),
                reason: error.to_string(),
                instruction: "make it readable and writable for this user",
            },
            _ => Self::Unavailable { action, path: path.into(), source: Box::new(error) },
        }
    }
}
