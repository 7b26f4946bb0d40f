//! The checkpoint protocol: epochs, generations, records, the chain of slots that fences old runs.
#![warn(missing_docs)]

mod store;

pub use store::CheckpointStore;
