//! The generated bindings of the manifest.

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package cdchost:sdk;
        world metadata-half {
            export cdchost:plugin/metadata@0.1.0;
        }
    ",
    world: "cdchost:sdk/metadata-half",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_metadata",
    default_bindings_module: "cdchost_sdk::guest::bindings::metadata",
});
