//! The outer form of a WASM file: what it is at all, and its custom sections, read without running anything.

/// Magic, version and layer of a component.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// Says in words what the bytes are, if they are no component.
pub(super) fn check_component(bytes: &[u8]) -> Result<(), String> {
    if bytes.starts_with(&COMPONENT) {
        return Ok(());
    }
    Err(match bytes {
        [] => "the file is empty".into(),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => "it is a core module, not a component".into(),
        [0, b'a', b's', b'm', _, _, _, _, ..] => "it is WASM of an unknown version".into(),
        [0, b'a', ..] if bytes.len() < COMPONENT.len() => "the file is cut off in its first bytes".into(),
        [b'P', b'K', 3, 4, ..] => "it is a zip archive".into(),
        [0x1f, 0x8b, ..] => "it is gzip data".into(),
        [0x7f, b'E', b'L', b'F', ..] => "it is native code (ELF)".into(),
        _ if is_text(bytes) => "it is a text file".into(),
        [0, ..] if bytes.iter().all(|byte| *byte == 0) => "it holds nothing but zero bytes".into(),
        _ => "its first bytes are not those of a WASM file".into(),
    })
}

/// Whether the file begins as one for people does.
fn is_text(bytes: &[u8]) -> bool {
    let plain = |c: char| !c.is_control() || c.is_ascii_whitespace();
    std::str::from_utf8(bytes.get(..64).unwrap_or(bytes)).is_ok_and(|text| text.chars().all(plain))
}

/// The last custom section of this name at the component's top level.
pub(super) fn custom<'a>(component: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = component.get(COMPONENT.len()..)?;
    let mut found = None;
    while let Some((id, body, after)) = section(rest) {
        rest = after;
        if id != 0 {
            continue;
        }
        if let Some((length, text)) = leb128(body)
            && let Some((own, data)) = text.split_at_checked(length as usize)
            && own == name.as_bytes()
        {
            found = Some(data);
        }
    }
    found
}

/// The first section: its id, its body, and what follows it.
fn section(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&id, rest) = bytes.split_first()?;
    let (length, rest) = leb128(rest)?;
    let (body, after) = rest.split_at_checked(length as usize)?;
    Some((id, body, after))
}

/// An unsigned number of up to 32 bits, seven bits a byte, lowest first.
fn leb128(mut bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, bytes));
        }
    }
    None
}
