//! The ports: what the engine asks of sources, transforms, routes, sinks and clocks, and what it promises them.
//!
//! The engine knows only these traits. A source lives in its own crate, the others are plugins; neither knows the engine.
#![warn(missing_docs)]

mod clock;
mod committer;
mod error;
mod router;
mod sink;
mod source;
mod transform;

pub use clock::{Clock, SystemClock};
pub use committer::{CommitOutcome, Committer, Recovered, SchemaChangeRequest};
pub use error::{ConnectorError, RowFault, StopClass, Verdict};
pub use router::{RouteConnector, Router, RowTargets, TableRoute};
pub use sink::{Ability, Capabilities, Delivery, Ordering, Sink, SinkWriter};
pub use source::{
    Containment, EventSender, OpenedSource, SnapshotState, Source, SourceBarrier, SourceCommand, SourceConnector,
    SourceContext, SourceEnd, SourceEvent, SourcePhase, SourceProgress, SourceRestore, TableEvent, TableProgress,
};
pub use transform::{Transform, TransformConnector};
