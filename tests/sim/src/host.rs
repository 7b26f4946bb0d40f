//! One process that runs the pipeline: it can die between any two steps, and stand still while the world goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cdchost_connector::Clock;
use cdchost_storage::{Call, Fault, Faults, Operation, Store};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::script::Life;
use crate::world::World;

/// More than a fence has, and less than a record.
const FENCE_BYTES: usize = 400;
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// A process as the world sees it.
#[derive(Debug)]
pub struct Host {
    /// The world that it lives in.
    pub world: Arc<World>,
    number: u64,
    began: Instant,
    life: Life,
    steps: AtomicU64,
    writes: AtomicU64,
    crash: Notify,
    frozen_until: Mutex<Option<Instant>>,
}

impl Host {
    /// A process that starts now, with what befalls it.
    pub fn new(world: &Arc<World>, life: Life) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            number: world.next_host(),
            began: Instant::now(),
            life,
            steps: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            crash: Notify::new(),
            frozen_until: Mutex::new(None),
        })
    }

    /// Notes what it does.
    pub fn note(&self, what: std::fmt::Arguments<'_>) {
        let at = self.began.elapsed().as_micros();
        self.world.note(format_args!("host {} at {at}: {what}", self.number));
    }

    /// Until it has died.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Stands still for so long.
    pub fn freeze(&self, time: Duration) {
        self.note(format_args!("stands still for {time:?}"));
        *self.frozen_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }

    /// How long it still stands still.
    fn frozen_for(&self) -> Option<Duration> {
        let until = (*self.frozen_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    async fn thaw(&self) {
        while let Some(left) = self.frozen_for() {
            tokio::time::sleep(left).await;
        }
    }

    /// A place where it can die or stand still, or another task can run.
    pub async fn step(&self) {
        for _ in 0..self.world.below(4) {
            tokio::task::yield_now().await;
        }
        self.thaw().await;
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// Counts a step; true once it is dead.
    fn is_over(&self) -> bool {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let over = self.life.crash_after.is_some_and(|after| step >= after);
        if over {
            self.crash.notify_one();
        }
        over
    }

    /// The store as this process sees it.
    pub fn store(self: &Arc<Self>) -> Store {
        let host = Arc::clone(self);
        self.world.store.clone().with_faults(Faults::new(move |call| {
            let fault = host.fault(call);
            host.note(format_args!("{:?} {}: {fault:?}", call.operation, call.path));
            fault
        }))
    }

    fn fault(&self, call: &Call<'_>) -> Fault {
        let world = &self.world;
        if self.is_over() {
            return if world.chance(500) { Fault::Hang } else { Fault::Late(FOR_EVER) };
        }
        if let Some(left) = self.frozen_for() {
            return if world.chance(500) { Fault::Delay(left) } else { Fault::Late(left) };
        }
        if matches!(call.operation, Operation::Put | Operation::PutIfAbsent) {
            let write = self.writes.fetch_add(1, Ordering::Relaxed);
            if let Some((nth, part)) = self.life.torn
                && nth == write
            {
                world.count(|facts| facts.torn += 1);
                // A fence holds a random number, in as many digits as it takes: its length says nothing.
                let bytes = if call.bytes < FENCE_BYTES { FENCE_BYTES / 4 } else { call.bytes };
                return Fault::Tear(bytes * part as usize / 1000);
            }
            if within(self.life.full, self.began.elapsed()) {
                world.count(|facts| facts.refused_writes += 1);
                return Fault::Fail;
            }
        }
        // A claim reads all there is: a store that fails often would let none through.
        let writes = matches!(call.operation, Operation::Put | Operation::PutIfAbsent);
        let rate = if writes { world.rates().store } else { world.rates().store / 8 };
        if world.chance(rate) { self.mishap(call.operation) } else { Fault::None }
    }

    fn mishap(&self, operation: Operation) -> Fault {
        let world = &self.world;
        let time = Duration::from_millis(if world.chance(50) { world.below(4000) } else { world.below(40) });
        match world.below(4) {
            0 if operation == Operation::PutIfAbsent => {
                world.count(|facts| facts.lost_answers += 1);
                Fault::DoneButFail
            }
            0 | 1 => Fault::Fail,
            2 => Fault::Delay(time),
            _ => Fault::Late(time),
        }
    }

    /// Time as this process sees it.
    pub fn clock(self: &Arc<Self>) -> Arc<dyn Clock> {
        // A new process's clock goes on where the last one's was, a second later.
        let base = self.world.micros.fetch_add(1_000_000, Ordering::Relaxed);
        Arc::new(SimClock { host: Arc::clone(self), base })
    }
}

fn within(span: Option<(Duration, Duration)>, now: Duration) -> bool {
    span.is_some_and(|(from, time)| now >= from && now < from + time)
}

/// Tokio's paused clock; the time of day can jump.
#[derive(Debug)]
struct SimClock {
    host: Arc<Host>,
    base: i64,
}

#[async_trait]
impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        let elapsed = self.elapsed();
        let hours = self.host.life.jump.filter(|(at, _)| elapsed >= *at).map_or(0, |(_, hours)| hours);
        if hours != 0 {
            self.host.world.count(|facts| facts.jumps += 1);
        }
        self.base + elapsed.as_micros() as i64 + hours * 3_600_000_000
    }

    fn elapsed(&self) -> Duration {
        self.host.began.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.host.thaw().await;
    }
}
