//! Documents written by an encoder of their own, and what the server prints for them.

use super::*;

fn printed(document: &[u8]) -> Result<String, ValueError> {
    let mut out = Vec::new();
    print(document, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn double(value: f64) -> String {
    let mut out = Vec::new();
    print_double(value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn scalars_print() {
    assert_eq!(printed(b"").unwrap(), "null");
    assert_eq!(printed(&[4, 1]).unwrap(), "true");
    assert_eq!(printed(&[5, 0xff, 0xff]).unwrap(), "-1");
    assert_eq!(printed(&[6, 0xff, 0xff]).unwrap(), "65535");
    assert_eq!(printed(&[10, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap(), "18446744073709551615");
    assert_eq!(printed(b"\x0c\x09a\"\\\n\x01\xc3\xa4/\x7f").unwrap(), "\"a\\\"\\\\\\n\\u0001ä/\u{7f}\"");
}

#[test]
fn doubles_print_as_the_server_prints_them() {
    let rows = [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-12.34, "-12.34"),
        (0.1, "0.1"),
        (100_000_000_000_000.0, "100000000000000.0"),
        (999_999_999_999_999.0, "999999999999999.0"),
        (1e15, "1e15"),
        (1.5e300, "1.5e300"),
        (1e-14, "0.00000000000001"),
        (1.25e-15, "0.00000000000000125"),
        (1e-16, "1e-16"),
        (f64::MAX, "1.7976931348623157e308"),
        (5e-324, "5e-324"),
        // Powers of two: the decimal nearest to them among those of so few digits reads back as another double.
        (2f64.powi(89), "6.189700196426902e26"),
        (2f64.powi(-24), "0.00000005960464477539063"),
    ];
    for (value, text) in rows {
        assert_eq!(double(value), text, "{value:e}");
    }
    let exact = [
        // Sixteen digits and more behind them.
        ("1234567890123456.8", "1234567890123456.8"),
        ("-1298742223212956.5", "-1298742223212956.5"),
        ("4503599627370495.5", "4503599627370495.5"),
        ("1234567890123456.0", "1.234567890123456e15"),
        ("9007199254740993.0", "9.007199254740992e15"),
        ("12345678901234567.0", "1.2345678901234568e16"),
        // As near to one decimal as to the other.
        ("882516754398678.25", "882516754398678.2"),
        ("717794904914473.25", "717794904914473.2"),
        ("252937642190902.625", "252937642190902.62"),
        ("105848886947126.125", "105848886947126.12"),
        ("29087966494283.3125", "29087966494283.312"),
        ("-1494774092990004.75", "-1494774092990004.8"),
    ];
    for (value, text) in exact {
        assert_eq!(double(value.parse().unwrap()), text, "{value}");
    }
}

#[test]
fn containers_print() {
    // {"a": [1, null], "b": "x"}
    let array = [2, 0, 10, 0, 5, 1, 0, 4, 0, 0];
    let mut object = vec![2, 0, 34, 0, 18, 0, 1, 0, 19, 0, 1, 0, 2, 20, 0, 12, 30, 0];
    object.extend_from_slice(b"ab");
    object.extend_from_slice(&array);
    object.extend_from_slice(b"\x01x\0\0");
    object.insert(0, 0);
    assert_eq!(printed(&object).unwrap(), r#"{"a": [1, null], "b": "x"}"#);
}

#[test]
fn opaque_values_print() {
    let packed = ((2015i64 * 13 + 1) << 22 | 15 << 17 | 23 << 12 | 24 << 6 | 25) << 24 | 120;
    let opaque = |kind: u8, value: &[u8]| {
        let mut document = vec![15, kind, value.len() as u8];
        document.extend_from_slice(value);
        printed(&document).unwrap()
    };
    assert_eq!(opaque(12, &packed.to_le_bytes()), "\"2015-01-15 23:24:25.000120\"");
    assert_eq!(opaque(10, &(((2015i64 * 13 + 1) << 22 | 15 << 17) << 24).to_le_bytes()), "\"2015-01-15\"");
    assert_eq!(opaque(11, &(-(((25i64 << 12) | 7) << 24)).to_le_bytes()), "\"-25:00:07.000000\"");
    assert_eq!(opaque(246, &[4, 2, 0x8c, 0x22]), "12.34");
    // The server says 66 digits of a DECIMAL(65,30): it counts the whole ones by nine.
    let mut widest = vec![0x42, 0x1e, 0x7a, 0x0a, 0x1f, 0x00];
    widest.extend([0xc4, 0x65, 0x36, 0x00].repeat(5));
    widest.extend([0xc4, 0x65, 0x36, 0x00, 0xfc, 0x18]);
    let digits = format!("-{}.{}", "9".repeat(35), "9".repeat(30));
    assert_eq!(opaque(246, &widest), digits);
    assert_eq!(opaque(253, b"abc"), "\"base64:type253:YWJj\"");
    let two_lines = format!("\"base64:type253:{}\\n{}\"", "eHh4".repeat(19), "eHh4".repeat(6));
    assert_eq!(opaque(253, &[b'x'; 75]), two_lines);
}

#[test]
fn broken_documents_are_refused() {
    let infinite = [&[11], &f64::INFINITY.to_le_bytes()[..]].concat();
    for bad in [
        &infinite,
        &[0u8, 1, 0][..],
        &[0, 255, 255, 4, 0],
        &[3, 1, 0, 0, 0, 8, 0, 0, 0],
        &[12, 200],
        &[99],
        &[11, 0],
        &[4, 9],
    ] {
        assert!(printed(bad).is_err(), "{bad:?}");
    }
    // An array whose two parts are the array itself: without a limit 2^100 parts.
    let circle = [2u8, 2, 0, 10, 0, 2, 0, 0, 2, 0, 0];
    assert!(printed(&circle).is_err());
}
