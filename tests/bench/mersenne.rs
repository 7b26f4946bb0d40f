//! The Mersenne Twister as Python's `random.Random` uses it, so that both generators give the same bytes.

const N: usize = 624;
const M: usize = 397;

/// MT19937, 32 bits.
pub(crate) struct Mersenne {
    state: [u32; N],
    next: usize,
}

impl Mersenne {
    /// As `random.Random(seed)` for a small positive integer (`init_by_array` with one word).
    pub(crate) fn seeded(seed: u32) -> Self {
        let mut mt = Self { state: [0; N], next: N };
        mt.fill(19_650_218);
        let (mut i, state) = (1, &mut mt.state);
        for _ in 0..N {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = (state[i] ^ previous.wrapping_mul(1_664_525)).wrapping_add(seed);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = (state[i] ^ previous.wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        mt
    }

    fn fill(&mut self, seed: u32) {
        self.state[0] = seed;
        for i in 1..N {
            let previous = self.state[i - 1] ^ (self.state[i - 1] >> 30);
            self.state[i] = previous.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `getrandbits(bits)` for 1 to 64 bits.
    pub(crate) fn bits(&mut self, bits: u32) -> u64 {
        if bits <= 32 {
            return u64::from(self.word() >> (32 - bits));
        }
        let low = u64::from(self.word());
        low | u64::from(self.word() >> (64 - bits)) << 32
    }

    /// `randbytes(length)`.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(length + 4);
        while out.len() < length {
            let left = length - out.len();
            let word = if left >= 4 { self.word() } else { self.word() >> (32 - 8 * left) };
            out.extend_from_slice(&word.to_le_bytes()[..left.min(4)]);
        }
        out
    }

    /// `randrange(bound)`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let bits = 64 - bound.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < bound {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mersenne;

    #[test]
    fn numbers_are_pythons() {
        let mut mt = Mersenne::seeded(1);
        assert_eq!(mt.bits(64), 0x91B7_584A_2265_B1F5);
        assert_eq!(mt.bytes(6), [223, 106, 241, 216, 97, 205]);
        assert_eq!((mt.below(10), mt.below(1000)), (1, 261));
    }
}
