//! Runs the engine in a world, kills it, runs it again, and compares.

use std::sync::Arc;
use std::time::Duration;

use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{CheckpointConfig, RestartConfig};
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle, PipelineMetrics, PipelineSetup, SinkSetup};
use cdchost_storage::Store;

use super::sink::{PIPELINE, SimSink, out_of_order};
use super::source::SimConnector;
use super::world::World;

/// A process of its own: dropped, nothing of it goes on.
pub fn process() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

pub fn setup(world: &Arc<World>, store: Store, parallelism: u32) -> PipelineSetup {
    let sinks = (0..world.targets.len()).map(|place| SinkSetup {
        sink: Arc::new(SimSink { world: Arc::clone(world), place, id: format!("sink-{place}") }),
        parallelism: parallelism + place as u32,
    });
    PipelineSetup {
        name: PIPELINE.into(),
        config: "{}".into(),
        checkpoint: CheckpointConfig {
            interval: Duration::from_millis(20),
            timeout: Duration::from_secs(600),
            min_pause: Duration::ZERO,
            retained: 2,
            tolerable_failures: 0,
            store: String::new(),
            folder: None,
        },
        restart: RestartConfig {
            budget: 10_000,
            window: Duration::from_secs(600),
            backoff: Duration::from_millis(10),
            backoff_max: Duration::from_millis(100),
        },
        source: Arc::new(SimConnector { world: Arc::clone(world), bounded: true }),
        path: Default::default(),
        sinks: sinks.collect(),
        store: CheckpointStore::new(store),
        clock: world.clock(),
        metrics: PipelineMetrics::unregistered(PIPELINE),
    }
}

/// One process until its end or its crash; none = crashed.
pub fn live_once(world: &Arc<World>, parallelism: u32) -> Option<PipelineExit> {
    process().block_on(async {
        let mut handle = Pipeline::start(setup(world, world.faulty_store(), parallelism));
        tokio::select! {
            biased;
            () = world.crashed() => None,
            exit = handle.wait() => Some(exit),
            () = tokio::time::sleep(Duration::from_secs(3600)) => panic!("no end in an hour: {:?}", handle.status()),
        }
    })
}

pub fn start(world: &Arc<World>, bounded: bool) -> PipelineHandle {
    let mut setup = setup(world, world.store.clone(), 2);
    setup.source = Arc::new(SimConnector { world: Arc::clone(world), bounded });
    Pipeline::start(setup)
}

/// Every target shows every change once, in order.
pub fn check_complete(world: &World) -> Result<(), String> {
    check_prefix(world, world.history.len())
}

/// Every target shows the first so many transactions, each change once, in order.
pub fn check_prefix(world: &World, transactions: usize) -> Result<(), String> {
    if let Some(violation) = world.violations.lock().unwrap().first() {
        return Err(violation.clone());
    }
    for (sink, target) in world.targets.iter().enumerate() {
        let target = target.lock().unwrap();
        let mut rows = target.visible.clone();
        rows.sort_unstable();
        let expected = world.expected(sink, transactions);
        if rows != expected {
            return Err(format!("sink {sink} shows {} rows, {} are right", rows.len(), expected.len()));
        }
        if let Some(fault) = out_of_order(&target) {
            return Err(fault);
        }
    }
    Ok(())
}
