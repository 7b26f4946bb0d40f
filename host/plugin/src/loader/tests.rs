use super::sections::custom;

/// A component's first eight bytes, then sections.
fn component(sections: &[u8]) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    bytes.extend_from_slice(sections);
    bytes
}

#[test]
fn the_last_section_of_a_name_counts() {
    let bytes = component(b"\x00\x04\x02abX\x01\x02zz\x00\x03\x01ab\x00\x04\x02abY");
    assert_eq!(custom(&bytes, "ab"), Some(&b"Y"[..]));
    assert_eq!(custom(&bytes, "a"), Some(&b"b"[..]));
    assert_eq!(custom(&bytes, "zz"), None);
}

#[test]
fn sections_that_reach_beyond_the_end_are_none() {
    for cut in [&b"\x00"[..], b"\x00\x7f\x02ab", b"\x00\xff\xff\xff\xff\xff\x01", b"\x00\x02\x09a", b"\x00\x80"] {
        assert_eq!(custom(&component(cut), "ab"), None, "{cut:?}");
    }
    assert_eq!(custom(b"\0asm", "ab"), None);
}
