//! `cdchost run`: runs a pipeline until it ends, fails or is told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use cdchost_connector::StopClass;
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle, PipelineState, PipelineStatus, Reason};
use tokio::task::JoinSet;

use super::refuse;
use crate::cli::RunArguments;
use crate::process::{Process, Signals};
use crate::server::{Surface, hex, serve};
use crate::telemetry::{RUN, Screen};
use crate::wiring::{Contract, Ready, check};
use crate::{memory, progress};

/// Runs the command.
pub(crate) fn run(arguments: RunArguments, process: Process) -> ExitCode {
    let screen = Screen::start(arguments.log_format);
    process.run_to_its_end(&screen, async |signals: Signals| drive(arguments, &screen, signals).await)
}

async fn drive(arguments: RunArguments, screen: &Screen, mut signals: Signals) -> u8 {
    let checked = tokio::select! {
        checked = check(&arguments) => checked,
        _ = signals.next() => return stopped_early(screen),
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(findings) => return refuse(screen, &findings),
    };
    checked.warnings.show(screen);
    for step in checked.steps() {
        show_step(screen, step);
    }
    for contract in checked.contracts() {
        show_contract(screen, &contract);
    }
    match checked.take_hold().await {
        Ok(ready) => {
            memory::give_back();
            start(ready, screen, &mut signals).await
        }
        Err(findings) => refuse(screen, &findings),
    }
}

/// Starts the pipeline and waits for its end.
async fn start(ready: Ready, screen: &Screen, signals: &mut Signals) -> u8 {
    let Ready { setup, listener, state, sinks } = ready;
    let (name, clock) = (setup.name.clone(), Arc::clone(&setup.clock));
    let mut handle = Pipeline::start(setup);
    let surface = Surface {
        pipeline: name.clone(),
        sinks,
        status: handle.status(),
        control: handle.control(),
        clock: Arc::clone(&clock),
    };
    let mut helpers = JoinSet::new();
    helpers.spawn(async move {
        if let Err(error) = serve(listener, surface).await {
            tracing::error!(%error, "the control socket is closed");
        }
    });
    let (shown, status) = (screen.clone(), handle.status());
    helpers.spawn(async move { progress::show(shown, status, || clock.now_micros()).await });
    let (exit, ran) = until_end(&mut handle, screen, signals).await;
    helpers.shutdown().await;
    let status = handle.status().borrow().clone();
    drop(state);
    show_end(screen, &name, &exit, &status);
    exit_code(&exit, ran)
}

/// Waits for the end; a signal asks for it, a second one does not wait. Says also whether data ever flowed.
async fn until_end(handle: &mut PipelineHandle, screen: &Screen, signals: &mut Signals) -> (PipelineExit, bool) {
    let mut status = handle.status();
    let (mut ran, mut stopping, mut watching) = (false, false, true);
    loop {
        tokio::select! {
            exit = handle.wait() => return (exit, ran),
            changed = status.changed(), if watching => {
                watching = changed.is_ok();
                ran |= status.borrow_and_update().state == PipelineState::Running;
            }
            code = signals.next() => {
                if stopping {
                    screen.lines("ended without a final checkpoint: the next start goes on from the last one");
                    std::process::exit(code);
                }
                stopping = true;
                handle.stop();
                tracing::info!(target: RUN, event = "stopping", "stopping: draining, final checkpoint, commit");
            }
        }
    }
}

fn exit_code(exit: &PipelineExit, ran: bool) -> u8 {
    let PipelineExit::Failed(reason) = exit else { return 0 };
    match reason.class {
        // What never ran failed for what it met, not for what it did.
        StopClass::Config if !ran => 2,
        StopClass::Source | StopClass::Sink | StopClass::Storage if !ran => 3,
        _ => 1,
    }
}

fn stopped_early(screen: &Screen) -> u8 {
    screen.refusal("stopped before anything was started");
    0
}

fn show_step(screen: &Screen, step: &str) {
    if screen.is_json() {
        tracing::info!(target: RUN, event = "step", step);
    } else {
        screen.lines(step);
    }
}

fn show_contract(screen: &Screen, contract: &Contract) {
    let Contract { sink, version, .. } = contract;
    if screen.is_json() {
        let digest = hex(&sink.digest);
        let lines = serde_json::Value::from(contract.lines_as_json()).to_string();
        let (id, plugin, parallelism) = (&sink.id, &sink.plugin, sink.parallelism);
        tracing::info!(
            target: RUN, event = "write-contract", sink = id, plugin, version, digest, parallelism, contract = lines
        );
        return;
    }
    contract.text_lines().for_each(|line| screen.lines(&line));
}

fn show_end(screen: &Screen, name: &str, exit: &PipelineExit, status: &PipelineStatus) {
    let epoch = status.committed.map(|epoch| epoch.0);
    let state = match exit {
        PipelineExit::Finished => "finished",
        PipelineExit::Stopped => "stopped",
        PipelineExit::Failed(_) => "failed",
    };
    if screen.is_json() {
        return match exit {
            PipelineExit::Failed(Reason { class, code, message, instruction }) => {
                let class = class.name();
                tracing::error!(
                    target: RUN, event = "ended", state, epoch, class, code, message, instruction
                );
            }
            _ => tracing::info!(target: RUN, event = "ended", state, epoch),
        };
    }
    match exit {
        PipelineExit::Failed(reason) => {
            let Reason { class, message, instruction, .. } = reason;
            screen.lines(&format!("pipeline {name} failed ({}): {message}\n    {instruction}", class.name()));
            screen.lines(&what_is_kept(epoch, reason));
        }
        _ => screen.lines(&format!("pipeline {name} {state}: {}", committed(epoch))),
    }
}

fn committed(epoch: Option<u64>) -> String {
    match epoch {
        Some(epoch) => format!("checkpoint {epoch} is committed"),
        None => "nothing is committed yet".to_owned(),
    }
}

/// What stands after a failure, and that a start goes on from it; not where the way out is a start from nothing.
fn what_is_kept(epoch: Option<u64>, reason: &Reason) -> String {
    let from_nothing = reason.instruction.contains("empty checkpoint store");
    match epoch {
        // It failed before it had looked at what there is.
        None => "this run committed nothing; what earlier ones committed is as it was".to_owned(),
        Some(_) if from_nothing => committed(epoch),
        Some(_) => format!("{}; the next start goes on from it, once what is said above is mended", committed(epoch)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(class: StopClass) -> PipelineExit {
        let text = String::new;
        PipelineExit::Failed(Reason { class, code: text(), message: text(), instruction: text() })
    }

    #[test]
    fn a_start_goes_on_only_from_what_there_is_and_where_it_may() {
        let said = |epoch, instruction: &str| {
            let (class, code, message) = (StopClass::Sink, String::new(), String::new());
            what_is_kept(epoch, &Reason { class, code, message, instruction: instruction.into() })
        };
        let kept = "checkpoint 7 is committed; the next start goes on from it, once what is said above is mended";
        assert_eq!(said(Some(7), "make room"), kept);
        assert_eq!(said(Some(7), "start it anew with an empty checkpoint store"), "checkpoint 7 is committed");
        let none = "this run committed nothing; what earlier ones committed is as it was";
        assert_eq!(
            (said(None, "make room"), said(None, "start anew with an empty checkpoint store")),
            (none.into(), none.into())
        );
    }

    #[test]
    fn exit_codes_tell_who_has_to_act() {
        assert_eq!(exit_code(&PipelineExit::Finished, true), 0);
        assert_eq!(exit_code(&PipelineExit::Stopped, false), 0);
        assert_eq!(exit_code(&failed(StopClass::Sink), true), 1);
        assert_eq!(exit_code(&failed(StopClass::Plugin), false), 1);
        assert_eq!(exit_code(&failed(StopClass::Config), false), 2);
        assert_eq!(exit_code(&failed(StopClass::Source), false), 3);
    }
}
