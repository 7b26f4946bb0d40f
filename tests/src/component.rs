//! Seals a built component: lets it describe itself once, and writes that into its custom sections, so that it can be
//! read without running it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use cdchost_connector::SystemClock;
use cdchost_plugin::{EngineOptions, Manifest, PluginEngine};

/// The contract that the components of this repository are built for: `cdchost:plugin@0.1.0`.
const CONTRACT: [u16; 3] = [0, 1, 0];

/// Puts the component `built` at `sealed`, with its sections behind it. Does nothing if it is there already; replaces
/// it in one step otherwise, so that no reader sees half of one.
pub async fn seal(built: &Path, sealed: &Path) -> Result<()> {
    let bytes = std::fs::read(built).with_context(|| format!("read {}", built.display()))?;
    let is_there = |old: Vec<u8>| old.len() > bytes.len() && old.starts_with(&bytes);
    if std::fs::read(sealed).is_ok_and(is_there) {
        return Ok(());
    }
    let engine = PluginEngine::new(EngineOptions::new(Arc::new(SystemClock::default())))?;
    let plugin = engine.load(built, None).await.with_context(|| format!("load {}", built.display()))?;
    let new = sealed.with_extension("wasm.new");
    std::fs::write(&new, with_sections(&bytes, plugin.manifest())?)
        .with_context(|| format!("write {}", new.display()))?;
    std::fs::rename(&new, sealed).with_context(|| format!("write {}", sealed.display()))
}

/// The component with `cdchost:api` (three u16, big-endian) and `cdchost:manifest` (JSON) behind it.
fn with_sections(component: &[u8], manifest: &Manifest) -> Result<Vec<u8>> {
    let api: Vec<u8> = CONTRACT.iter().flat_map(|part| part.to_be_bytes()).collect();
    let mut sealed = component.to_vec();
    push_section(&mut sealed, "cdchost:api", &api);
    push_section(&mut sealed, "cdchost:manifest", &serde_json::to_vec(manifest)?);
    Ok(sealed)
}

/// Appends a custom section: id 0, the length of what follows, the name with its length, the content.
fn push_section(component: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut body = Vec::new();
    push_length(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    component.push(0);
    push_length(component, body.len());
    component.extend(body);
}

/// An unsigned number, seven bits a byte, lowest first.
fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push((length & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_framed_as_the_format_has_it() {
        let mut component = b"x".to_vec();
        push_section(&mut component, "ab", &[7; 200]);
        assert_eq!(component[..7], [b'x', 0, 0xcb, 0x01, 2, b'a', b'b']);
        assert_eq!(component.len(), 7 + 200);
    }
}
