//! A server's map of a character set: from a code of one to four bytes to its character.

use super::push;
use crate::column::ValueError;

/// What a set's codes look like, and so which of them the server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeShape {
    /// One byte each.
    Single,
    /// One byte or two.
    Double,
    /// One byte or two, or three that begin with 0x8F.
    Triple,
    /// One byte, two or four (GB 18030).
    Quadruple,
}

/// No character.
pub(super) const NONE: u32 = u32::MAX;
/// First byte of codes of three bytes.
const LEAD_OF_THREE: u8 = 0x8F;
/// The four bytes are digits of a number: 126 or 10 values each, from these on.
const FOUR_FIRST: [u8; 4] = [0x81, 0x30, 0x81, 0x30];
const FOUR_RADIX: [u32; 4] = [126, 10, 126, 10];
/// Codes of four bytes that the server is asked for: up to 0x8439FE39. Above 0x90308130 they count from U+10000 on.
const FOUR_ASKED: u32 = 4 * 12_600;
const FOUR_PLANES: u32 = 15 * 12_600;

/// The characters of a set's codes.
#[derive(Debug)]
pub struct CodeMap {
    shape: CodeShape,
    /// One byte.
    pub(super) single: Vec<u32>,
    /// Two bytes, by the number that they are.
    pub(super) double: Vec<u32>,
    /// Two bytes behind [`LEAD_OF_THREE`].
    triple: Vec<u32>,
    /// Four bytes, by [`four_index`].
    quadruple: Vec<u32>,
    /// The lower half is ASCII.
    extends_ascii: bool,
}

impl CodeMap {
    /// An empty map.
    pub fn new(shape: CodeShape) -> Self {
        let room = |is_there: bool, length: usize| if is_there { vec![NONE; length] } else { Vec::new() };
        Self {
            shape,
            single: vec![NONE; 1 << 8],
            double: room(shape != CodeShape::Single, 1 << 16),
            triple: room(shape == CodeShape::Triple, 1 << 16),
            quadruple: room(shape == CodeShape::Quadruple, FOUR_ASKED as usize),
            extends_ascii: false,
        }
    }

    /// Numbers of the codes that the server is to be asked for, as ranges. A number's bytes, the highest first and
    /// without leading zeros, are the code.
    pub fn asked(shape: CodeShape) -> Vec<(u32, u32)> {
        let single = (0, 0xFF);
        let double = (0x8000, 0xFFFF);
        match shape {
            CodeShape::Single => vec![single],
            CodeShape::Double => vec![single, double],
            CodeShape::Triple => vec![single, double, (0x8F_8000, 0x8F_FFFF)],
            // The third byte and what is above it, each with all values of those below.
            CodeShape::Quadruple => {
                let lead = |first: u32, second: u32| (first << 8 | second) << 16;
                let four = (0x81..=0x84).flat_map(|first| (0x30..=0x39).map(move |second| lead(first, second)));
                let four = four.map(|lead| (lead | 0x8100, lead | 0xFEFF));
                [single, double].into_iter().chain(four).collect()
            }
        }
    }

    /// Takes what the server says that a code is. Codes of another shape are passed over, and so is `?`, which it gives
    /// for what has no character; false if so.
    pub fn put(&mut self, code: u32, character: u32) -> bool {
        let question = u32::from(b'?');
        if char::from_u32(character).is_none() || (character == question && code != question) {
            return false;
        }
        let [first, second, third, fourth] = code.to_be_bytes();
        let place = match (first, second) {
            (0, 0) if code <= 0xFF => self.single.get_mut(code as usize),
            (0, 0) => self.double.get_mut(code as usize),
            (0, LEAD_OF_THREE) => self.triple.get_mut(usize::from(u16::from_be_bytes([third, fourth]))),
            _ => four_index([first, second, third, fourth]).and_then(|index| self.quadruple.get_mut(index as usize)),
        };
        place.map(|place| *place = character).is_some()
    }

    /// To be called when all was put: whether the map can be one of this shape.
    pub fn finish(mut self) -> Option<Self> {
        self.extends_ascii = (0u32..).zip(&self.single[..0x80]).all(|(code, &character)| code == character);
        let known = |codes: &[u32]| codes.iter().filter(|&&character| character != NONE).count();
        // The smallest set has 7 bits; the two-byte ones have thousands of characters.
        let is_whole = known(&self.single) >= 0x60
            && (self.double.is_empty() || known(&self.double) > 1_000)
            && (self.triple.is_empty() || known(&self.triple) > 1_000)
            && (self.quadruple.is_empty() || known(&self.quadruple) > 30_000);
        is_whole.then_some(self)
    }

    /// Whether it has characters above U+FFFF.
    pub(super) fn is_wide(&self) -> bool {
        self.shape == CodeShape::Quadruple
    }

    pub(super) fn decode(&self, mut text: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        if self.extends_ascii && text.is_ascii() {
            out.extend_from_slice(text);
            return Ok(());
        }
        while let Some(&first) = text.first() {
            let (character, length) = self.next(first, text).ok_or(ValueError::Unmapped)?;
            push(character, out)?;
            text = text.get(length..).ok_or(ValueError::Unmapped)?;
        }
        Ok(())
    }

    /// The character at the front of a text, and its length in bytes. A code of fewer bytes goes before a longer one:
    /// no first byte of a longer code is a character by itself.
    #[inline]
    fn next(&self, first: u8, text: &[u8]) -> Option<(u32, usize)> {
        let found = |codes: &[u32], index: usize| codes.get(index).copied().filter(|&character| character != NONE);
        if let Some(character) = found(&self.single, first.into()) {
            return Some((character, 1));
        }
        if self.shape == CodeShape::Single {
            return None;
        }
        let &[_, second] = text.first_chunk::<2>()?;
        if let Some(character) = found(&self.double, u16::from_be_bytes([first, second]).into()) {
            return Some((character, 2));
        }
        match self.shape {
            CodeShape::Triple if first == LEAD_OF_THREE => {
                let &[_, second, third] = text.first_chunk::<3>()?;
                Some((found(&self.triple, u16::from_be_bytes([second, third]).into())?, 3))
            }
            CodeShape::Quadruple => {
                let index = four_index(*text.first_chunk::<4>()?)?;
                let character = match index.checked_sub(FOUR_PLANES) {
                    Some(beyond) => 0x1_0000 + beyond,
                    None => found(&self.quadruple, index as usize)?,
                };
                Some((character, 4))
            }
            _ => None,
        }
    }
}

/// Place of a code of four bytes among all of them; none where it is no such code.
fn four_index(code: [u8; 4]) -> Option<u32> {
    code.iter().zip(FOUR_FIRST).zip(FOUR_RADIX).try_fold(0u32, |index, ((&byte, first), radix)| {
        let digit = u32::from(byte.checked_sub(first)?);
        (digit < radix).then_some(index * radix + digit)
    })
}
