//! Why a task of a run ended, and what the supervisor does about it.

use cdchost_checkpoint::{CheckpointError, Refusal, Slot};
use cdchost_connector::{ConnectorError, StopClass, Verdict};

/// Why a task ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A port, the store or the engine failed.
    Error(Box<ConnectorError>),
    /// The task on the other side of a channel is gone; that one knows why.
    Closed,
}

/// Code of the error that a source gets when the run ends; never the reason of anything.
pub(crate) const RUN_ENDING: &str = "run-ending";

impl Failure {
    pub(crate) fn fenced(by: Slot) -> Self {
        let message = format!("another run of this pipeline took over in slot {by} of the checkpoint store");
        let error = ConnectorError::stop(StopClass::Storage, "fenced", message);
        error.with_instruction("nothing is lost: the other run goes on from here; run each pipeline once").into()
    }
}

impl Failure {
    /// Whether no restart would help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Error(error) if error.verdict == Verdict::Stop)
    }

    /// The error that ended what runs in no task.
    pub(crate) fn into_error(self) -> ConnectorError {
        match self {
            Self::Error(error) => *error,
            Self::Closed => ConnectorError::restart(StopClass::Bug, RUN_ENDING, "the run is ending"),
        }
    }
}

impl From<ConnectorError> for Failure {
    fn from(error: ConnectorError) -> Self {
        if error.code == RUN_ENDING { Self::Closed } else { Self::Error(Box::new(error)) }
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let verdict = if error.is_transient() { Verdict::Restart } else { Verdict::Stop };
        let (code, instruction) = (error.code(), error.instruction());
        let mut wrapped = ConnectorError::new(verdict, StopClass::Storage, code, error.to_string());
        // The message above is the error's own; its cause follows.
        if let CheckpointError::Store(cause) = error {
            wrapped = wrapped.with_cause(cause);
        }
        wrapped.with_instruction(instruction).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let class = match refusal {
            Refusal::SinkAdded { .. } | Refusal::SinkRemoved { .. } => StopClass::Config,
            _ if refusal.concerns_store() => StopClass::Storage,
            _ => StopClass::Sink,
        };
        let error = ConnectorError::stop(class, refusal.code(), refusal.to_string());
        error.with_instruction(refusal.instruction()).into()
    }
}

/// A broken promise of the engine or of a port's implementation.
pub(crate) fn bug(code: &str, message: impl Into<String>) -> Failure {
    ConnectorError::restart(StopClass::Bug, code, message).with_instruction("report this with the log").into()
}
