//! Runs the engine in a world, kills it, runs it again, and compares.

use std::sync::Arc;
use std::time::Duration;

use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{CheckpointConfig, RestartConfig};
use cdchost_pipeline::{Pipeline, PipelineExit, PipelineHandle, PipelineMetrics, PipelineSetup, SinkSetup};
use cdchost_storage::Store;

use crate::host::Host;
use crate::look;
use crate::script::Life;
use crate::sink::{PIPELINE, SimSink};
use crate::source::SimConnector;
use crate::world::World;

/// A process of its own: dropped, nothing of it goes on.
pub fn process() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime without I/O needs nothing")
}

/// A pipeline over the whole world in a process that nothing befalls, over this store.
pub fn setup(world: &Arc<World>, store: Store, parallelism: u32) -> PipelineSetup {
    let host = Host::new(world, Life { writers: parallelism, ..Life::default() });
    PipelineSetup { store: CheckpointStore::new(store), ..setup_at(&host, parallelism) }
}

/// A pipeline over the whole world in this process.
pub fn setup_at(host: &Arc<Host>, parallelism: u32) -> PipelineSetup {
    let sinks = (0..host.world.sinks()).map(|place| SinkSetup {
        sink: Arc::new(SimSink { host: Arc::clone(host), place, id: format!("sink-{place}") }),
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
        source: Arc::new(SimConnector { host: Arc::clone(host), bounded: true }),
        path: Default::default(),
        sinks: sinks.collect(),
        store: CheckpointStore::new(host.store()),
        clock: host.clock(),
        metrics: PipelineMetrics::unregistered(PIPELINE),
    }
}

/// As [`setup`] over the world's own store, with an input that has no end.
pub fn endless(world: &Arc<World>, parallelism: u32) -> PipelineSetup {
    let host = Host::new(world, Life::default());
    let source = Arc::new(SimConnector { host: Arc::clone(&host), bounded: false });
    PipelineSetup { source, ..setup_at(&host, parallelism) }
}

/// One process until its end or, after so many steps, its crash; none = crashed.
pub fn live_once(world: &Arc<World>, parallelism: u32, crash_after: Option<u64>) -> Option<PipelineExit> {
    process().block_on(async {
        let host = Host::new(world, Life { crash_after, ..Life::default() });
        let mut handle = Pipeline::start(setup_at(&host, parallelism));
        tokio::select! {
            biased;
            () = host.crashed() => None,
            exit = handle.wait() => Some(exit),
            () = tokio::time::sleep(Duration::from_secs(3600)) => panic!("no end in an hour: {:?}", handle.status()),
        }
    })
}

/// Starts a pipeline in a process that nothing befalls.
pub fn start(world: &Arc<World>, bounded: bool) -> PipelineHandle {
    Pipeline::start(if bounded { setup(world, world.store.clone(), 2) } else { endless(world, 2) })
}

/// Every target shows every change once, in order.
pub fn check_complete(world: &World) -> Result<(), String> {
    check_prefix(world, world.history.len())
}

/// Every target shows the first so many transactions, each change once, in order.
pub fn check_prefix(world: &World, transactions: usize) -> Result<(), String> {
    match world.violations().into_iter().next() {
        Some(violation) => Err(violation),
        None => (0..world.sinks()).try_for_each(|sink| look::shows(world, sink, transactions)),
    }
}
