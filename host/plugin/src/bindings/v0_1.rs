//! Version 0.1 of the plugin contract, as generated from `wit/`: all kinds of plugins over one set of types.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package cdchost:host;
        world every-kind {
            include cdchost:plugin/sink-plugin@0.1.0;
            include cdchost:plugin/transform-plugin@0.1.0;
            include cdchost:plugin/route-plugin@0.1.0;
        }
    ",
    world: "cdchost:host/every-kind",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: {
        "cdchost:plugin/object-store": async | trappable,
        "cdchost:plugin/network": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "cdchost:plugin/object-store.upload": crate::imports::object_store::Upload,
        "cdchost:plugin/network.connection": crate::imports::network::Connection,
    },
});
