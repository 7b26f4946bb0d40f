//! Write a cdchost plugin in Rust: implement [`Sink`] with [`Committer`] and [`Writer`], [`Transform`] or [`Route`], and
//! export it ([`export!`], [`export_transform!`], [`export_route!`]).
//!
//! Built for `wasm32-wasip2` the crate speaks the plugin contract `cdchost:plugin@0.1.0`; built for the own machine the
//! same types are plain Rust, and [`harness`] drives a plugin through the contract in unit tests.
#![warn(missing_docs)]

pub mod data;
mod error;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_arch = "wasm32"))]
pub mod harness;
pub mod json_lines;
mod manifest;
pub mod object_store;
pub mod options;
mod route;
pub mod runtime;
mod sink;
mod transform;

#[cfg(target_arch = "wasm32")]
use guest::imports;
#[cfg(not(target_arch = "wasm32"))]
use harness::imports;

pub use data::{Batch, Column, Field, LogicalType, Op, ReadPlan, RowMeta, Schema, TableId, Values};
pub use error::{Blame, ErrorParts, PluginError, Result, Retry, RowRef};
pub use manifest::{Manifest, config_schema};
pub use route::{Route, RowTargets, TableRoute};
pub use sink::{
    Abilities, Blob, Capabilities, ColumnPlace, Committable, Committer, Cut, Delivery, NothingToCommit, Ordering,
    Outcome, Progress, Recovered, SchemaChange, SchemaChangeRequest, Sink, Writer,
};
pub use transform::{Edit, OutField, Plan, Processed, Replacement, Transform};

/// Makes the crate a component of the given [`Sink`]. Does nothing on targets other than wasm32.
#[macro_export]
macro_rules! export {
    ($sink:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::guest::Exports<$sink>;
            $crate::guest::bindings::metadata::export_metadata!(
                Exported with_types_in $crate::guest::bindings::metadata
            );
    $crate::guest::bindings::export_sink!(Exported with_types_in $crate::guest::bindings);
        };
    };
}

/// Makes the crate a component of the given [`Transform`]. Does nothing on targets other than wasm32.
#[macro_export]
macro_rules! export_transform {
    ($transform:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::guest::TransformExports<$transform>;
            $crate::guest::bindings::metadata::export_metadata!(
                Exported with_types_in $crate::guest::bindings::metadata
            );
            $crate::guest::bindings::transform::export_transform!(
                Exported with_types_in $crate::guest::bindings::transform
            );
        };
    };
}

/// Makes the crate a component of the given [`Route`]. Does nothing on targets other than wasm32.
#[macro_export]
macro_rules! export_route {
    ($route:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::guest::RouteExports<$route>;
            $crate::guest::bindings::metadata::export_metadata!(
                Exported with_types_in $crate::guest::bindings::metadata
            );
    $crate::guest::bindings::route::export_route!(Exported with_types_in $crate::guest::bindings::route);
        };
    };
}

/// The README's sink is built with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
