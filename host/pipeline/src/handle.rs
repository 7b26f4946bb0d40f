//! A pipeline from outside: start it, watch it, ask it for a checkpoint, stop it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::{Epoch, Generation};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::generation::Surroundings;
use crate::{PipelineExit, PipelineSetup, PipelineState, PipelineStatus, Reason, supervisor};

/// The engine.
#[derive(Debug)]
pub struct Pipeline;

/// A checkpoint that someone waits for.
pub(crate) type CheckpointRequest = oneshot::Sender<Result<Epoch, Reason>>;

/// A running pipeline. Dropped, the pipeline ends at once, as by a kill: nothing is drained, nothing is lost.
#[derive(Debug)]
pub struct PipelineHandle {
    status: watch::Receiver<PipelineStatus>,
    checkpoints: mpsc::Sender<CheckpointRequest>,
    stop: watch::Sender<bool>,
    task: JoinHandle<PipelineExit>,
    exit: Option<PipelineExit>,
}

impl Pipeline {
    /// Starts a pipeline on the current tokio runtime. All that can go wrong shows in the status and in
    /// [`PipelineHandle::wait`].
    pub fn start(setup: PipelineSetup) -> PipelineHandle {
        let (status_to, status) = watch::channel(PipelineStatus::default());
        let (checkpoints, requests) = mpsc::channel(16);
        let (stop, stopping) = watch::channel(false);
        let around = Arc::new(Surroundings {
            setup,
            status: status_to,
            requests: Mutex::new(requests),
            stop: stopping,
            nonce: RandomState::new().build_hasher().finish(), // keys are drawn at random per process
        });
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                exit = supervisor::run(Arc::clone(&around)) => exit,
                never = supervisor::show_stopping(around) => match never {},
            }
        });
        PipelineHandle { status, checkpoints, stop, task, exit: None }
    }
}

impl PipelineHandle {
    /// The status, to look at or to wait for a change of.
    pub fn status(&self) -> watch::Receiver<PipelineStatus> {
        self.status.clone()
    }

    /// Asks for checkpoints from other tasks.
    pub fn control(&self) -> PipelineControl {
        PipelineControl { checkpoints: self.checkpoints.clone(), status: self.status.clone() }
    }

    /// As [`PipelineControl::checkpoint`].
    pub async fn checkpoint(&self) -> Result<Epoch, Reason> {
        self.control().checkpoint().await
    }

    /// Drains and ends the pipeline: barrier, prepare, store, commit. Returns at once; [`PipelineHandle::wait`] says
    /// when it is done. A pipeline that is not running ends as it is: what is durable is settled at the next start.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// How it ended, once it has. May be asked again.
    pub async fn wait(&mut self) -> PipelineExit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        let exit = (&mut self.task).await.unwrap_or_else(|error| {
            let ended = ConnectorError::stop(StopClass::Bug, "engine-panic", "the engine's own task ended");
            PipelineExit::Failed(Reason::from(&ended.with_cause(error).with_instruction("report this with the log")))
        });
        self.exit = Some(exit.clone());
        exit
    }
}

/// Asks a running pipeline for checkpoints. Cheap to clone; does not keep the pipeline alive.
#[derive(Clone, Debug)]
pub struct PipelineControl {
    checkpoints: mpsc::Sender<CheckpointRequest>,
    status: watch::Receiver<PipelineStatus>,
}

impl PipelineControl {
    /// Makes a checkpoint now and answers when its epoch is committed at all sinks. If nothing changed since the last
    /// one, answers with that one's epoch once it is committed. Fails if the run ends before.
    pub async fn checkpoint(&self) -> Result<Epoch, Reason> {
        let (answer, answered) = oneshot::channel();
        let asked_in = self.status.borrow().generation;
        if self.checkpoints.send(answer).await.is_ok()
            && let Ok(answered) = answered.await
        {
            return answered;
        }
        Err(self.why_ended(asked_in).await)
    }

    /// Why the run ended that would have made a checkpoint, once that is known.
    async fn why_ended(&self, asked_in: Option<Generation>) -> Reason {
        use PipelineState::{Failed, Restarting, Stopped};
        let mut status = self.status.clone();
        let known =
            |now: &PipelineStatus| matches!(now.state, Restarting | Failed | Stopped) || now.generation != asked_in;
        // An error tells that the pipeline is gone: what it said last stands.
        let _ = status.wait_for(known).await;
        let reason = status.borrow().reason.clone();
        let message = "the run ended before the checkpoint was committed";
        match reason {
            Some(reason) => Reason { message: format!("{message}: {}", reason.message), ..reason },
            None => {
                let ended = ConnectorError::restart(StopClass::Bug, "run-ended", message);
                Reason::from(&ended.with_instruction("look at the pipeline's status and ask again"))
            }
        }
    }
}

impl Drop for PipelineHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}
