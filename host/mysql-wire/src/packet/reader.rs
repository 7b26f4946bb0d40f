//! A checked walk over bytes: every read says what ended too early, none can panic.

use crate::error::ProtocolError;

/// The bytes not yet read, and what they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(ProtocolError::short(self.what)),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(ProtocolError::short(self.what)),
        }
    }

    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), ProtocolError> {
        self.take(count).map(|_| ())
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, ProtocolError> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u48(&mut self) -> Result<u64, ProtocolError> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    #[inline]
    pub(crate) fn u56(&mut self) -> Result<u64, ProtocolError> {
        let [a, b, c, d, e, f, g] = self.array()?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, ProtocolError> {
        match self.u8()? {
            byte @ 0..=0xFA => Ok(byte.into()),
            0xFC => self.u16().map(u64::from),
            0xFD => self.array().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xFE => self.u64(),
            0xFB | 0xFF => Err(ProtocolError::new(format!("{} has a bad length", self.what))),
        }
    }

    /// A length-encoded number that counts or measures something in memory.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize, ProtocolError> {
        usize::try_from(self.number()?).map_err(|_| ProtocolError::short(self.what))
    }

    /// Bytes behind their length.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a [u8], ProtocolError> {
        let length = self.length()?;
        self.take(length)
    }

    /// Text behind its length.
    pub(crate) fn text(&mut self) -> Result<&'a str, ProtocolError> {
        let bytes = self.string()?;
        std::str::from_utf8(bytes).map_err(|_| ProtocolError::new(format!("{} is not UTF-8", self.what)))
    }

    /// Bytes up to a zero, which is skipped.
    pub(crate) fn until_zero(&mut self) -> Result<&'a [u8], ProtocolError> {
        let at = self.rest.iter().position(|&byte| byte == 0).ok_or_else(|| ProtocolError::short(self.what))?;
        let text = self.take(at)?;
        self.skip(1)?;
        Ok(text)
    }
}

/// Appends a length-encoded number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        0x100_0000..=u64::MAX => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends bytes behind their length.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
