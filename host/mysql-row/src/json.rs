//! A JSON document as the log holds it, printed as the server prints it.

use std::io::Write as _;

use cdchost_mysql_wire::column_type;

use crate::column::{ValueError, decimal, temporal};
pub(crate) use changed::print_changed;

mod changed;
mod path;

/// Nesting that the server allows.
const DEPTH_MAX: usize = 100;
/// A text is never longer than this many times its binary form: one control character becomes `\u001f`, a number in
/// three bytes and its separator eight. More means offsets that lead in circles.
const GROWTH_MAX: usize = 16;

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

const BAD: ValueError = ValueError::Malformed("JSON document");

/// Appends the text of a document.
pub(crate) fn print(document: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let Some((&kind, value)) = document.split_first() else {
        // What the server stores where a NOT NULL column got no value.
        out.extend_from_slice(b"null");
        return Ok(());
    };
    let end_max = out.len() + document.len() * GROWTH_MAX + 64;
    Printer { out, end_max }.value(kind, value, 0)
}

struct Printer<'a> {
    out: &'a mut Vec<u8>,
    end_max: usize,
}

/// An object's or array's header and where its parts lie.
struct Container<'a> {
    bytes: &'a [u8],
    large: bool,
    count: usize,
    /// Where the entries of its parts begin.
    entries: usize,
}

impl<'a> Container<'a> {
    fn object(bytes: &'a [u8], large: bool) -> Result<Self, ValueError> {
        let mut object = Self::new(bytes, large, if large { 6 } else { 4 })?;
        object.entries += object.count * (object.width() + 2);
        Ok(object)
    }

    fn array(bytes: &'a [u8], large: bool) -> Result<Self, ValueError> {
        Self::new(bytes, large, 0)
    }

    fn new(bytes: &'a [u8], large: bool, key_bytes: usize) -> Result<Self, ValueError> {
        let mut container = Self { bytes, large, count: 0, entries: 0 };
        container.count = container.number(0)?;
        let size = container.number(container.width())?;
        container.bytes = bytes.get(..size).ok_or(BAD)?;
        let entry = key_bytes + 1 + container.width();
        let header = container.count.checked_mul(entry).and_then(|entries| entries.checked_add(2 * container.width()));
        if header.is_none_or(|header| header > size) {
            return Err(BAD);
        }
        container.entries = 2 * container.width();
        Ok(container)
    }

    /// Bytes of a count or an offset.
    fn width(&self) -> usize {
        if self.large { 4 } else { 2 }
    }

    fn number(&self, at: usize) -> Result<usize, ValueError> {
        let bytes = self.bytes.get(at..).ok_or(BAD)?;
        if self.large {
            let bytes = bytes.first_chunk::<4>().ok_or(BAD)?;
            Ok(u32::from_le_bytes(*bytes) as usize)
        } else {
            let bytes = bytes.first_chunk::<2>().ok_or(BAD)?;
            Ok(usize::from(u16::from_le_bytes(*bytes)))
        }
    }

    fn key(&self, index: usize) -> Result<&'a [u8], ValueError> {
        let at = 2 * self.width() + index * (self.width() + 2);
        let start = self.number(at)?;
        let length = self.bytes.get(at + self.width()..).and_then(<[u8]>::first_chunk::<2>).ok_or(BAD)?;
        let end = start + usize::from(u16::from_le_bytes(*length));
        self.bytes.get(start..end).ok_or(BAD)
    }

    /// A part's type and bytes; small values lie in the entry itself.
    fn part(&self, index: usize) -> Result<(u8, &'a [u8]), ValueError> {
        let at = self.entries + index * (1 + self.width());
        let kind = *self.bytes.get(at).ok_or(BAD)?;
        let inlined = matches!(kind, LITERAL | INT16 | UINT16) || (self.large && matches!(kind, INT32 | UINT32));
        let start = if inlined { at + 1 } else { self.number(at + 1)? };
        Ok((kind, self.bytes.get(start..).ok_or(BAD)?))
    }
}

impl Printer<'_> {
    fn value(&mut self, kind: u8, bytes: &[u8], depth: usize) -> Result<(), ValueError> {
        if depth > DEPTH_MAX || self.out.len() > self.end_max {
            return Err(BAD);
        }
        match kind {
            SMALL_OBJECT | LARGE_OBJECT => self.object(bytes, kind == LARGE_OBJECT, depth),
            SMALL_ARRAY | LARGE_ARRAY => self.array(bytes, kind == LARGE_ARRAY, depth),
            LITERAL => {
                let text: &[u8] = match bytes.first() {
                    Some(0) => b"null",
                    Some(1) => b"true",
                    Some(2) => b"false",
                    _ => return Err(BAD),
                };
                self.out.extend_from_slice(text);
                Ok(())
            }
            INT16 => self.number(i16::from_le_bytes(fixed(bytes)?)),
            UINT16 => self.number(u16::from_le_bytes(fixed(bytes)?)),
            INT32 => self.number(i32::from_le_bytes(fixed(bytes)?)),
            UINT32 => self.number(u32::from_le_bytes(fixed(bytes)?)),
            INT64 => self.number(i64::from_le_bytes(fixed(bytes)?)),
            UINT64 => self.number(u64::from_le_bytes(fixed(bytes)?)),
            DOUBLE => {
                let value = f64::from_le_bytes(fixed(bytes)?);
                print_double(Some(value).filter(|value| value.is_finite()).ok_or(BAD)?, self.out);
                Ok(())
            }
            STRING => {
                self.quoted(counted(bytes)?);
                Ok(())
            }
            OPAQUE => self.opaque(bytes),
            _ => Err(BAD),
        }
    }

    fn object(&mut self, bytes: &[u8], large: bool, depth: usize) -> Result<(), ValueError> {
        let object = Container::object(bytes, large)?;
        self.out.push(b'{');
        for index in 0..object.count {
            self.separate(index);
            self.quoted(object.key(index)?);
            self.out.extend_from_slice(b": ");
            let (kind, part) = object.part(index)?;
            self.value(kind, part, depth + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn array(&mut self, bytes: &[u8], large: bool, depth: usize) -> Result<(), ValueError> {
        let array = Container::array(bytes, large)?;
        self.out.push(b'[');
        for index in 0..array.count {
            self.separate(index);
            let (kind, part) = array.part(index)?;
            self.value(kind, part, depth + 1)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.extend_from_slice(b", ");
        }
    }

    fn number(&mut self, number: impl std::fmt::Display) -> Result<(), ValueError> {
        write!(self.out, "{number}").expect("writing to memory does not fail");
        Ok(())
    }

    fn quoted(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut plain = 0;
        for (at, &byte) in text.iter().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.extend_from_slice(&text[plain..at]);
            plain = at + 1;
            match byte {
                b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
                0x08 => self.out.extend_from_slice(b"\\b"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                0x0c => self.out.extend_from_slice(b"\\f"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                other => write!(self.out, "\\u{other:04x}").expect("writing to memory does not fail"),
            }
        }
        self.out.extend_from_slice(&text[plain..]);
        self.out.push(b'"');
    }

    fn opaque(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        let (&kind, rest) = bytes.split_first().ok_or(BAD)?;
        let value = counted(rest)?;
        match kind {
            column_type::NEWDECIMAL => {
                let (&[precision, scale], packed) = value.split_first_chunk::<2>().ok_or(BAD)?;
                decimal::print(packed, precision, scale, self.out)
            }
            column_type::DATE | column_type::DATETIME | column_type::TIMESTAMP | column_type::TIME => {
                let packed = i64::from_le_bytes(value.try_into().map_err(|_| BAD)?);
                self.moment(kind, packed);
                Ok(())
            }
            _ => {
                write!(self.out, "\"base64:type{kind}:").expect("writing to memory does not fail");
                print_base64(value, self.out);
                self.out.push(b'"');
                Ok(())
            }
        }
    }

    /// A date or time, packed with 24 bits of microseconds.
    fn moment(&mut self, kind: u8, packed: i64) {
        let magnitude = packed.unsigned_abs();
        let (whole, micro) = (magnitude >> 24, (magnitude & 0xff_ffff) as u32); // 24 bits
        let written = if kind == column_type::TIME {
            let clock = temporal::time_fields(whole, micro);
            let sign = if packed < 0 { "-" } else { "" };
            write!(self.out, "\"{sign}{:02}:{:02}:{:02}.{micro:06}\"", clock.hour, clock.minute, clock.second)
        } else {
            let (day, clock) = temporal::datetime_fields(whole, micro);
            let date = format_args!("{:04}-{:02}-{:02}", day.year, day.month, day.day).to_string();
            if kind == column_type::DATE {
                write!(self.out, "\"{date}\"")
            } else {
                write!(self.out, "\"{date} {:02}:{:02}:{:02}.{micro:06}\"", clock.hour, clock.minute, clock.second)
            }
        };
        written.expect("writing to memory does not fail");
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.first_chunk::<N>().copied().ok_or(BAD)
}

/// Bytes behind their length: seven bits a byte, the lowest first, the high bit says that more follow.
fn counted(bytes: &[u8]) -> Result<&[u8], ValueError> {
    let mut length = 0usize;
    for (place, &byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return bytes.get(place + 1..).and_then(|rest| rest.get(..length)).ok_or(BAD);
        }
    }
    Err(BAD)
}

/// The most digits that a double always keeps: no two decimals of so few share one.
const DIGITS_KEPT: usize = 15;

/// A finite double as the server prints it in JSON: the fewest digits that read back the same; plain between 1e-15 and
/// 1e15, and above where digits are left for behind the point, with an exponent beyond; a whole number keeps `.0`.
fn print_double(value: f64, out: &mut Vec<u8>) {
    let mut text = [0u8; 32];
    let mut shown = scientific(format_args!("{value:e}"), &mut text);
    let count = shown.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    let mut even = [0u8; 32];
    if count > DIGITS_KEPT {
        // Two decimals may be as short and as near: the server takes the one with the even last digit, which is what
        // rounding to so many digits gives. Beside a power of two the rounded one may read back as another double.
        let rounded = scientific(format_args!("{value:.*e}", count - 1), &mut even);
        if rounded.parse() == Ok(value) {
            shown = rounded;
        }
    }
    let (mantissa, exponent) = shown.split_once('e').expect("a number in scientific form has an exponent");
    let exponent = exponent.parse().expect("an exponent of a double is a small number");
    let mut digits = [0u8; 24];
    let mut count = 0;
    for byte in mantissa.bytes().filter(u8::is_ascii_digit).take(digits.len()) {
        digits[count] = byte;
        count += 1;
    }
    if mantissa.starts_with('-') {
        out.push(b'-');
    }
    place_point(&digits[..count], exponent, out);
}

fn scientific<'a>(number: std::fmt::Arguments<'_>, text: &'a mut [u8; 32]) -> &'a str {
    let mut rest = &mut text[..];
    rest.write_fmt(number).expect("a double in scientific form has at most 24 bytes");
    let unused = rest.len();
    std::str::from_utf8(&text[..32 - unused]).expect("a number is plain text")
}

/// Digits with their first one worth `10^exponent`.
fn place_point(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    let point = exponent + 1;
    let has_fraction = usize::try_from(point).is_ok_and(|point| point < digits.len());
    if (-14..=15).contains(&point) || has_fraction {
        if point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
            out.extend_from_slice(digits);
        } else {
            let point = point.unsigned_abs() as usize; // 16 at most
            let (whole, fraction) = digits.split_at(digits.len().min(point));
            out.extend_from_slice(whole);
            out.extend(std::iter::repeat_n(b'0', point - whole.len()));
            out.push(b'.');
            out.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
        }
        return;
    }
    let (first, fraction) = digits.split_at(1);
    out.extend_from_slice(first);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    write!(out, "e{exponent}").expect("writing to memory does not fail");
}

/// Base64 in lines of 76 characters, as the server has it; inside of a string a line's end is escaped.
fn print_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (place, chunk) in bytes.chunks(3).enumerate() {
        if place > 0 && place % 19 == 0 {
            out.extend_from_slice(b"\\n");
        }
        let word = chunk.iter().fold(0usize, |word, &byte| word << 8 | usize::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let shift = 18 - 6 * digit;
            out.push(if digit <= chunk.len() { ALPHABET[(word >> shift) & 63] } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests;
