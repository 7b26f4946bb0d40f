//! Compares what a component imports and exports with what this host has, and says the difference in words.

use std::path::Path;
use std::sync::LazyLock;

use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, SourceMap, WorldItem, WorldKey};

use super::PluginKind;

const PACKAGE: &str = "cdchost:plugin";
/// The minor version of the contract that `bindings::v0_1` speaks.
const VERSION: (u64, u64) = (0, 1);
/// Packages of WASI 0.2 that are linked (with everything denied).
const WASI: [&str; 6] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];

/// What plugins of a kind may import of the contract, and what they must export.
fn interfaces(kind: PluginKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        PluginKind::Sink => (
            &["network", "object-store", "runtime", "sink-types", "types"],
            &["metadata", "sink-committer", "sink-writer"],
        ),
        PluginKind::Transform => (&["runtime", "types"], &["metadata", "transform"]),
        PluginKind::Route => (&["runtime", "types"], &["metadata", "route"]),
        PluginKind::Functions => (&["runtime", "types"], &["metadata", "functions"]),
    }
}

/// The contract's own text.
const WIT: [(&str, &str); 14] = [
    ("functions.wit", include_str!("../../../../wit/functions.wit")),
    ("metadata.wit", include_str!("../../../../wit/metadata.wit")),
    ("network.wit", include_str!("../../../../wit/network.wit")),
    ("object-store.wit", include_str!("../../../../wit/object-store.wit")),
    ("route.wit", include_str!("../../../../wit/route.wit")),
    ("runtime.wit", include_str!("../../../../wit/runtime.wit")),
    ("sink-committer.wit", include_str!("../../../../wit/sink-committer.wit")),
    ("sink-scan.wit", include_str!("../../../../wit/sink-scan.wit")),
    ("sink-types.wit", include_str!("../../../../wit/sink-types.wit")),
    ("sink-writer.wit", include_str!("../../../../wit/sink-writer.wit")),
    ("state.wit", include_str!("../../../../wit/state.wit")),
    ("transform.wit", include_str!("../../../../wit/transform.wit")),
    ("types.wit", include_str!("../../../../wit/types.wit")),
    ("worlds.wit", include_str!("../../../../wit/worlds.wit")),
];

/// Names of the functions of each interface of the contract.
static CONTRACT: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    let mut sources = SourceMap::new();
    for (name, text) in WIT {
        sources.push(Path::new(name), text);
    }
    let group = sources.parse().map_err(|(_, error)| error).expect("the contract parses: it was built from");
    let mut resolve = Resolve::new();
    resolve.push_group(group).expect("the contract resolves: it was built from");
    let named = resolve
        .interfaces
        .iter()
        .filter_map(|(_, interface)| Some((interface.name.clone()?, interface.functions.keys().cloned().collect())));
    named.collect()
});

fn functions_of(interface: &str) -> Option<&'static [String]> {
    CONTRACT.iter().find(|(name, _)| name == interface).map(|(_, functions)| functions.as_slice())
}

/// One import or export of a component.
struct Item {
    /// `namespace:package`; empty for a bare function or type.
    package: String,
    /// Major, minor, patch.
    version: Option<(u64, u64, u64)>,
    name: String,
    functions: Vec<String>,
}

impl Item {
    fn is_ours(&self) -> bool {
        self.package == PACKAGE
    }

    fn display(&self) -> String {
        let version = self.version.map(|(a, b, c)| format!("@{a}.{b}.{c}")).unwrap_or_default();
        if self.package.is_empty() { self.name.clone() } else { format!("{}/{}{version}", self.package, self.name) }
    }
}

/// The order in a component is the linker's, and changes with any change of its code.
fn shown(items: &[Item]) -> Vec<String> {
    let mut names: Vec<String> = items.iter().map(Item::display).collect();
    names.sort();
    names
}

/// What a component imports and exports.
pub(super) struct Interfaces {
    imports: Vec<Item>,
    exports: Vec<Item>,
}

impl Interfaces {
    /// Reads a component's types; an error says what is damaged.
    pub(super) fn of(wasm: &[u8]) -> Result<Self, String> {
        match decode(wasm) {
            Ok(DecodedWasm::Component(resolve, world)) => {
                let world = resolve.worlds.get(world).ok_or("it has no world")?;
                let items = |side: &wit_parser::IndexMap<WorldKey, WorldItem>| {
                    side.iter().map(|(key, value)| item(&resolve, key, value)).collect()
                };
                Ok(Self { imports: items(&world.imports), exports: items(&world.exports) })
            }
            Ok(DecodedWasm::WitPackage(..)) => Err("it is a WIT package without code".into()),
            Err(error) => Err(format!("it is damaged or cut off: {error:#}")),
        }
    }

    /// The component's kind, or everything that does not fit.
    pub(super) fn check(&self) -> Result<PluginKind, Vec<String>> {
        self.check_versions()?;
        let kind = self.kind().ok_or_else(|| self.no_kind())?;
        let (offered, wanted) = interfaces(kind);
        let mut findings: Vec<String> = wanted.iter().flat_map(|name| self.missing(name)).collect();
        findings.extend(self.imports.iter().filter_map(|item| check_import(item, kind, offered)));
        if findings.is_empty() { Ok(kind) } else { Err(findings) }
    }

    fn check_versions(&self) -> Result<(), Vec<String>> {
        let foreign = self
            .imports
            .iter()
            .chain(&self.exports)
            .filter(|item| item.is_ours())
            .find_map(|item| item.version.filter(|&(major, minor, _)| (major, minor) != VERSION));
        match foreign {
            Some((a, b, c)) => {
                let (major, minor) = VERSION;
                Err(vec![format!("it was built for {PACKAGE} {a}.{b}.{c}, this host speaks {major}.{minor}")])
            }
            None => Ok(()),
        }
    }

    /// Its kind, by what it exports of the contract, whatever the version.
    pub(super) fn kind(&self) -> Option<PluginKind> {
        let exports = |name: &str| self.exports.iter().any(|item| item.is_ours() && item.name == name);
        if exports("sink-committer") || exports("sink-writer") {
            Some(PluginKind::Sink)
        } else if exports("transform") {
            Some(PluginKind::Transform)
        } else if exports("route") {
            Some(PluginKind::Route)
        } else if exports("functions") {
            Some(PluginKind::Functions)
        } else {
            None
        }
    }

    fn no_kind(&self) -> Vec<String> {
        let found = if self.exports.is_empty() { "nothing".into() } else { self.exports().join(", ") };
        vec![format!("it exports no kind of plugin of {PACKAGE} (it exports {found})")]
    }

    /// What it imports, as people read it, by name.
    pub(super) fn imports(&self) -> Vec<String> {
        shown(&self.imports)
    }

    /// What it exports, as people read it, by name.
    pub(super) fn exports(&self) -> Vec<String> {
        shown(&self.exports)
    }

    /// The version of the contract that it names.
    pub(super) fn version(&self) -> Option<String> {
        let ours = self.exports.iter().chain(&self.imports).filter(|item| item.is_ours());
        ours.filter_map(|item| item.version).map(|(a, b, c)| format!("{a}.{b}.{c}")).next()
    }

    /// What of this interface is not exported.
    fn missing(&self, name: &str) -> Vec<String> {
        let Some(found) = self.exports.iter().find(|item| item.is_ours() && item.name == name) else {
            return vec![format!("it does not export {PACKAGE}/{name}")];
        };
        let wanted = functions_of(name).unwrap_or_default().iter();
        let missing = wanted.filter(|function| !found.functions.contains(function));
        missing.map(|function| format!("its {name} lacks the function {function}")).collect()
    }
}

fn check_import(item: &Item, kind: PluginKind, offered: &[&str]) -> Option<String> {
    let name = item.display();
    if item.is_ours() {
        return match item.name.as_str() {
            "state" => Some(format!("it imports {name}: keyed state is not offered yet")),
            "functions" => Some(format!("it imports {name}: functions of other components are not offered yet")),
            own if offered.contains(&own) => check_functions(item),
            _ => Some(format!("it imports {name}, which a {} is not offered", kind.name())),
        };
    }
    if WASI.contains(&item.package.as_str()) {
        let known = item.version.is_some_and(|(major, minor, _)| (major, minor) == (0, 2));
        return (!known).then(|| format!("it imports {name}, this host offers WASI 0.2"));
    }
    if item.package == "wasi:http" {
        return Some(format!("it imports {name}: HTTP is not offered yet"));
    }
    Some(format!("it imports {name}, which this host does not offer"))
}

/// A newer patch version of the contract may have functions that this host lacks.
fn check_functions(item: &Item) -> Option<String> {
    let known = functions_of(&item.name).unwrap_or_default();
    // `[constructor]upload` and the like stand under the same names on both sides.
    let unknown = item.functions.iter().find(|function| !known.contains(function))?;
    Some(format!(
        "it calls {unknown} of {}, which this host does not have: it was built for a newer one",
        item.display()
    ))
}

fn item(resolve: &Resolve, key: &WorldKey, value: &WorldItem) -> Item {
    let bare = |name: &str| Item { package: String::new(), version: None, name: name.into(), functions: Vec::new() };
    let WorldItem::Interface { id, .. } = value else {
        return match key {
            WorldKey::Name(name) => bare(name),
            WorldKey::Interface(_) => bare("an unnamed item"),
        };
    };
    let Some(interface) = resolve.interfaces.get(*id) else { return bare("an unnamed interface") };
    let package = interface.package.and_then(|id| resolve.packages.get(id)).map(|package| &package.name);
    let name = match key {
        WorldKey::Name(name) => name.clone(),
        WorldKey::Interface(_) => interface.name.clone().unwrap_or_default(),
    };
    Item {
        package: package.map(|p| format!("{}:{}", p.namespace, p.name)).unwrap_or_default(),
        version: package.and_then(|p| p.version.as_ref()).map(|v| (v.major, v.minor, v.patch)),
        name,
        functions: interface.functions.keys().cloned().collect(),
    }
}
