//! MariaDB's GTIDs: the last transaction of each domain stands for all before it.

use std::collections::BTreeMap;
use std::fmt;

/// The last transaction of each domain: the server that first ran it, and its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainGtids {
    last: BTreeMap<u32, (u32, u64)>,
}

impl DomainGtids {
    /// Parses the server's text: `0-1-5,1-7-9`; none if it is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut domains = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut numbers = part.split('-');
            let (domain, server, number) = (numbers.next()?, numbers.next()?, numbers.next()?);
            domains.last.insert(domain.parse().ok()?, (server.parse().ok()?, number.parse().ok()?));
            if numbers.next().is_some() {
                return None;
            }
        }
        Some(domains)
    }

    /// A domain's last transaction is this one.
    pub fn set(&mut self, domain: u32, server: u32, number: u64) {
        self.last.insert(domain, (server, number));
    }

    /// Whether it holds a transaction: numbers grow within a domain.
    pub fn has(&self, domain: u32, number: u64) -> bool {
        self.last.get(&domain).is_some_and(|(_, last)| *last >= number)
    }

    /// Whether it holds all that the other does, as far as numbers tell.
    pub fn contains(&self, other: &Self) -> bool {
        other.last.iter().all(|(&domain, &(_, number))| self.has(domain, number))
    }

    /// Whether it has transactions of all domains of which the other has some.
    pub fn knows_domains_of(&self, other: &Self) -> bool {
        other.last.keys().all(|domain| self.last.contains_key(domain))
    }

    /// As bytes: count, then domain, server and number of each, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.last.len()).expect("domains are numbered by 32 bits");
        out.extend_from_slice(&count.to_le_bytes());
        for (domain, (server, number)) in &self.last {
            out.extend_from_slice(&domain.to_le_bytes());
            out.extend_from_slice(&server.to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads what [`DomainGtids::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let mut domains = Self::default();
        for _ in 0..u32::from_le_bytes(*count) {
            let (domain, after) = rest.split_first_chunk::<4>()?;
            let (server, after) = after.split_first_chunk::<4>()?;
            let (number, after) = after.split_first_chunk::<8>()?;
            domains.set(u32::from_le_bytes(*domain), u32::from_le_bytes(*server), u64::from_le_bytes(*number));
            rest = after;
        }
        rest.is_empty().then_some(domains)
    }
}

impl fmt::Display for DomainGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (domain, (server, number))) in self.last.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{domain}-{server}-{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes_come_back() {
        for text in ["", "0-1-5", "0-1-5,7-4294967295-18446744073709551615"] {
            let domains = DomainGtids::parse(text).unwrap();
            assert_eq!(domains.to_string(), text);
            let mut bytes = Vec::new();
            domains.encode(&mut bytes);
            assert_eq!(DomainGtids::decode(&bytes), Some(domains));
            for length in 0..bytes.len() {
                assert_eq!(DomainGtids::decode(&bytes[..length]), None);
            }
            bytes.push(0);
            assert_eq!(DomainGtids::decode(&bytes), None);
        }
        for text in ["0", "0-1", "0-1-2-3", "a-1-2", "0-1--2", "4294967296-1-1"] {
            assert_eq!(DomainGtids::parse(text), None, "{text}");
        }
        assert_eq!(DomainGtids::decode(&[0xff; 4]), None);
    }

    #[test]
    fn domains_run_apart() {
        let of = |text| DomainGtids::parse(text).unwrap();
        assert!(of("0-1-5,1-1-9").contains(&of("0-2-5")));
        assert!(!of("0-1-5").contains(&of("1-1-1")));
        assert!(!of("0-1-5,1-1-1").contains(&of("0-1-4,1-1-2")));
        assert!(of("0-1-5,1-1-1").knows_domains_of(&of("0-1-9")) && !of("0-1-5").knows_domains_of(&of("1-1-1")));
        assert!(of("0-1-5").has(0, 5) && !of("0-1-5").has(0, 6));
    }
}
