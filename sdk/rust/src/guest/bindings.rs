//! The generated bindings, nothing else: a world for what each kind of plugin exports, and one for the manifest that all
//! of them have. A component is of the worlds that it exports, put together.
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, reason = "generated code")]

pub mod metadata;
pub mod route;
pub mod transform;

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package cdchost:sdk;
        world sink-half {
            import cdchost:plugin/runtime@0.1.0;
            import cdchost:plugin/object-store@0.1.0;
            export cdchost:plugin/sink-committer@0.1.0;
            export cdchost:plugin/sink-writer@0.1.0;
        }
    ",
    world: "cdchost:sdk/sink-half",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_sink",
    default_bindings_module: "cdchost_sdk::guest::bindings",
});
