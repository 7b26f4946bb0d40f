//! Drives a sink through the contract natively, in unit tests: no host, no component, no waiting.
//!
//! [`Harness`] does what the host does, step by step: starts a run, hands rows to writers, prepares an epoch, stores
//! it, commits it, crashes. [`check_sink`] takes a sink through everything that the contract says of a crash.
//! [`TransformHarness`] and [`RouteHarness`] do the same for transforms and routes.
//! [`World`] is what all run in: object stores in memory, a clock that stands still, a log, scripted faults.

mod check;
mod driver;
pub(crate) mod imports;
mod passage;
mod readme;
mod rows;
mod world;

pub use check::{Check, check_sink};
pub use driver::{Checkpoint, Harness, Started};
pub use passage::{RouteHarness, TransformHarness};
pub use readme::{check_readme, check_readme_of, option_table};
pub use rows::{Cell, Rows, Table};
pub use world::{Action, Fault, Instance, LogLine, World};
