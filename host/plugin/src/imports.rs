//! What a guest may call: one file an interface, one state behind all of them.

mod log;
mod metrics;
pub(crate) mod network;
pub(crate) mod object_store;
mod runtime;
mod stdio;

use std::collections::BTreeMap;
use std::sync::Arc;

use cdchost_config::{Limits, Secret};
use cdchost_connector::Clock;
use cdchost_storage::Store;
use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::bindings::v0_1::cdchost::plugin as wit;
use crate::limits::GuestLimiter;
use crate::loader::PluginKind;
pub(crate) use log::GuestLog;
pub(crate) use metrics::GuestMetrics;
pub(crate) use metrics::OperatorMetrics;

/// Who a guest is and what it was given; the same for all instances of one use.
pub(crate) struct Grant {
    /// What it is used as.
    pub(crate) kind: PluginKind,
    /// The pipeline's name.
    pub(crate) pipeline: String,
    /// Its id in the pipeline.
    pub(crate) operator: String,
    /// Options as JSON, secrets left out.
    pub(crate) config: String,
    /// Secrets by option name.
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Roots by name.
    pub(crate) stores: BTreeMap<String, Store>,
    /// May print on the host's standard output.
    pub(crate) stdout: bool,
    /// Bounds.
    pub(crate) limits: Limits,
}

/// Which instance of its sink a guest is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) subtask: u32,
    pub(crate) parallelism: u32,
    pub(crate) generation: u64,
}

/// The data of one store.
pub(crate) struct GuestState {
    grant: Arc<Grant>,
    place: Place,
    clock: Arc<dyn Clock>,
    log: Arc<GuestLog>,
    metrics: OperatorMetrics,
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) limiter: GuestLimiter,
}

impl GuestState {
    /// WASI with everything denied: no environment, no arguments, no folders, no sockets, no names; what the guest
    /// prints becomes log lines.
    pub(crate) fn new(grant: Arc<Grant>, place: Place, clock: Arc<dyn Clock>, metrics: OperatorMetrics) -> Self {
        let log = Arc::new(GuestLog::new(&grant, place, Arc::clone(&clock)));
        let mut wasi = WasiCtx::builder();
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        wasi.stderr(stdio::Stream::logged(Arc::clone(&log)));
        if grant.stdout {
            wasi.stdout(stdio::Stream::printed());
        } else {
            wasi.stdout(stdio::Stream::logged(Arc::clone(&log)));
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(grant.limits.handles as usize);
        let limiter = GuestLimiter::new(&grant.limits);
        Self { grant, place, clock, log, metrics, wasi: wasi.build(), table, limiter }
    }
}

impl GuestState {
    /// Where this guest's log lines go.
    pub(crate) fn log(&self) -> Arc<GuestLog> {
        Arc::clone(&self.log)
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Everything that a plugin may import. An import is no wish for a grant: all are linked, and deny by themselves.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wit::types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut GuestState| state)?;
    wit::sink_types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut GuestState| state)?;
    wit::runtime::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut GuestState| state)?;
    wit::object_store::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut GuestState| state)?;
    wit::network::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut GuestState| state)?;
    Ok(linker)
}

impl wit::types::Host for GuestState {}

impl wit::sink_types::Host for GuestState {}
