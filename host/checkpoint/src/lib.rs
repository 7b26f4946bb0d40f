//! The checkpoint protocol: epochs, generations, records, and the chain of slots that fences old runs.
//!
//! Facts are read from the store, turned into a state (`derive`), judged (`decide`), and acted on (`workflow`); only
//! the last does I/O. What a sink prepared can be taken out of a [`DurableEpoch`] or a loaded [`Record`] and from
//! nowhere else, so that nothing can be committed that is not durable.
#![warn(missing_docs)]

mod decide;
mod derive;
mod error;
mod gc;
mod paths;
mod planted;
mod record;
mod store;
mod workflow;

pub use decide::{LostItem, Plan, Refusal, Settled, SinkReport, match_sinks, plan, settle};
pub use derive::ChainState;
pub use error::{CheckpointError, DecodeError};
pub use paths::Slot;
pub use planted::PlantedFault;
#[cfg(feature = "planted-faults")]
pub use planted::plant;
pub use record::{CommitPermit, Parent, Record, SinkRecord, TableVersion};
pub use store::CheckpointStore;
pub use workflow::{Chain, DurableEpoch, PreparedEpoch, Stored};
