//! One instance of a component in a store of its own, and how it is called: elsewhere, bounded, and never after a fault.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use cdchost_connector::ConnectorError;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::timeout;
use wasmtime::Store;

use super::fault::{Faults, INSTANTIATE};
use super::guest::{Guest, Template};
use crate::Manifest;
use crate::bindings::v0_1::cdchost::plugin::types::PluginError;
use crate::bindings::v0_1::exports::cdchost::plugin::metadata;
use crate::engine::Shared;
use crate::imports::{Grant, GuestState, OperatorMetrics, Place};

/// Everything that the instances of one use of a plugin share.
pub(crate) struct Site {
    shared: Arc<Shared>,
    template: Template,
    grant: Arc<Grant>,
    metrics: OperatorMetrics,
    /// The plugin's name and version.
    version: String,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("id", &self.grant.operator).field("version", &self.version).finish_non_exhaustive()
    }
}

impl Site {
    pub(crate) fn new(shared: Arc<Shared>, template: Template, grant: Grant, manifest: &Manifest) -> Self {
        let version = format!("{} {}", manifest.name, manifest.version);
        Self { version, ..Self::nameless(shared, template, grant) }
    }

    /// For a component that has not yet said what it is.
    pub(crate) fn nameless(shared: Arc<Shared>, template: Template, grant: Grant) -> Self {
        let metrics = shared.metrics.operator(&grant.pipeline, &grant.operator);
        Self { shared, template, grant: Arc::new(grant), metrics, version: String::new() }
    }

    pub(super) fn id(&self) -> &str {
        &self.grant.operator
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }
}

/// A store and the instance in it.
pub(crate) struct Live {
    pub(super) store: Store<GuestState>,
    pub(super) guest: Guest,
}

/// A call into a guest: wasmtime's result outside, the plugin's own inside.
pub(super) type Call<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<Result<R, PluginError>>> + Send + 'a>>;

/// An instance, as long as it can be called. A trap, a timeout or a broken contract ends it: no guest is entered again
/// after a fault.
pub(crate) struct Instance {
    site: Arc<Site>,
    pub(super) faults: Faults,
    live: Option<Box<Live>>,
}

/// Stops a call whose caller no longer waits; the store goes with it.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Instance {
    /// Makes a store and an instance in it.
    pub(crate) async fn start(site: Arc<Site>, place: Place) -> Result<Self, ConnectorError> {
        let (shared, grant) = (&site.shared, &site.grant);
        let state = GuestState::new(Arc::clone(grant), place, Arc::clone(&shared.clock), site.metrics.clone());
        let faults = Faults::new((grant.kind, site.id()), state.log(), grant.limits.call_timeout, site.metrics.clone());
        let mut store = Store::new(&shared.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(grant.limits.output.0).unwrap_or(usize::MAX));
        // A guest that runs for longer than a tick gives its thread to others; the time limit is kept outside.
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let (template, limit) = (site.template.clone(), grant.limits.call_timeout);
        let task = shared.handle().spawn(async move {
            let started = timeout(limit, template.instantiate(&mut store)).await;
            let refusal = store.data().limiter.refusal().map(str::to_owned);
            (started.map(|guest| guest.map(|guest| Box::new(Live { store, guest }))), refusal)
        });
        let _guard = AbortOnDrop(task.abort_handle());
        let function = INSTANTIATE;
        let (started, refusal) = task.await.map_err(|error| faults.host(function, &error))?;
        let started = started.map_err(|_| faults.timeout(function))?;
        let live = started.map_err(|error| faults.trap(function, &error, refusal.as_deref()))?;
        Ok(Self { site, faults, live: Some(live) })
    }

    /// Calls `function`. The plugin's own errors leave the instance alive unless it blames itself.
    pub(super) async fn call<R, F>(&mut self, function: &'static str, call: F) -> Result<R, ConnectorError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Call<'a, R> + Send + 'static,
    {
        self.call_for_rows(function, 0, call).await
    }

    /// As [`Instance::call`], where the plugin may name rows of a batch of `rows` rows.
    pub(super) async fn call_for_rows<R, F>(
        &mut self,
        function: &'static str,
        rows: u32,
        call: F,
    ) -> Result<R, ConnectorError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Call<'a, R> + Send + 'static,
    {
        let mut live = self.live.take().ok_or_else(|| self.faults.gone(function))?;
        let begun = Instant::now();
        let limit = self.site.grant.limits.call_timeout;
        // The live half travels to the guests' threads and comes back only from a call that ended well.
        let task = self.site.shared.handle().spawn(async move {
            match timeout(limit, call(&mut live)).await {
                Ok(Ok(answer)) => Ended::Answered(answer, live),
                Ok(Err(error)) => Ended::Trapped(error, live.store.data().limiter.refusal().map(str::to_owned)),
                Err(_) => Ended::TimedOut,
            }
        });
        let guard = AbortOnDrop(task.abort_handle());
        let ended: Result<Ended<R>, JoinError> = task.await;
        drop(guard);
        self.site.metrics.called(function, begun.elapsed());
        match ended {
            Ok(Ended::Answered(Ok(value), live)) => {
                self.live = Some(live);
                Ok(value)
            }
            Ok(Ended::Answered(Err(told), live)) => {
                let (error, usable) = self.faults.told(function, told, rows);
                self.live = usable.then_some(live);
                Err(error)
            }
            Ok(Ended::Trapped(error, refusal)) => Err(self.faults.trap(function, &error, refusal.as_deref())),
            Ok(Ended::TimedOut) => Err(self.faults.timeout(function)),
            Err(error) => Err(self.faults.host(function, &error)),
        }
    }

    /// The plugin broke the contract: it is not called again.
    pub(super) fn broke(&mut self, function: &'static str, how: &str) -> ConnectorError {
        self.live = None;
        self.faults.broke(function, how)
    }

    /// Ends the instance after a last call; what that says changes nothing any more.
    pub(super) async fn end<F>(&mut self, call: F)
    where
        F: for<'a> FnOnce(&'a mut Live) -> Call<'a, ()> + Send + 'static,
    {
        if self.live.is_some()
            && let Err(error) = self.call("close", call).await
        {
            tracing::warn!(plugin = self.site.id(), %error, "plugin did not close well");
        }
        self.live = None;
    }

    /// What the plugin says of itself.
    pub(crate) async fn describe(&mut self) -> Result<metadata::Manifest, ConnectorError> {
        self.call("describe", |live| {
            Box::pin(async { Ok(Ok(live.guest.metadata().call_describe(&mut live.store).await?)) })
        })
        .await
    }
}

/// How a call ended.
enum Ended<R> {
    Answered(Result<R, PluginError>, Box<Live>),
    Trapped(wasmtime::Error, Option<String>),
    TimedOut,
}
