//! The exports of a component: found once, looked up in each instance.

use wasmtime::Store;
use wasmtime::component::InstancePre;

use crate::bindings::v0_1::exports::cdchost::plugin::{metadata, route, sink_committer, sink_writer, transform};
use crate::imports::GuestState;
use crate::loader::PluginKind;

/// A component whose instances can be made.
#[derive(Clone)]
pub(crate) struct Template {
    pre: InstancePre<GuestState>,
    metadata: metadata::GuestIndices,
    sink: Option<(sink_committer::GuestIndices, sink_writer::GuestIndices)>,
    transform: Option<transform::GuestIndices>,
    route: Option<route::GuestIndices>,
}

/// What can be called in one instance.
pub(crate) struct Guest {
    metadata: metadata::Guest,
    sink: Option<(sink_committer::Guest, sink_writer::Guest)>,
    transform: Option<transform::Guest>,
    route: Option<route::Guest>,
}

impl Template {
    /// Finds the exports of a plugin of this kind, and compares the types of their functions.
    pub(crate) fn new(pre: InstancePre<GuestState>, kind: PluginKind) -> wasmtime::Result<Self> {
        let is = |wanted| kind == wanted;
        Ok(Self {
            metadata: metadata::GuestIndices::new(&pre)?,
            sink: if is(PluginKind::Sink) {
                Some((sink_committer::GuestIndices::new(&pre)?, sink_writer::GuestIndices::new(&pre)?))
            } else {
                None
            },
            transform: is(PluginKind::Transform).then(|| transform::GuestIndices::new(&pre)).transpose()?,
            route: is(PluginKind::Route).then(|| route::GuestIndices::new(&pre)).transpose()?,
            pre,
        })
    }

    pub(super) async fn instantiate(&self, store: &mut Store<GuestState>) -> wasmtime::Result<Guest> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let sink = match &self.sink {
            Some((committer, writer)) => {
                Some((committer.load(&mut *store, &instance)?, writer.load(&mut *store, &instance)?))
            }
            None => None,
        };
        Ok(Guest {
            metadata: self.metadata.load(&mut *store, &instance)?,
            sink,
            transform: self.transform.as_ref().map(|found| found.load(&mut *store, &instance)).transpose()?,
            route: self.route.as_ref().map(|found| found.load(&mut *store, &instance)).transpose()?,
        })
    }
}

impl Guest {
    pub(super) fn metadata(&self) -> &metadata::Guest {
        &self.metadata
    }

    pub(super) fn sink_committer(&self) -> &sink_committer::Guest {
        &self.sink.as_ref().expect("committers are made of sinks alone").0
    }

    pub(super) fn sink_writer(&self) -> &sink_writer::Guest {
        &self.sink.as_ref().expect("writers are made of sinks alone").1
    }

    pub(super) fn transform(&self) -> &transform::Guest {
        self.transform.as_ref().expect("transforms are made of transform plugins alone")
    }

    pub(super) fn route(&self) -> &route::Guest {
        self.route.as_ref().expect("routers are made of route plugins alone")
    }
}
