//! `cdchost run`: runs a pipeline until it ends, fails or is told to stop.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cdchost_connector::StopClass;
use cdchost_model::Epoch;
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle, PipelineState, PipelineStatus, Reason, SinkStatus};
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
    let (mut ran, mut asked, mut watching) = (false, None, true);
    loop {
        tokio::select! {
            exit = handle.wait() => return (exit, ran),
            changed = status.changed(), if watching => {
                watching = changed.is_ok();
                ran |= status.borrow_and_update().state == PipelineState::Running;
            }
            code = signals.next() => match heard(&mut asked, Instant::now()) {
                Heard::First => {
                    handle.stop();
                    tracing::info!(target: RUN, event = "stopping", "stopping: draining, final checkpoint, commit");
                }
                Heard::Echo => {}
                Heard::Second => {
                    show_cut_off(screen);
                    std::process::exit(code);
                }
            }
        }
    }
}

/// What a signal to end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It asks for the end.
    First,
    /// It belongs to the first: `timeout` and shells tell a process and then its group.
    Echo,
    /// Whoever sent it does not want to wait.
    Second,
}

/// Signals nearer to the first one than this are one with it.
const ECHO_WITHIN: Duration = Duration::from_secs(1);

fn heard(asked: &mut Option<Instant>, now: Instant) -> Heard {
    match *asked {
        None => {
            *asked = Some(now);
            Heard::First
        }
        Some(first) if now.saturating_duration_since(first) < ECHO_WITHIN => Heard::Echo,
        Some(_) => Heard::Second,
    }
}

fn show_cut_off(screen: &Screen) {
    let message = "ended without a final checkpoint: the next start goes on from the last one";
    if screen.is_json() {
        tracing::warn!(target: RUN, event = "ended", state = "cut-off", message);
    } else {
        screen.lines(message);
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
            PipelineExit::Failed(reason) => {
                let Reason { class, code, message, instruction } = reason;
                let (class, kept) = (class.name(), what_is_kept(status, reason));
                tracing::error!(
                    target: RUN, event = "ended", state, epoch, class, code, message, instruction, kept
                );
            }
            _ => tracing::info!(target: RUN, event = "ended", state, epoch),
        };
    }
    match exit {
        PipelineExit::Failed(reason) => {
            let Reason { class, message, instruction, .. } = reason;
            screen.lines(&format!("pipeline {name} failed ({}): {message}\n    {instruction}", class.name()));
            screen.lines(&what_is_kept(status, reason));
        }
        _ => screen.lines(&format!("pipeline {name} {state}: {}", committed_words(epoch))),
    }
}

fn committed_words(epoch: Option<u64>) -> String {
    match epoch {
        Some(epoch) => format!("checkpoint {epoch} is committed"),
        None => "nothing is committed yet".to_owned(),
    }
}

/// What stands after a failure, and that a start goes on from it; not where the way out is a start from nothing.
fn what_is_kept(status: &PipelineStatus, reason: &Reason) -> String {
    let from_nothing = reason.instruction.contains("empty checkpoint store");
    let once = "once what is said above is mended";
    let epoch = status.committed.map(|epoch| epoch.0);
    match (status.durable, status.committed) {
        // It failed before it had looked at what there is, or had anything to commit.
        (None, _) => "this run committed nothing; what earlier ones committed is as it was".to_owned(),
        (Some(durable), committed) if committed < Some(durable) => {
            let before = committed.map(|_| committed_words(epoch) + "; ").unwrap_or_default();
            let open = open_at(status, durable);
            let goes_on = format!("; the next start commits the rest, {once}");
            let goes_on = if from_nothing { String::new() } else { goes_on };
            format!("{before}checkpoint {durable} is stored and its commit is not done: {open}{goes_on}")
        }
        _ if from_nothing => committed_words(epoch),
        _ => format!("{}; the next start goes on from it, {once}", committed_words(epoch)),
    }
}

/// Which sinks show all of a stored epoch, and which may show a part of it.
fn open_at(status: &PipelineStatus, durable: Epoch) -> String {
    let (done, open): (Vec<_>, Vec<_>) = status.sinks.iter().partition(|sink| sink.committed >= Some(durable));
    let said = |sinks: &[&SinkStatus], what: &str| {
        let names: Vec<&str> = sinks.iter().map(|sink| sink.id.as_str()).collect();
        (!names.is_empty()).then(|| format!("{what} at {}", names.join(", ")))
    };
    let parts = [said(&done, "all of it is visible"), said(&open, "none or a part of it is visible")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
        let sink = |id: &str, committed: u64| {
            let committed = (committed > 0).then_some(Epoch(committed));
            let (version, digest, parallelism, capabilities) = (String::new(), [0; 32], 1, None);
            SinkStatus { id: id.into(), version, digest, parallelism, capabilities, committed }
        };
        let said = |(durable, committed), sinks: [u64; 2], instruction: &str| {
            let [durable, committed] = [durable, committed].map(|epoch: u64| (epoch > 0).then_some(Epoch(epoch)));
            let sinks = vec![sink("lake", sinks[0]), sink("files", sinks[1])];
            let status = PipelineStatus { durable, committed, sinks, ..PipelineStatus::default() };
            let (class, code, message) = (StopClass::Sink, String::new(), String::new());
            what_is_kept(&status, &Reason { class, code, message, instruction: instruction.into() })
        };
        let (room, anew) = ("make room", "start it anew with an empty checkpoint store");
        let none = "this run committed nothing; what earlier ones committed is as it was";
        let rest = "; the next start commits the rest, once what is said above is mended";
        let open = "checkpoint 1 is stored and its commit is not done: none or a part of it is visible at lake, files";
        let half = "checkpoint 7 is committed; checkpoint 8 is stored and its commit is not done: all of it is visible at \
                    files, none or a part of it is visible at lake";
        for (epochs, sinks, instruction, expect) in [
            ((0, 0), [0, 0], room, none.to_owned()),
            ((0, 0), [0, 0], anew, none.to_owned()),
            ((1, 0), [0, 0], room, format!("{open}{rest}")),
            ((8, 7), [7, 8], room, format!("{half}{rest}")),
            ((8, 7), [7, 8], anew, half.to_owned()),
            (
                (7, 7),
                [7, 7],
                room,
                "checkpoint 7 is committed; the next start goes on from it, once what is said above is mended".into(),
            ),
            ((7, 7), [7, 7], anew, "checkpoint 7 is committed".into()),
        ] {
            assert_eq!(said(epochs, sinks, instruction), expect);
        }
    }

    #[test]
    fn signals_of_one_instant_are_one() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut asked = None;
        let all = [0, 0, 999, 1_000].map(|millis| heard(&mut asked, at(millis)));
        assert_eq!(all, [Heard::First, Heard::Echo, Heard::Echo, Heard::Second]);
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
