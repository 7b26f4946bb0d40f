//! Names of objects in the checkpoint store: built and read here and nowhere else.
//!
//! `slots/N`: the chain; `committed/EPOCH`: notes that an epoch is committed at all sinks. Numbers have 20 digits, so
//! that byte order is number order.

use std::fmt;

use cdchost_model::Epoch;
use serde::{Deserialize, Serialize};

pub(crate) const SLOTS: &str = "slots";
pub(crate) const COMMITTED: &str = "committed";

/// A place in the chain. The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot(pub u64);

impl Slot {
    /// The place behind this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a chain has less than 2^64 slots"))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) fn slot(slot: Slot) -> String {
    format!("{SLOTS}/{:020}", slot.0)
}

pub(crate) fn committed(epoch: Epoch) -> String {
    format!("{COMMITTED}/{:020}", epoch.0)
}

pub(crate) fn parse_slot(name: &str) -> Option<Slot> {
    number(name, SLOTS).filter(|&n| n > 0).map(Slot)
}

pub(crate) fn parse_committed(name: &str) -> Option<Epoch> {
    number(name, COMMITTED).map(Epoch)
}

fn number(name: &str, folder: &str) -> Option<u64> {
    let digits = name.strip_prefix(folder)?.strip_prefix('/')?;
    if digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_built_and_nothing_else_is() {
        for n in [1, 42, u64::MAX] {
            assert_eq!(parse_slot(&slot(Slot(n))), Some(Slot(n)));
            assert_eq!(parse_committed(&committed(Epoch(n))), Some(Epoch(n)));
        }
        assert!(slot(Slot(9)) < slot(Slot(10)));
        for odd in
            ["slots/1", "slots/00000000000000000000", "slots/x", "slots/000000000000000000001", "committed/7", ""]
        {
            assert_eq!((parse_slot(odd), parse_committed(odd)), (None, None), "{odd}");
        }
    }
}
