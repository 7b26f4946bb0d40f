//! Drives a sink through the contract natively, in unit tests: no host, no component, no waiting.

pub(crate) mod imports;
mod world;

pub use world::{Action, Fault, Instance, LogLine, World};
