//! One wasmtime engine for the process, its clock tick, and the threads that guests run on.

mod cache;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::Clock;
use prometheus_client::registry::Registry;
use tokio::runtime::{Builder, Handle, Runtime};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::engine::cache::CompiledCache;
use crate::imports::{GuestMetrics, GuestState};
use crate::{Inspection, Plugin, PluginError, loader};

/// How often a running guest gives its thread to others.
const EPOCH_TICK: Duration = Duration::from_millis(10);

/// What an engine needs from its host.
#[derive(Debug)]
pub struct EngineOptions {
    /// Folder for compiled code; made with mode 0700 where it is missing. None: compile at every start.
    ///
    /// Whoever can write to it can run code in this process: it is not used unless it belongs to this user alone.
    pub cache: Option<PathBuf>,
    /// The clock that guests see.
    pub clock: Arc<dyn Clock>,
    /// Threads that guests run on.
    pub threads: usize,
    /// Instances alive at once, over all plugins.
    pub instances_max: u32,
    /// Time that a plugin has to start and to describe itself when it is loaded.
    pub probe_timeout: Duration,
}

impl EngineOptions {
    /// No cache, a thread a core, 128 instances, 10 seconds to start.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        Self { cache: None, clock, threads, instances_max: 128, probe_timeout: Duration::from_secs(10) }
    }
}

/// Loads plugins and runs them. Cheap to clone; the last clone ends the threads.
#[derive(Clone, Debug)]
pub struct PluginEngine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<GuestState>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: GuestMetrics,
    pub(crate) probe_timeout: Duration,
    cache: Option<CompiledCache>,
    /// Taken only when dropped.
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginEngine").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    /// The threads that guests run on.
    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("the runtime is taken only when dropped").handle()
    }

    /// Compiled code of a component, from the cache or made now.
    pub(crate) fn compile(&self, wasm: &[u8], digest: &[u8; 32], name: &str) -> wasmtime::Result<Component> {
        match &self.cache {
            Some(cache) => cache.component(&self.engine, wasm, digest, name),
            None => {
                tracing::info!(plugin = name, bytes = wasm.len(), "compiling plugin");
                Component::new(&self.engine, wasm)
            }
        }
    }
}

impl PluginEngine {
    /// Starts the engine, its ticker and its threads.
    pub fn new(options: EngineOptions) -> Result<Self, PluginError> {
        let engine = new_engine(options.instances_max)?;
        start_ticker(&engine)?;
        let linker = crate::imports::linker(&engine).map_err(|e| PluginError::Engine(e.into()))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("plugin")
            // A guest that computes yields once a tick, and tokio looks at timers and at calls from elsewhere only every
            // so many yields: that must be at each, or a time limit of a second takes a minute.
            .event_interval(1)
            .global_queue_interval(1)
            .enable_all()
            .build()
            .map_err(|e| PluginError::Engine(e.into()))?;
        let cache = options.cache.and_then(|folder| CompiledCache::open(folder, &engine));
        let metrics = GuestMetrics::default();
        let (clock, probe_timeout) = (options.clock, options.probe_timeout);
        let shared = Shared { engine, linker, clock, metrics, probe_timeout, cache, runtime: Some(runtime) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Shows the plugins' metrics in `registry`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.shared.metrics.register(registry);
    }

    /// The file of plugin `name` in `folder`: `NAME.wasm`, else `NAME/NAME.wasm`.
    pub fn locate(folder: &Path, name: &str) -> Result<PathBuf, PluginError> {
        loader::locate(folder, name)
    }

    /// Reads a component and tells what it is, without running it where it has a manifest section.
    pub async fn inspect(&self, path: &Path) -> Result<Inspection, PluginError> {
        let file = path.to_owned();
        let looking = self.shared.handle().spawn_blocking(move || loader::inspect(&file));
        let mut found = looking.await.map_err(|e| PluginError::Engine(e.into()))??;
        if found.manifest.is_none() && found.findings.is_empty() {
            found.manifest = Some(self.load(path, None).await?.manifest().clone());
        }
        Ok(found)
    }

    /// Reads, checks and compiles a component. `sha256` is the digest (hex) that the file must have, if pinned.
    ///
    /// The file is read once: the bytes checked are the bytes run, whatever happens to the file later.
    pub async fn load(&self, path: &Path, sha256: Option<&str>) -> Result<Plugin, PluginError> {
        let (shared, path, pin) = (Arc::clone(&self.shared), path.to_owned(), sha256.map(str::to_owned));
        let loading = self.shared.handle().spawn_blocking(move || loader::load(&shared, &path, pin.as_deref()));
        let loaded = loading.await.map_err(|e| PluginError::Engine(e.into()))??;
        Plugin::new(Arc::clone(&self.shared), loaded).await
    }
}

/// Pooled instances where the machine lets us reserve the address space for them, else one by one.
fn new_engine(instances_max: u32) -> Result<Engine, PluginError> {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances_max)
        .total_core_instances(instances_max.saturating_mul(16))
        .total_memories(instances_max)
        .total_tables(instances_max.saturating_mul(16))
        .total_stacks(instances_max)
        .max_memories_per_component(8)
        .table_elements(1 << 20);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    match Engine::new(&config) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::warn!(%error, "no address space for pooled plugin instances: they are made one by one");
            Engine::new(&self::config()).map_err(|e| PluginError::Engine(e.into()))
        }
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).wasm_component_model(true).wasm_backtrace_max_frames(None).max_wasm_stack(1 << 20);
    config.async_stack_size(2 << 20);
    config
}

/// A thread of its own, so that no busy runtime can stop the tick that frees it.
fn start_ticker(engine: &Engine) -> Result<(), PluginError> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(EPOCH_TICK);
        }
    };
    let spawned = std::thread::Builder::new().name("plugin-ticker".into()).spawn(tick);
    spawned.map(drop).map_err(|e| PluginError::Engine(e.into()))
}
