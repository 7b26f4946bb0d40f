//! How far a stream has come: which transactions were handed on, told apart by GTID or by their place in a log.

use std::fmt;

use crate::domains::DomainGtids;
use crate::gtid::{GtidSet, SetOrder, TransactionSource};
use crate::position::BinlogPosition;

/// The transactions handed on.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    /// These, on whatever server.
    Gtids(GtidSet),
    /// All that end before this place in the log of one server, which has no GTIDs.
    Place(BinlogPosition),
    /// Of MariaDB: all up to the last one of each domain.
    Domains(DomainGtids),
}

/// What tells a transaction from all others of its log.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionName {
    /// Its GTID.
    Gtid(TransactionSource, u64),
    /// Where it begins.
    Begin(BinlogPosition),
    /// Domain, server and number, of MariaDB.
    Domain(u32, u32, u64),
}

impl Reached {
    /// Whether it holds a transaction.
    #[inline]
    pub fn has(&self, name: &TransactionName) -> bool {
        match (self, name) {
            (Self::Gtids(set), TransactionName::Gtid(source, number)) => set.has(*source, *number),
            (Self::Place(place), TransactionName::Begin(begin)) => begin < place,
            (Self::Domains(domains), TransactionName::Domain(domain, _, number)) => domains.has(*domain, *number),
            _ => false,
        }
    }

    /// Adds the transaction that has ended at a place.
    #[inline]
    pub fn add(&mut self, name: &TransactionName, end: &BinlogPosition) {
        match (self, name) {
            (Self::Gtids(set), TransactionName::Gtid(source, number)) => set.add(*source, *number),
            (Self::Domains(domains), TransactionName::Domain(domain, server, number)) => {
                domains.set(*domain, *server, *number);
            }
            (reached, _) => reached.moved(end),
        }
    }

    /// The stream stands between two transactions at a place.
    pub fn moved(&mut self, to: &BinlogPosition) {
        if let Self::Place(place) = self {
            place.clone_from(to);
        }
    }

    /// Whether it holds all that the other does; places of different servers must not meet here.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gtids(own), Self::Gtids(other)) => own.contains(other),
            (Self::Place(own), Self::Place(other)) => own >= other,
            (Self::Domains(own), Self::Domains(other)) => own.contains(other),
            _ => false,
        }
    }

    /// How the two relate.
    pub fn compare(&self, other: &Self) -> SetOrder {
        match (self.contains(other), other.contains(self)) {
            (true, true) => SetOrder::Equal,
            (true, false) => SetOrder::Contains,
            (false, true) => SetOrder::ContainedIn,
            (false, false) => SetOrder::Incomparable,
        }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gtids(set) => set.fmt(f),
            Self::Place(place) => place.fmt(f),
            Self::Domains(domains) => domains.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_hold_what_begins_before_them() {
        let at = |offset| BinlogPosition::new("binlog.000002", offset);
        let mut reached = Reached::Place(at(100));
        assert!(reached.has(&TransactionName::Begin(at(99))));
        assert!(!reached.has(&TransactionName::Begin(at(100))));
        assert!(!reached.has(&TransactionName::Gtid(TransactionSource::default(), 1)));
        let before = reached.clone();
        reached.add(&TransactionName::Begin(at(100)), &at(200));
        assert_eq!(reached.compare(&before), SetOrder::Contains);
        assert_eq!(before.compare(&Reached::Gtids(GtidSet::default())), SetOrder::Incomparable);
    }
}
