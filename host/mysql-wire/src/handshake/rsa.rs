//! The password under the server's RSA key, for a login without TLS.

use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use crate::error::{ProtocolError, WireError};
use crate::packet::Reader;

/// Sizes of a modulus that are taken, in bytes: 1024 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=1024;
/// What OAEP with SHA-1 adds.
const PADDING_BYTES: usize = 2 * SHA1_OUTPUT_LEN + 2;
const TAG_SEQUENCE: u8 = 0x30;
const TAG_BIT_STRING: u8 = 0x03;
const TAG_INTEGER: u8 = 0x02;

/// Hides the password behind the nonce and encrypts it with the key that the server sent.
pub(super) fn encrypt_password(password: &str, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, WireError> {
    if nonce.is_empty() {
        return Err(ProtocolError::new("the server sent no nonce").into());
    }
    let key = SubjectPublicKeyInfoDer::from_pem_slice(key)
        .map_err(|_| ProtocolError::new("the server's public key is not in PEM form"))?;
    let (modulus, exponent) = read_key(key.as_ref())?;
    let hidden: Vec<u8> =
        password.bytes().chain([0]).zip(nonce.iter().cycle()).map(|(byte, nonce)| byte ^ nonce).collect();
    if hidden.len() + PADDING_BYTES > modulus.len() {
        let reason = "the password is too long for the server's public key".to_owned();
        return Err(WireError::Auth { reason, source: None });
    }
    let mut seed = [0; SHA1_OUTPUT_LEN];
    SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_| WireError::Auth { reason: "the system gives no random bytes".to_owned(), source: None })?;
    let block = BigUint::from_bytes_be(&pad(&hidden, seed, modulus.len()));
    let sealed = block.modpow(&BigUint::from_bytes_be(exponent), &BigUint::from_bytes_be(modulus)).to_bytes_be();
    Ok([vec![0; modulus.len() - sealed.len()], sealed].concat())
}

/// OAEP with SHA-1 and no label (RFC 8017, 7.1.1): a block of `block_bytes`, its first byte zero.
fn pad(message: &[u8], seed: [u8; SHA1_OUTPUT_LEN], block_bytes: usize) -> Vec<u8> {
    let zeros = block_bytes - PADDING_BYTES - message.len();
    let label = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[]);
    let data = [label.as_ref(), &vec![0; zeros], &[1], message].concat();
    let data = mask(&data, &seed);
    let seed = mask(&seed, &data);
    [vec![0], seed, data].concat()
}

/// `bytes` under the mask that grows out of `seed` (MGF1 with SHA-1).
fn mask(bytes: &[u8], seed: &[u8]) -> Vec<u8> {
    let block = |number: u32| digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &number.to_be_bytes()].concat());
    let mask = (0..).flat_map(|number| block(number).as_ref().to_vec());
    bytes.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// Modulus and exponent, checked so far that arithmetic with them is defined and short.
fn read_key(der: &[u8]) -> Result<(&[u8], &[u8]), ProtocolError> {
    let mut outer = Reader::new("the server's public key", der);
    let mut info = Reader::new("the server's public key", element(&mut outer, TAG_SEQUENCE)?);
    element(&mut info, TAG_SEQUENCE)?;
    let mut bits = Reader::new("the server's public key", element(&mut info, TAG_BIT_STRING)?);
    bits.skip(1)?;
    let mut key = Reader::new("the server's public key", element(&mut bits, TAG_SEQUENCE)?);
    let modulus = trim(element(&mut key, TAG_INTEGER)?);
    let exponent = trim(element(&mut key, TAG_INTEGER)?);
    // The highest bit set: only then do all parties count the modulus' bytes the same way.
    let whole =
        modulus.first().is_some_and(|byte| byte & 0x80 != 0) && modulus.last().is_some_and(|byte| byte & 1 == 1);
    if !whole || !MODULUS_BYTES.contains(&modulus.len()) || exponent.is_empty() || exponent.len() > 8 {
        return Err(ProtocolError::new("the server's public key is not an RSA key of 1024 to 8192 bits"));
    }
    Ok((modulus, exponent))
}

fn element<'a>(reader: &mut Reader<'a>, tag: u8) -> Result<&'a [u8], ProtocolError> {
    if reader.u8()? != tag {
        return Err(ProtocolError::new("the server's public key is not an RSA key"));
    }
    let length = match reader.u8()? {
        short @ 0..=0x7F => usize::from(short),
        0x81 => usize::from(reader.u8()?),
        0x82 => reader.array().map(u16::from_be_bytes).map(usize::from)?,
        _ => return Err(ProtocolError::new("the server's public key is too large")),
    };
    reader.take(length)
}

fn trim(integer: &[u8]) -> &[u8] {
    let zeros = integer.iter().take_while(|&&byte| byte == 0).count();
    integer.get(zeros..).unwrap_or_default()
}
