//! What outlives a process: the source's history, the targets, the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cdchost_model::{Epoch, Generation, SinkProgress};
use cdchost_storage::Store;
use tokio::sync::watch;

use crate::history::{Change, Rng, Shown, history};
use crate::trace::Trace;

/// Tables of the source.
pub const TABLES: usize = 3;

/// How often things go wrong, in calls of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// A call to a sink that is to be repeated.
    pub retry: u64,
    /// A call to a sink that ends the run.
    pub restart: u64,
    /// A call to the store.
    pub store: u64,
    /// A step of the source that ends the run.
    pub source: u64,
}

/// A sink that takes its time.
#[derive(Clone, Copy, Debug)]
pub struct SlowSink {
    /// Its place.
    pub place: usize,
    /// The longest that one of its calls takes.
    pub most: Duration,
    /// Only commits are slow, so that epochs pile up before them.
    pub only_commits: bool,
}

/// What a world is made of, beside its history.
#[derive(Clone, Debug)]
pub struct Measures {
    /// How often things go wrong.
    pub rates: Rates,
    /// The source tells at most so many transactions at once.
    pub stride: u64,
    /// A sink that takes its time.
    pub slow_sink: Option<SlowSink>,
    /// Targets refuse generations older than one that they have seen.
    pub targets_fence: bool,
    /// Epochs that a sink allows to be prepared and not committed.
    pub open_epochs: u32,
}

impl Default for Measures {
    fn default() -> Self {
        Self { rates: Rates::default(), stride: 4, slow_sink: None, targets_fence: false, open_epochs: 2 }
    }
}

/// A sink's target.
#[derive(Debug, Default)]
pub struct Target {
    /// Prepared and invisible, by committable key.
    pub prepared: BTreeMap<String, (Generation, Vec<Shown>)>,
    /// Committed keys.
    pub done: BTreeSet<String>,
    /// In the order in which they became visible, with the epoch that brought them.
    pub visible: Vec<(Epoch, Shown)>,
    /// How far it is.
    pub marker: Option<SinkProgress>,
    /// Tables that were created.
    pub tables: BTreeSet<String>,
    /// The newest generation that was recovered here.
    pub newest: Option<Generation>,
    /// Keys of what it lost by the script's will.
    pub lost: BTreeSet<String>,
}

impl Target {
    /// Loses the first so many things that were prepared; says how many there were.
    pub fn lose(&mut self, most: usize) -> usize {
        let before = self.lost.len();
        for _ in 0..most {
            let Some((key, _)) = self.prepared.pop_first() else { break };
            self.lost.insert(key);
        }
        self.lost.len() - before
    }
}

/// How often what was drawn came to pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Processes that died.
    pub crashes: u64,
    /// Starts from a record.
    pub restores: u64,
    /// Restarts within a process.
    pub restarts: u64,
    /// Processes that stood still while another one took over.
    pub take_overs: u64,
    /// Runs that learned that another one had taken over.
    pub fenced: u64,
    /// Writes to the store that were torn.
    pub torn: u64,
    /// Newest records in which a bit flipped.
    pub damaged: u64,
    /// Targets that lost what was prepared.
    pub losses: u64,
    /// Writes that a full store refused.
    pub refused_writes: u64,
    /// Writes that were done and not answered.
    pub lost_answers: u64,
    /// Times told by a clock that had jumped.
    pub jumps: u64,
    /// Runs that ended in a final state that their script allows.
    pub finals: u64,
}

/// Everything that is there while processes come and go.
#[derive(Debug)]
pub struct World {
    /// Transactions, each with its changes.
    pub history: Vec<Vec<Change>>,
    /// Transactions that have happened so far.
    pub happened: AtomicUsize,
    /// Which sinks want rows as they were before updates.
    pub wants_update_before: Vec<bool>,
    /// The store as it is, without faults.
    pub store: Store,
    measures: Measures,
    /// The targets cannot be reached.
    pub down: AtomicBool,
    pub(crate) micros: AtomicI64,
    targets: Vec<Mutex<Target>>,
    violations: Mutex<Vec<String>>,
    facts: Mutex<Facts>,
    trace: Mutex<Trace>,
    holds: watch::Sender<BTreeSet<&'static str>>,
    rng: Mutex<Rng>,
    hosts: AtomicU64,
    healed: AtomicBool,
}

impl World {
    /// A world in which nothing goes wrong but what is asked for here.
    pub fn new(seed: u64, transactions: usize, sinks: usize, rates: Rates) -> Arc<Self> {
        Self::with(seed, transactions, sinks, Measures { rates, ..Measures::default() })
    }

    /// A world with these measures.
    pub fn with(seed: u64, transactions: usize, sinks: usize, measures: Measures) -> Arc<Self> {
        let mut rng = Rng::new(seed);
        Arc::new(Self {
            history: history(&mut rng, transactions, TABLES),
            happened: AtomicUsize::new(transactions),
            wants_update_before: (0..sinks).map(|_| rng.chance(500)).collect(),
            store: Store::memory(),
            measures,
            down: AtomicBool::new(false),
            micros: AtomicI64::new(1_700_000_000_000_000),
            targets: (0..sinks).map(|_| Mutex::default()).collect(),
            violations: Mutex::default(),
            facts: Mutex::default(),
            trace: Mutex::default(),
            holds: watch::channel(BTreeSet::new()).0,
            rng: Mutex::new(rng),
            hosts: AtomicU64::new(0),
            healed: AtomicBool::new(false),
        })
    }

    /// Transactions that have happened so far.
    pub fn happened(&self) -> usize {
        self.happened.load(Ordering::Relaxed)
    }

    /// What it is made of.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// How often things go wrong by now.
    pub fn rates(&self) -> Rates {
        if self.is_healed() { Rates::default() } else { self.measures.rates }
    }

    /// A sink that takes its time by now.
    pub fn slow_sink(&self) -> Option<SlowSink> {
        self.measures.slow_sink.filter(|_| !self.is_healed())
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
    }

    /// Whether nothing goes wrong any more.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// Number of sinks.
    pub fn sinks(&self) -> usize {
        self.targets.len()
    }

    /// A sink's target.
    pub fn target(&self, sink: usize) -> MutexGuard<'_, Target> {
        locked(&self.targets[sink])
    }

    /// A number below `end`.
    pub fn below(&self, end: u64) -> u64 {
        locked(&self.rng).below(end)
    }

    /// True so many times of a thousand.
    pub fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && locked(&self.rng).chance(per_mille)
    }

    /// Something happened that must never happen.
    pub fn violate(&self, what: String) {
        self.note(format_args!("VIOLATION {what}"));
        locked(&self.violations).push(what);
    }

    /// What must never happen and did.
    pub fn violations(&self) -> Vec<String> {
        locked(&self.violations).clone()
    }

    /// Counts what came to pass.
    pub fn count(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut locked(&self.facts));
    }

    /// What came to pass so far.
    pub fn facts(&self) -> Facts {
        *locked(&self.facts)
    }

    /// Notes what happens.
    pub fn note(&self, what: std::fmt::Arguments<'_>) {
        locked(&self.trace).note(what);
    }

    /// The notes.
    pub fn trace(&self) -> MutexGuard<'_, Trace> {
        locked(&self.trace)
    }

    pub(crate) fn next_host(&self) -> u64 {
        self.hosts.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls of this name wait from now on.
    pub fn hold(&self, name: &'static str) {
        self.holds.send_modify(|holds| {
            holds.insert(name);
        });
    }

    /// Calls of this name go on.
    pub fn release(&self, name: &'static str) {
        self.holds.send_modify(|holds| {
            holds.remove(name);
        });
    }

    /// Whether calls of this name are held.
    pub fn is_held(&self, name: &'static str) -> bool {
        self.holds.borrow().contains(name)
    }

    /// Waits while calls of this name are held.
    pub async fn pass(&self, name: &'static str) {
        let passed = self.holds.subscribe().wait_for(|holds| !holds.contains(name)).await.is_ok();
        assert!(passed, "the world holds its own sender");
    }

    /// Rows that a sink's target must show when it stands at this place of the history.
    pub fn expected(&self, sink: usize, transactions: usize) -> Vec<Shown> {
        let wants = self.wants_update_before[sink];
        let changes = self.history[..transactions].iter().flatten();
        let mut rows: Vec<Shown> = changes.flat_map(|change| change.shown(wants)).collect();
        rows.sort_unstable();
        rows
    }
}

/// A run that panicked is a finding and ends; what it held is looked at all the same.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
