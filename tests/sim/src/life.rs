//! One seed's run: the processes that its script draws, one after the other, then two without faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cdchost_connector::StopClass;
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle};

use crate::harness::{process, setup_at};
use crate::host::Host;
use crate::look;
use crate::script::{Life, Script};
use crate::source::SimConnector;
use crate::trace::Trace;
use crate::world::{Facts, Measures, World};

/// Virtual time after which a process is killed whose faults do not let it end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Virtual time after which a process that nothing befalls and that neither ends nor dies is stuck.
const STUCK: Duration = Duration::from_secs(3600);
/// Final states that damage and losses may lead to.
const ALLOWED: [&str; 6] = [
    "record-damaged",
    "target-lost-prepared",
    "target-ahead",
    "target-of-another-lineage",
    "checkpoint-broken",
    "sim-partly-visible",
];

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What must never happen and did.
    pub violations: Vec<String>,
    /// Of everything that happened, in order.
    pub digest: [u8; 32],
    /// What happened, where it was asked for.
    pub lines: Vec<String>,
    /// How often what.
    pub facts: Facts,
}

/// How a process ended.
enum End {
    Died,
    Exit(PipelineExit),
}

/// Lives through what the seed draws.
pub fn run(seed: u64, keeps_lines: bool) -> Outcome {
    let script = Script::draw(seed);
    let measures = Measures {
        rates: script.rates,
        stride: script.stride,
        slow_sink: script.slow_sink,
        targets_fence: script.targets_fence,
        open_epochs: script.open_epochs,
    };
    let world = World::with(seed, script.transactions, script.sinks, measures);
    *world.trace() = Trace::new(keeps_lines);
    world.note(format_args!("{script:?}"));
    let whole = catch_unwind(AssertUnwindSafe(|| Run { world: Arc::clone(&world), script }.all()));
    if whole.is_err() {
        world.violate("the run panicked".into());
    }
    let trace = world.trace();
    let (digest, lines) = (trace.digest(), trace.lines.clone().unwrap_or_default());
    drop(trace);
    Outcome { seed, violations: world.violations(), digest, lines, facts: world.facts() }
}

struct Run {
    world: Arc<World>,
    script: Script,
}

impl Run {
    fn all(&self) {
        let total = self.script.transactions;
        let lives = self.script.lives.len();
        for (number, life) in self.script.lives.iter().enumerate() {
            // The last of it happens when all is well.
            self.world.happened.store((total - 2) * (number + 1) / lives, Ordering::Relaxed);
            if !self.live(life) || !self.world.violations().is_empty() {
                return self.check_final();
            }
        }
        self.world.heal();
        for happened in [total - 1, total] {
            self.world.happened.store(happened, Ordering::Relaxed);
            if !self.live(&Life { writers: 1 + happened as u32 % 2, ..Life::default() }) {
                return self.check_final();
            }
            for sink in 0..self.world.sinks() {
                look::shows(&self.world, sink, happened).unwrap_or_else(|fault| self.world.violate(fault));
            }
        }
        process().block_on(look::check_litter(&self.world, self.script.retained));
    }

    /// Lives one life; false if it ended in a state that only a person can end.
    fn live(&self, life: &Life) -> bool {
        let ends = process().block_on(async {
            if let Some(before) = life.before {
                look::befall(&self.world, before).await;
            }
            let ends = self.hosts(life).await;
            look::check_chain(&self.world).await;
            ends
        });
        // Of two, the one that goes on matters; each must say why it does not.
        let mut goes_on = true;
        for end in ends {
            goes_on = self.judge(life, end);
        }
        goes_on
    }

    fn start(&self, life: &Life) -> (Arc<Host>, PipelineHandle) {
        let host = Host::new(&self.world, life.clone());
        let mut setup = setup_at(&host, life.writers);
        setup.checkpoint.interval = self.script.interval;
        setup.checkpoint.timeout = self.script.timeout;
        setup.checkpoint.retained = self.script.retained;
        setup.source = Arc::new(SimConnector { host: Arc::clone(&host), bounded: life.stop_after.is_none() });
        (host, Pipeline::start(setup))
    }

    /// The process of a life, and the one that takes over from it.
    async fn hosts(&self, life: &Life) -> Vec<End> {
        let (host, handle) = self.start(life);
        let mut first = std::pin::pin!(self.until_end(&host, handle, life.stop_after));
        let Some((moment, time)) = life.taken_over else { return vec![first.await] };
        tokio::select! {
            biased;
            end = &mut first => return vec![end],
            () = tokio::time::sleep(moment) => {}
        }
        self.world.count(|facts| facts.take_overs += 1);
        host.freeze(time);
        let next = Life { torn: None, full: None, writers: 1 + life.writers % 3, ..life.clone() };
        let (second_host, handle) = self.start(&next);
        let second = self.until_end(&second_host, handle, life.stop_after);
        let (first, second) = tokio::join!(biased; first, second);
        vec![first, second]
    }

    /// Until the process has ended or died; nothing of it goes on then.
    async fn until_end(&self, host: &Host, mut handle: PipelineHandle, stop_after: Option<Duration>) -> End {
        let mut told = stop_after;
        let mut status = handle.status();
        loop {
            let stop = async {
                match told {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            let bug = status.wait_for(|status| status.reason.as_ref().is_some_and(|r| r.class == StopClass::Bug));
            tokio::select! {
                biased;
                () = host.crashed() => {
                    self.world.count(|facts| facts.crashes += 1);
                    host.note(format_args!("dies"));
                    return End::Died;
                }
                exit = handle.wait() => {
                    self.world.count(|facts| facts.restarts += handle.status().borrow().restarts);
                    // Messages may name the length of a fence, which no seed decides.
                    match &exit {
                        PipelineExit::Failed(reason) => host.note(format_args!("fails with {}", reason.code)),
                        whole => host.note(format_args!("ends as {whole:?}")),
                    }
                    return End::Exit(exit);
                }
                Ok(status) = bug => {
                    self.world.violate(format!("the engine broke a promise of its own: {:?}", status.reason));
                    return End::Died;
                }
                () = stop => {
                    told = None;
                    handle.stop();
                }
                () = tokio::time::sleep(PATIENCE), if !self.world.is_healed() => {
                    host.note(format_args!("is killed"));
                    return End::Died;
                }
                () = tokio::time::sleep(STUCK) => {
                    self.world.violate(format!("neither ended nor died in an hour: {:?}", *handle.status().borrow()));
                    return End::Died;
                }
            }
        }
    }

    /// Whether the pipeline can go on after such an end.
    fn judge(&self, life: &Life, end: End) -> bool {
        let reason = match end {
            End::Died | End::Exit(PipelineExit::Finished | PipelineExit::Stopped) => return true,
            End::Exit(PipelineExit::Failed(reason)) => reason,
        };
        if reason.class == StopClass::Bug {
            self.world.violate(format!("the engine broke a promise of its own: {reason:?}"));
        }
        if reason.instruction.is_empty() {
            self.world.violate(format!("final without a word about what to do: {reason:?}"));
        }
        if reason.code == "fenced" || reason.code == "sim-fenced" {
            self.world.count(|facts| facts.fenced += 1);
            if life.taken_over.is_none() && life.torn.is_none() {
                self.world.violate(format!("fenced off though nobody else ran: {reason:?}"));
            }
            return true;
        }
        let is_allowed = ALLOWED.contains(&reason.code.as_str());
        if life.stop_after.is_some() && !is_allowed {
            return true; // told to stop, it ends with what went wrong last, and a start goes on
        }
        self.world.count(|facts| facts.finals += 1);
        if !is_allowed || !self.script.may_end_for_good() {
            self.world.violate(format!("final though its script has no reason for it: {reason:?}"));
        }
        false
    }

    /// Where a person must decide, every target still shows whole transactions, each once.
    fn check_final(&self) {
        for sink in 0..self.world.sinks() {
            // What a run was making visible when it died is not whole.
            let marker = self.world.target(sink).marker.as_ref().map(|marker| marker.cut.epoch);
            let beyond = self.world.target(sink).visible.iter().any(|(epoch, _)| Some(*epoch) > marker);
            if !beyond {
                let marked = look::marked(&self.world, sink);
                look::shows(&self.world, sink, marked).unwrap_or_else(|fault| self.world.violate(fault));
            }
        }
    }
}
