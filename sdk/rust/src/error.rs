//! What went wrong, shaped by the question that the host has: what now?

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::TableId;

/// A result whose error goes to the host.
pub type Result<T, E = PluginError> = std::result::Result<T, E>;

/// Whether calling again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// At once.
    Now,
    /// After a pause that grows.
    Backoff,
    /// No.
    Never,
}

/// Who can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The rows; those named may be put aside and the others tried again.
    Data,
    /// The pipeline file, or how the target is set up.
    Config,
    /// The target, or the way to it.
    Remote,
    /// Whoever grants the rights.
    Auth,
    /// The plugin's author.
    Bug,
}

/// One row that could not be taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRef {
    /// Row of the batch.
    pub row: u32,
    /// Why, without the row's values.
    pub reason: String,
}

/// What went wrong. Neither row values nor secrets belong in it: it is logged. A pointer in size, since it is a part of
/// every result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginError(Box<ErrorParts>);

/// What a [`PluginError`] says; reached through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorParts {
    /// Whether calling again may help.
    pub retry: Retry,
    /// Who can mend it.
    pub blame: Blame,
    /// A short stable code, e.g. `disk-full`.
    pub code: String,
    /// What and where: lower case, no full stop.
    pub message: String,
    /// The table concerned.
    pub table: Option<TableId>,
    /// The rows of the batch concerned, where only some were refused.
    pub rows: Vec<RowRef>,
    /// How long to wait at least before the next try.
    pub retry_after: Option<Duration>,
}

impl PluginError {
    /// Rows that the target cannot take. Trying again does not help; without the rows named it may.
    pub fn data(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Retry::Never, Blame::Data, code, message)
    }

    /// Options or a target's set-up that cannot work. The pipeline stops with the message.
    pub fn config(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Retry::Never, Blame::Config, code, message)
    }

    /// A target that cannot be reached or is busy. Tried again with growing pauses.
    pub fn remote(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Retry::Backoff, Blame::Remote, code, message)
    }

    /// A target that refuses us. The pipeline stops with the message.
    pub fn auth(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Retry::Never, Blame::Auth, code, message)
    }

    /// Something that cannot be. The instance is thrown away and the pipeline restarts from its checkpoint.
    pub fn bug(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Retry::Never, Blame::Bug, code, message)
    }

    /// An error with each part named.
    pub fn new(retry: Retry, blame: Blame, code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self(Box::new(ErrorParts { retry, blame, code, message, table: None, rows: Vec::new(), retry_after: None }))
    }

    /// Names the table.
    pub fn with_table(mut self, table: &TableId) -> Self {
        self.0.table = Some(table.clone());
        self
    }

    /// Names a row of the batch that cannot be taken.
    pub fn with_row(mut self, row: u32, reason: impl Into<String>) -> Self {
        self.0.rows.push(RowRef { row, reason: reason.into() });
        self
    }

    /// Says whether calling again may help.
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Says how long to wait at least before the next try.
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after = Some(pause);
        self
    }
}

impl Deref for PluginError {
    type Target = ErrorParts;

    fn deref(&self) -> &ErrorParts {
        &self.0
    }
}

impl From<PluginError> for ErrorParts {
    fn from(error: PluginError) -> Self {
        *error.0
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for PluginError {}
