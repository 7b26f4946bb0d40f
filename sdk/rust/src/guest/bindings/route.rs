//! The generated bindings of a route, over the types of the sinks'.

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package cdchost:sdk;
        world route-half {
            import cdchost:plugin/runtime@0.1.0;
            export cdchost:plugin/route@0.1.0;
        }
    ",
    world: "cdchost:sdk/route-half",
    generate_all,
    with: {
        "cdchost:plugin/types@0.1.0": super::cdchost::plugin::types,
        "cdchost:plugin/runtime@0.1.0": super::cdchost::plugin::runtime,
    },
    pub_export_macro: true,
    export_macro_name: "export_route",
    default_bindings_module: "cdchost_sdk::guest::bindings::route",
});
