//! Version 0.1 of the plugin contract, as generated from `wit/`.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "cdchost:plugin/sink-plugin",
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
