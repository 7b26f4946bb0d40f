//! Runs WASM components as sinks, transforms and routes: loads and checks them, holds them within limits, and converts at the border.
//!
//! Everything that names a WIT type or wasmtime lives here. Outside of this crate a plugin is a
//! [`cdchost_connector::Sink`], [`cdchost_connector::TransformConnector`] or [`cdchost_connector::RouteConnector`] like
//! any other.
#![warn(missing_docs)]

mod bindings;
mod convert;
mod engine;
mod error;
mod exports;
mod imports;
mod limits;
mod loader;
mod manifest;
mod plugin;

pub use engine::{EngineOptions, PluginEngine};
pub use error::PluginError;
pub use loader::{Inspection, PluginKind};
pub use manifest::{Manifest, OptionFinding};
pub use plugin::{Plugin, PluginSpec};
