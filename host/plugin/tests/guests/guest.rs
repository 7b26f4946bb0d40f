//! Small components made of a few lines of WAT: whatever a test does not say, the guest does in the simplest way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{PackageId, Resolve, SourceMap, WorldItem};

pub const WRITER: &str = "cdchost:plugin/sink-writer@0.1.0";
pub const COMMITTER: &str = "cdchost:plugin/sink-committer@0.1.0";
pub const TRANSFORM: &str = "cdchost:plugin/transform@0.1.0";
pub const ROUTE: &str = "cdchost:plugin/route@0.1.0";

/// Address of 4 KiB of zeros: as a result it reads as "ok", "empty", "none", "committed".
const ZEROS: u32 = 4096;

/// A guest in the making.
pub struct Guest {
    wit: Vec<(PathBuf, String)>,
    world: String,
    bodies: BTreeMap<String, String>,
    head: String,
    sections: Vec<(String, Vec<u8>)>,
}

impl Guest {
    /// A sink that takes everything and writes nothing.
    pub fn sink() -> Self {
        Self::of("sink-plugin").body(
            COMMITTER,
            "open",
            // target-rows, target-bytes, max-open-epochs; all else zero.
            "(i32.store (i32.const 8212) (i32.const 8192))
             (i64.store (i32.const 8216) (i64.const 2097152))
             (i32.store (i32.const 8224) (i32.const 2))
             (i32.const 8192)",
        )
    }

    /// A plugin of this world, each of whose functions answers with zeros.
    pub fn of(world: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut wit: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "wit"))
            .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
            .collect();
        wit.sort();
        let guest =
            Self { wit, world: world.into(), bodies: BTreeMap::new(), head: String::new(), sections: Vec::new() };
        guest.manifest(r#"{"name":"test","version":"0.1.0","config-schema":{"type":"object"}}"#)
    }

    /// Replaces the body of an exported function; its parameters are `(local.get 0)` and so on.
    pub fn body(mut self, interface: &str, function: &str, wat: &str) -> Self {
        self.bodies.insert(format!("{interface}#{function}"), wat.into());
        self
    }

    /// Imports, globals, data and functions before the exports.
    pub fn head(mut self, wat: &str) -> Self {
        self.head.push_str(wat);
        self
    }

    /// Another world of the contract, or one of its own.
    pub fn world(mut self, name: &str, own: Option<&str>) -> Self {
        self.world = name.into();
        if let Some(text) = own {
            self.wit.push(("own.wit".into(), format!("package cdchost:plugin@0.1.0;\n{text}")));
        }
        self
    }

    /// Changes the contract's text that the guest is built from.
    pub fn edit_wit(mut self, from: &str, to: &str) -> Self {
        for (_, text) in &mut self.wit {
            *text = text.replace(from, to);
        }
        self
    }

    pub fn manifest(mut self, json: &str) -> Self {
        self.sections = vec![("cdchost:manifest".into(), json.as_bytes().to_vec())];
        self
    }

    pub fn without_manifest(mut self) -> Self {
        self.sections.clear();
        self
    }

    /// The component's bytes.
    pub fn build(self) -> Vec<u8> {
        let mut sources = SourceMap::new();
        for (path, text) in &self.wit {
            sources.push(path, text.clone());
        }
        let mut resolve = Resolve::new();
        let package = resolve.push_group(sources.parse().map_err(|(_, error)| error).unwrap()).unwrap();
        let world = resolve.select_world(&[package], Some(&self.world)).unwrap();
        let mut module = wat::parse_str(self.wat(&resolve, package)).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let mut component = ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap();
        for (name, data) in &self.sections {
            append_section(&mut component, name, data);
        }
        component
    }

    /// Builds into a folder, as `NAME.wasm`.
    pub fn write(self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("{name}.wasm"));
        std::fs::write(&path, self.build()).unwrap();
        path
    }

    fn wat(&self, resolve: &Resolve, package: PackageId) -> String {
        let world = resolve.select_world(&[package], Some(&self.world)).unwrap();
        let mut wat = format!("(module {}", self.head);
        wat.push_str(
            "(memory (export \"memory\") 2)
             (global $heap (mut i32) (i32.const 65536))
             (func $alloc (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) (local $at i32)
               (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
               (global.set $heap (i32.add (local.get $at) (local.get 3)))
               (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
                 (then (if (i32.eq (i32.const -1) (memory.grow
                    (i32.add (i32.const 1) (i32.div_u (local.get 3) (i32.const 65536)))))
                   (then unreachable))))
               (local.get $at))",
        );
        for (key, item) in &resolve.worlds[world].exports {
            let WorldItem::Interface { id, .. } = item else { continue };
            let interface = resolve.name_world_key(key);
            for (name, function) in &resolve.interfaces[*id].functions {
                let export = format!("{interface}#{name}");
                let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
                let (params, results) = (types(&signature.params), types(&signature.results));
                let default = if results.is_empty() { String::new() } else { format!("(i32.const {ZEROS})") };
                let body = self.bodies.get(&export).unwrap_or(&default);
                write!(wat, "(func (export \"{export}\") (param {params}) (result {results}) {body})").unwrap();
            }
        }
        wat.push(')');
        wat
    }
}

fn types(types: &[WasmType]) -> String {
    let name = |ty: &WasmType| match ty {
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
    };
    types.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn append_section(component: &mut Vec<u8>, name: &str, data: &[u8]) {
    let mut body = leb128(name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(data);
    component.push(0);
    component.extend(leb128(body.len()));
    component.extend(body);
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}
