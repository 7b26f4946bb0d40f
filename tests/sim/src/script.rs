//! What a seed draws before its run begins: the world's measures, and what befalls each process that lives in it.

use std::time::Duration;

use crate::history::Rng;
use crate::world::{Rates, SlowSink};

/// A whole run.
#[derive(Clone, Debug)]
pub struct Script {
    /// Transactions of the source, all together.
    pub transactions: usize,
    /// Sinks.
    pub sinks: usize,
    /// The source tells at most so many transactions at once.
    pub stride: u64,
    /// How often calls go wrong.
    pub rates: Rates,
    /// A sink that takes its time.
    pub slow_sink: Option<SlowSink>,
    /// Targets refuse generations older than one that they have seen.
    pub targets_fence: bool,
    /// Epochs that a sink allows to be prepared and not committed.
    pub open_epochs: u32,
    /// Time from checkpoint to checkpoint.
    pub interval: Duration,
    /// Time that a checkpoint may take.
    pub timeout: Duration,
    /// Records that are kept.
    pub retained: u32,
    /// Processes with faults, one after the other. Those that follow have none.
    pub lives: Vec<Life>,
}

/// One process, or two at once.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// What happens before it, while nobody runs.
    pub before: Option<Before>,
    /// Writers of the first sink; the next has one more.
    pub writers: u32,
    /// It dies after so many steps.
    pub crash_after: Option<u64>,
    /// Its input has no end; it is told to stop after this time.
    pub stop_after: Option<Duration>,
    /// It stands still from then on, for so long, and another one starts.
    pub taken_over: Option<(Duration, Duration)>,
    /// The store takes no writes from then on, for so long.
    pub full: Option<(Duration, Duration)>,
    /// Its nth write to the store is torn, at this thousandth of its bytes.
    pub torn: Option<(u64, u64)>,
    /// The wall clock jumps then, by so many hours.
    pub jump: Option<(Duration, i64)>,
}

/// What can happen while nobody runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A bit of the newest record flips.
    Damage,
    /// One sink's target loses all that was prepared.
    LoseAll,
    /// One sink's target loses one of the things prepared.
    LoseOne,
}

impl Script {
    /// The script of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5c21_97b4_0d3e_a68f);
        let calm = rng.chance(300);
        let rates = if calm {
            Rates::default()
        } else {
            Rates { retry: rng.below(60), restart: rng.below(12), store: rng.below(120), source: rng.below(6) }
        };
        let sinks = 1 + rng.below(3) as usize;
        let slow = rng.chance(300);
        Self {
            transactions: 10 + rng.below(50) as usize,
            sinks,
            stride: 1 + rng.below(8),
            rates,
            slow_sink: slow.then(|| SlowSink {
                place: rng.below(sinks as u64) as usize,
                most: millis(1 + rng.below(400)),
                only_commits: rng.chance(500),
            }),
            targets_fence: rng.chance(500),
            open_epochs: 1 + rng.below(4) as u32,
            interval: millis(4 + rng.below(80)),
            timeout: if rng.chance(200) { millis(1500) } else { millis(600_000) },
            retained: 1 + rng.below(3) as u32,
            lives: lives(&mut rng),
        }
    }

    /// Whether something happens that may leave the pipeline in a final state that only a person can end.
    pub fn may_end_for_good(&self) -> bool {
        self.lives.iter().any(|life| life.before.is_some() || life.torn.is_some())
    }
}

fn lives(rng: &mut Rng) -> Vec<Life> {
    let mut lives: Vec<Life> = (0..rng.below(6)).map(|_| life(rng)).collect();
    if rng.chance(150) {
        // Dies in its recovery, again and again.
        let deaths = 5 + rng.below(16);
        lives.extend((0..deaths).map(|_| Life { crash_after: Some(rng.below(25)), writers: 1, ..Life::default() }));
    }
    lives
}

fn life(rng: &mut Rng) -> Life {
    let before = match rng.below(24) {
        0 => Some(Before::Damage),
        1 => Some(Before::LoseAll),
        2 => Some(Before::LoseOne),
        _ => None,
    };
    let moment = |rng: &mut Rng| millis(rng.below(400));
    Life {
        before,
        writers: 1 + rng.below(3) as u32,
        crash_after: rng.chance(700).then(|| rng.below(500)),
        stop_after: rng.chance(200).then(|| moment(rng)),
        taken_over: rng.chance(250).then(|| (moment(rng), millis(1 + rng.below(3000)))),
        full: rng.chance(120).then(|| (moment(rng), millis(1 + rng.below(20_000)))),
        torn: rng.chance(40).then(|| (rng.below(12), rng.below(1000))),
        jump: rng.chance(150).then(|| (moment(rng), rng.below(49) as i64 - 24)),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
