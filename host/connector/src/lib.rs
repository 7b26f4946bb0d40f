//! The ports: what the engine asks of sources, sinks and clocks, and what it promises them.
//!
//! The engine knows only these traits. A source lives in its own crate, sinks are plugins; neither knows the engine.
#![warn(missing_docs)]

mod clock;
mod committer;
mod error;
mod sink;
mod source;

pub use clock::{Clock, SystemClock};
pub use committer::{CommitOutcome, Committer, Recovered, SchemaChangeRequest};
pub use error::{ConnectorError, RowFault, StopClass, Verdict};
pub use sink::{Ability, Capabilities, Delivery, Ordering, Sink, SinkWriter};
pub use source::{
    Containment, EventSender, OpenedSource, SnapshotState, Source, SourceBarrier, SourceCommand, SourceConnector,
    SourceContext, SourceEnd, SourceEvent, SourcePhase, SourceProgress, SourceRestore, TableEvent, TableProgress,
};
