//! How an input is changed: few bytes, most of the time, since what is all wrong is refused at once.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::target::Input;

/// Numbers that lengths and counts trip over.
const ODD: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xfa, 0xfb, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0xffff_ffff_ffff_ffff];

pub(super) fn pick<'a>(seeds: &'a [Input], rng: &mut StdRng) -> Option<&'a Input> {
    seeds.choose(rng)
}

/// The input's bytes after one to five changes.
pub(super) fn mutated(input: &Input, seeds: &[Input], rng: &mut StdRng) -> Vec<u8> {
    let mut bytes = input.bytes.clone();
    for _ in 0..rng.random_range(1..=5) {
        change(&mut bytes, seeds, rng);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Input], rng: &mut StdRng) {
    let at = if bytes.is_empty() { 0 } else { rng.random_range(0..bytes.len()) };
    match rng.random_range(0..8) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.random_range(0..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.random();
            }
        }
        2 => {
            let number = ODD[rng.random_range(0..ODD.len())].to_le_bytes();
            let width = [1, 2, 3, 4, 8][rng.random_range(0..5)];
            bytes.iter_mut().skip(at).zip(&number[..width]).for_each(|(byte, odd)| *byte = *odd);
        }
        3 => bytes.truncate(at),
        4 => bytes.insert(at, rng.random()),
        5 => {
            bytes.drain(at..(at + rng.random_range(1..=8)).min(bytes.len()));
        }
        6 => {
            let end = (at + rng.random_range(1..=32)).min(bytes.len());
            let copy = bytes.get(at..end).unwrap_or_default().to_vec();
            bytes.splice(at..at, copy);
        }
        _ => {
            let Some(other) = pick(seeds, rng).map(|other| &other.bytes) else { return };
            let from = rng.random_range(0..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}
