//! What outlives a crash: the source's history, the targets, the store; and when the next crash comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cdchost_connector::Clock;
use cdchost_model::{Generation, SinkProgress};
use cdchost_storage::{Fault, Faults, Operation, Store};
use tokio::sync::{Notify, watch};

use super::history::{Change, Rng, Shown, history};

/// How often things go wrong, in calls of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub retry: u64,
    pub restart: u64,
    pub store: u64,
}

/// A sink's target.
#[derive(Debug, Default)]
pub struct Target {
    /// Prepared and invisible, by committable key.
    pub prepared: BTreeMap<String, (Generation, Vec<Shown>)>,
    /// Committed keys.
    pub done: BTreeSet<String>,
    /// In the order in which they became visible.
    pub visible: Vec<Shown>,
    pub marker: Option<SinkProgress>,
    pub tables: BTreeSet<String>,
}

#[derive(Debug)]
pub struct World {
    pub history: Vec<Vec<Change>>,
    /// Transactions that have happened so far.
    pub happened: AtomicUsize,
    pub targets: Vec<Mutex<Target>>,
    pub wants_update_before: Vec<bool>,
    pub store: Store,
    pub rates: Rates,
    /// What must never happen and did.
    pub violations: Mutex<Vec<String>>,
    pub restores: AtomicU64,
    /// Targets may answer that they lost what was prepared.
    pub may_lose: AtomicBool,
    /// The targets cannot be reached.
    pub down: AtomicBool,
    holds: watch::Sender<BTreeSet<&'static str>>,
    rng: Mutex<Rng>,
    steps: AtomicU64,
    crash_at: AtomicU64,
    crash: Notify,
    micros: AtomicI64,
}

impl World {
    pub fn new(seed: u64, transactions: usize, sinks: usize, rates: Rates) -> Arc<Self> {
        let mut rng = Rng::new(seed);
        Arc::new(Self {
            history: history(&mut rng, transactions, 3),
            happened: AtomicUsize::new(transactions),
            targets: (0..sinks).map(|_| Mutex::default()).collect(),
            wants_update_before: (0..sinks).map(|_| rng.chance(500)).collect(),
            store: Store::memory(),
            rates,
            violations: Mutex::default(),
            restores: AtomicU64::new(0),
            may_lose: AtomicBool::new(false),
            down: AtomicBool::new(false),
            holds: watch::channel(BTreeSet::new()).0,
            rng: Mutex::new(rng),
            steps: AtomicU64::new(0),
            crash_at: AtomicU64::new(u64::MAX),
            crash: Notify::new(),
            micros: AtomicI64::new(1_700_000_000_000_000),
        })
    }

    /// Transactions that have happened so far.
    pub fn happened(&self) -> usize {
        self.happened.load(Ordering::Relaxed)
    }

    pub fn below(&self, end: u64) -> u64 {
        self.rng.lock().unwrap().below(end)
    }

    pub fn chance(&self, per_mille: u64) -> bool {
        self.rng.lock().unwrap().chance(per_mille)
    }

    pub fn violate(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    /// The next crash comes after so many steps from now.
    pub fn crash_after(&self, steps: u64) {
        self.crash_at.store(self.steps.load(Ordering::Relaxed).saturating_add(steps), Ordering::Relaxed);
    }

    pub fn never_crash(&self) {
        self.crash_at.store(u64::MAX, Ordering::Relaxed);
    }

    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// A place where a crash can come, or another task can run.
    pub async fn step(&self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
        if self.steps.fetch_add(1, Ordering::Relaxed) >= self.crash_at.load(Ordering::Relaxed) {
            self.crash.notify_waiters();
            std::future::pending::<()>().await;
        }
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
        self.holds.subscribe().wait_for(|holds| !holds.contains(name)).await.unwrap();
    }

    /// The store as one host sees it.
    pub fn faulty_store(self: &Arc<Self>) -> Store {
        let world = Arc::clone(self);
        self.store.clone().with_faults(Faults::new(move |call| {
            if !world.chance(world.rates.store) {
                return Fault::None;
            }
            match (call.operation, world.below(4)) {
                (Operation::PutIfAbsent, 0) => Fault::DoneButFail,
                (_, 1) => Fault::Delay(Duration::from_millis(world.below(40))),
                (_, 2) if call.operation == Operation::PutIfAbsent => Fault::Fail,
                (Operation::Get | Operation::List | Operation::Delete, 3) => Fault::Fail,
                _ => Fault::None,
            }
        }))
    }

    /// Rows that a sink's target must show when it stands at this place of the history.
    pub fn expected(&self, sink: usize, transactions: usize) -> Vec<Shown> {
        let wants = self.wants_update_before[sink];
        let changes = self.history[..transactions].iter().flatten();
        let mut rows: Vec<Shown> = changes.flat_map(|change| change.shown(wants)).collect();
        rows.sort_unstable();
        rows
    }

    pub fn clock(self: &Arc<Self>) -> Arc<dyn Clock> {
        // A new process's clock goes on where the last one's was, a second later.
        let base = self.micros.fetch_add(1_000_000, Ordering::Relaxed);
        Arc::new(SimClock { base, start: tokio::time::Instant::now() })
    }
}

/// Tokio's paused clock.
#[derive(Debug)]
struct SimClock {
    base: i64,
    start: tokio::time::Instant,
}

#[async_trait]
impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        self.base + self.elapsed().as_micros() as i64
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
