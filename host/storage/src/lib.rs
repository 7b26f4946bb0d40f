//! Object stores: a folder of this machine, a bucket, or memory; opened from a URL, rooted, with atomic and durable writes.
//!
//! A [`Store`] knows nothing of what lies in it. Every path is relative to the store's root and cannot leave it.
#![warn(missing_docs)]

mod error;
mod faults;
mod folder;
mod objects;
mod path;
mod store;
mod upload;

pub use error::StorageError;
pub use faults::{Call, Fault, Faults, Operation};
pub use store::{ObjectMeta, PutOutcome, Store};
pub use upload::Upload;
