//! Between the host's types and the contract's: borrowed on the way in, owned and checked on the way back.

mod batch;
mod column;
mod cut;
mod edit;
mod plan;
mod schema;

pub(crate) use batch::{HostBatch, TablePlan};
pub(crate) use cut::{blob, committables, cut, item, progress};
pub(crate) use edit::{edit, replacement};
pub(crate) use plan::TransformPlan;
pub(crate) use schema::{SchemaParts, change, table};
