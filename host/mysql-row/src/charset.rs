//! Text of the server's character sets to UTF-8, by the server's own maps.

mod map;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::column::ValueError;
pub use map::{CodeMap, CodeShape};

/// A character set of a column, ready to read its text.
#[derive(Debug)]
pub struct Charset {
    name: String,
    decoding: Decoding,
}

#[derive(Debug)]
enum Decoding {
    /// Bytes are UTF-8 already; checked for a whole column at once.
    Utf8,
    Ascii,
    /// Two bytes a character, the higher first; halves of pairs are no characters.
    Ucs2,
    Utf16 {
        little_endian: bool,
    },
    Utf32,
    /// What the server said that each code is.
    Map(CodeMap),
}

impl Charset {
    /// A set that needs no map; none for one that does, or that is not known.
    pub fn computed(name: &str) -> Option<Self> {
        let decoding = match name {
            "utf8mb4" | "utf8mb3" | "utf8" => Decoding::Utf8,
            "ascii" => Decoding::Ascii,
            "ucs2" => Decoding::Ucs2,
            "utf16" => Decoding::Utf16 { little_endian: false },
            "utf16le" => Decoding::Utf16 { little_endian: true },
            "utf32" => Decoding::Utf32,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), decoding })
    }

    /// A set by its map.
    pub fn mapped(name: &str, map: CodeMap) -> Self {
        Self { name: name.to_owned(), decoding: Decoding::Map(map) }
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its bytes are taken as they are.
    pub fn is_utf8(&self) -> bool {
        matches!(self.decoding, Decoding::Utf8)
    }

    /// Whether it has characters above U+FFFF.
    pub fn is_wide(&self) -> bool {
        match &self.decoding {
            Decoding::Utf8 => self.name == "utf8mb4",
            Decoding::Utf16 { .. } | Decoding::Utf32 => true,
            Decoding::Map(map) => map.is_wide(),
            Decoding::Ascii | Decoding::Ucs2 => false,
        }
    }

    /// Appends a text in UTF-8. A code without a character is an error, never a replacement.
    pub fn decode(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        match &self.decoding {
            Decoding::Utf8 => out.extend_from_slice(text),
            Decoding::Ascii if text.is_ascii() => out.extend_from_slice(text),
            Decoding::Ascii => return Err(ValueError::Unmapped),
            Decoding::Ucs2 => units(text, |[high, low]| Ok(u32::from(u16::from_be_bytes([high, low]))), out)?,
            Decoding::Utf32 => units(text, |bytes| Ok(u32::from_be_bytes(bytes)), out)?,
            Decoding::Utf16 { little_endian } => utf16(text, *little_endian, out)?,
            Decoding::Map(map) => map.decode(text, out)?,
        }
        Ok(())
    }
}

/// All sets that the columns of a source have.
#[derive(Clone, Debug, Default)]
pub struct Charsets {
    by_name: BTreeMap<String, Arc<Charset>>,
}

impl Charsets {
    /// Adds one.
    pub fn add(&mut self, charset: Charset) {
        self.by_name.insert(charset.name.clone(), Arc::new(charset));
    }

    /// The set of this name: one that was added, or one that needs no map.
    pub fn get(&self, name: &str) -> Option<Arc<Charset>> {
        self.by_name.get(name).map(Arc::clone).or_else(|| Charset::computed(name).map(Arc::new))
    }
}

/// Characters of `N` bytes each.
fn units<const N: usize>(
    text: &[u8],
    number: impl Fn([u8; N]) -> Result<u32, ValueError>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let (units, rest) = text.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(ValueError::Unmapped);
    }
    units.iter().try_for_each(|unit| push(number(*unit)?, out))
}

fn utf16(text: &[u8], little_endian: bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let (units, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(ValueError::Unmapped);
    }
    let read = |unit: &[u8; 2]| if little_endian { u16::from_le_bytes(*unit) } else { u16::from_be_bytes(*unit) };
    for character in char::decode_utf16(units.iter().map(read)) {
        push(character.map_err(|_| ValueError::Unmapped)?.into(), out)?;
    }
    Ok(())
}

#[inline]
fn push(number: u32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let character = char::from_u32(number).ok_or(ValueError::Unmapped)?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
