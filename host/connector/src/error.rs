//! One error for all ports, shaped by the question that its reader has: what now?

use std::time::Duration;

use cdchost_model::TableId;

/// What the engine does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Call again after a pause (the hint, or the engine's backoff). Nothing of the failed call was taken.
    Retry {
        /// How long to wait at least.
        after: Option<Duration>,
    },
    /// Restart the pipeline from its last checkpoint, within the restart budget.
    Restart,
    /// Restart the pipeline from its last checkpoint at once. Nothing failed, so it costs nothing of the budget; what
    /// asks for it must not ask again for the same thing.
    Reopen,
    /// Stop for good: only a person can mend this.
    Stop,
}

/// The class of a final state, as the user meets it in status, logs and exit messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopClass {
    /// The source no longer has what comes next.
    SourceGap,
    /// The source cannot be reached or refuses us.
    Source,
    /// A schema change cannot be carried.
    Schema,
    /// A value cannot be carried.
    Data,
    /// A plugin broke its contract, trapped or used up its limits.
    Plugin,
    /// A target cannot be reached, refuses us, or lost what was prepared.
    Sink,
    /// The pipeline file is wrong, or does not fit what it meets.
    Config,
    /// The checkpoint store cannot be reached, is damaged, or belongs to someone else.
    Storage,
    /// A fault of cdchost.
    Bug,
}

impl StopClass {
    /// The word that stands in status and exit messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::SourceGap => "source-gap",
            Self::Source => "source",
            Self::Schema => "schema",
            Self::Data => "data",
            Self::Plugin => "plugin",
            Self::Sink => "sink",
            Self::Config => "config",
            Self::Storage => "storage",
            Self::Bug => "bug",
        }
    }
}

/// One row that could not be taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// Row of the batch.
    pub row: u32,
    /// Why, without the row's values.
    pub reason: String,
}

/// What went wrong at a port. `message` says what and where, `instruction` what to do; both without row values and
/// secrets.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// What the engine does about it.
    pub verdict: Verdict,
    /// The class of the final state, if it comes to that.
    pub class: StopClass,
    /// A short stable code, e.g. `mysql-binlog-purged`.
    pub code: String,
    /// What and where: lower case, no full stop.
    pub message: String,
    /// What a person can do about it.
    pub instruction: String,
    /// The table concerned.
    pub table: Option<TableId>,
    /// The rows concerned, where only some were refused.
    pub rows: Vec<RowFault>,
    /// The cause.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConnectorError {
    /// An error without table, rows, cause; add them with the `with_` methods.
    pub fn new(verdict: Verdict, class: StopClass, code: &str, message: impl Into<String>) -> Self {
        Self {
            verdict,
            class,
            code: code.into(),
            message: message.into(),
            instruction: String::new(),
            table: None,
            rows: Vec::new(),
            cause: None,
        }
    }

    /// A final stop.
    pub fn stop(class: StopClass, code: &str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Stop, class, code, message)
    }

    /// A restart from the last checkpoint.
    pub fn restart(class: StopClass, code: &str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Restart, class, code, message)
    }

    /// Call again later.
    pub fn retry(class: StopClass, code: &str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Retry { after: None }, class, code, message)
    }

    /// Says what to do.
    pub fn with_instruction(mut self, instruction: impl Into<String>) -> Self {
        self.instruction = instruction.into();
        self
    }

    /// Names the table.
    pub fn with_table(mut self, table: TableId) -> Self {
        self.table = Some(table);
        self
    }

    /// Keeps the cause.
    pub fn with_cause(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}
