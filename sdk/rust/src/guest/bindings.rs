//! The generated bindings, nothing else.
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, reason = "generated code")]

wit_bindgen::generate!({
    path: "../../wit",
    world: "sink-plugin",
    pub_export_macro: true,
    export_macro_name: "export_sink",
    default_bindings_module: "cdchost_sdk::guest::bindings",
});
