//! Sets that are computed, and maps put together by hand; the server's own maps are compared by the suite `values`.

use super::map::NONE;
use super::*;

fn decoded(charset: &Charset, text: &[u8]) -> Result<String, ValueError> {
    let mut out = Vec::new();
    charset.decode(text, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn computed_sets_decode() {
    let rows: [(&str, &[u8], Result<&str, ValueError>); 12] = [
        ("ascii", b"a~", Ok("a~")),
        ("ascii", b"\xc3\xa4", Err(ValueError::Unmapped)),
        ("ucs2", b"\x4e\x2d\0a", Ok("中a")),
        ("ucs2", b"\xd8\x3d\xde\x00", Err(ValueError::Unmapped)),
        ("ucs2", b"\x4e", Err(ValueError::Unmapped)),
        ("utf16", b"\xd8\x3d\xde\x00\0b", Ok("😀b")),
        ("utf16", b"\xd8\x3d\0b", Err(ValueError::Unmapped)),
        ("utf16", b"\0a\0", Err(ValueError::Unmapped)),
        ("utf16le", b"\x3d\xd8\x00\xdeb\0", Ok("😀b")),
        ("utf32", b"\0\x01\xf6\0\0\0\0a", Ok("😀a")),
        ("utf32", b"\0\x11\0\0", Err(ValueError::Unmapped)),
        ("utf32", b"\0\0\xd8\0", Err(ValueError::Unmapped)),
    ];
    for (name, text, expected) in rows {
        let found = decoded(&Charset::computed(name).unwrap(), text);
        assert_eq!(found, expected.map(str::to_owned), "{name} {text:x?}");
    }
    assert!(Charset::computed("gbk").is_none());
}

/// A map with ASCII, some codes, and enough others that it passes for a whole one.
fn map(shape: CodeShape, codes: &[(u32, char)]) -> Charset {
    let mut map = CodeMap::new(shape);
    let ranges: &[(u32, u32)] = match shape {
        CodeShape::Single => &[],
        CodeShape::Double => &[(0xC1A1, 0xC8FE)],
        CodeShape::Triple => &[(0xC1A1, 0xC8FE), (0x8F_C1A1, 0x8F_C8FE)],
        CodeShape::Quadruple => unreachable!("made by its own test"),
    };
    (0..0x80).for_each(|code| assert!(map.put(code, code)));
    ranges.iter().flat_map(|&(first, last)| first..=last).for_each(|code| assert!(map.put(code, 0x4E00)));
    codes.iter().for_each(|&(code, character)| assert!(map.put(code, character.into()), "{code:x}"));
    Charset::mapped("x", map.finish().unwrap())
}

#[test]
fn codes_of_all_lengths_decode() {
    let single = map(CodeShape::Single, &[(0x80, '€')]);
    assert_eq!(decoded(&single, b"a\x80").unwrap(), "a€");
    assert_eq!(decoded(&single, b"a\x81"), Err(ValueError::Unmapped));
    // Second bytes may be those of ASCII characters.
    let double = map(CodeShape::Double, &[(0xB1, 'ｱ'), (0x835C, 'ソ'), (0x8161, '‖')]);
    assert_eq!(decoded(&double, b"\x83\\\x81aa\xb1").unwrap(), "ソ‖aｱ");
    assert_eq!(decoded(&double, b"\x83"), Err(ValueError::Unmapped));
    assert_eq!(decoded(&double, b"\x83a"), Err(ValueError::Unmapped));
    let triple = map(CodeShape::Triple, &[(0x8EB1, 'ｱ'), (0xA4A2, 'あ'), (0x8F_A2C3, '¦')]);
    assert_eq!(decoded(&triple, b"\x8f\xa2\xc3\xa4\xa2\x8e\xb1").unwrap(), "¦あｱ");
    assert_eq!(decoded(&triple, b"\x8f\xa2"), Err(ValueError::Unmapped));
}

#[test]
fn codes_of_four_bytes_decode() {
    let mut map = CodeMap::new(CodeShape::Quadruple);
    let asked = CodeMap::asked(CodeShape::Quadruple);
    assert_eq!((asked.len(), asked[2]), (42, (0x8130_8100, 0x8130_FEFF)));
    let codes = asked.iter().flat_map(|&(first, last)| first..=last);
    let taken = codes.filter(|&code| map.put(code, if code < 0x80 { code } else { 0x4E00 })).count();
    assert_eq!(taken, 256 + 0x8000 + 50_400);
    map.single[0x81..].fill(NONE);
    map.double.fill(NONE);
    map.double[0xA1A1..0xB1A1].fill(0x4E01);
    assert!(map.put(0x8130_8130, 0x80));
    let charset = Charset::mapped("gb18030", map.finish().unwrap());
    assert_eq!(decoded(&charset, b"\x81\x30\x81\x30\x84\x31\xa4\x39").unwrap(), "\u{80}一");
    assert_eq!(decoded(&charset, b"\x90\x30\x81\x30").unwrap(), "\u{10000}");
    assert_eq!(decoded(&charset, b"\xe3\x32\x9a\x35").unwrap(), "\u{10ffff}");
    assert_eq!(decoded(&charset, b"\xe3\x32\x9a\x36"), Err(ValueError::Unmapped));
    assert_eq!(decoded(&charset, b"\x81\x30\x81"), Err(ValueError::Unmapped));
}

#[test]
fn what_the_server_puts_for_nothing_is_nothing() {
    let mut map = CodeMap::new(CodeShape::Single);
    assert!(map.put(0x3F, 0x3F));
    assert!(!map.put(0x81, 0x3F));
    assert!(!map.put(0x82, 0xD800));
    assert!(!map.put(0x8140, 0x3000), "a code of two bytes");
    assert!(map.finish().is_none(), "a map of one character");
}
