//! The plugin contract as the component speaks it: generated bindings, and their translation to the SDK's own types.

pub mod bindings;
mod convert;
mod exports;
pub(crate) mod imports;

pub use exports::{Exports, RouteExports, TransformExports};
