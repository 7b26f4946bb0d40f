//! Sets against a plain model: every operation on small random sets gives what sets of pairs give.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::reached::Reached;

type Model = BTreeSet<(u8, u64)>;

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn uuid(server: u8) -> ServerUuid {
    ServerUuid([server; 16])
}

fn random(rng: &mut StdRng) -> (GtidSet, Model) {
    let (mut set, mut model) = (GtidSet::default(), Model::new());
    for _ in 0..rng.random_range(0..24) {
        let (server, number) = (rng.random_range(1..4), rng.random_range(1..20));
        set.add(uuid(server), number);
        model.insert((server, number));
    }
    (set, model)
}

fn of(model: &Model) -> GtidSet {
    let mut set = GtidSet::default();
    for &(server, number) in model {
        set.add(uuid(server), number);
    }
    set
}

#[test]
fn operations_agree_with_plain_sets() {
    let mut rng = StdRng::seed_from_u64(7);
    for _ in 0..5_000 {
        let ((a, in_a), (b, in_b)) = (random(&mut rng), random(&mut rng));
        assert_eq!(a, of(&in_a), "one form for one set");
        assert_eq!(a.subtract(&b), of(&(&in_a - &in_b)));
        assert_eq!(a.contains(&b), in_a.is_superset(&in_b));
        let order = match (in_a.is_superset(&in_b), in_b.is_superset(&in_a)) {
            (true, true) => SetOrder::Equal,
            (true, false) => SetOrder::Contains,
            (false, true) => SetOrder::ContainedIn,
            (false, false) => SetOrder::Incomparable,
        };
        assert_eq!(Reached::Gtids(a.clone()).compare(&Reached::Gtids(b.clone())), order);
        assert_eq!(a.is_empty(), in_a.is_empty());
        for server in 1..4 {
            for number in 1..21 {
                assert_eq!(a.has(uuid(server), number), in_a.contains(&(server, number)));
            }
        }
    }
}

#[test]
fn text_and_bytes_come_back() {
    let mut rng = StdRng::seed_from_u64(8);
    for _ in 0..1_000 {
        let (set, _) = random(&mut rng);
        assert_eq!(GtidSet::parse(&set.to_string()), Ok(set.clone()));
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        assert_eq!(GtidSet::decode(&bytes), Ok(set));
    }
}

#[test]
fn damaged_bytes_are_refused_or_mean_a_set() {
    let mut rng = StdRng::seed_from_u64(9);
    for _ in 0..5_000 {
        let mut bytes = Vec::new();
        random(&mut rng).0.encode(&mut bytes);
        let place = rng.random_range(0..bytes.len());
        if rng.random() {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 1 << rng.random_range(0..8);
        }
        if let Ok(set) = GtidSet::decode(&bytes) {
            assert_eq!(GtidSet::parse(&set.to_string()), Ok(set));
        }
    }
}

#[test]
fn the_servers_text_is_understood() {
    let set = GtidSet::parse(&format!("{}:1-3:11:47-49,\n{A}:4, {A}:50", A.to_uppercase())).unwrap();
    assert_eq!(set.to_string(), format!("{A}:1-4:11:47-50"));
    assert_eq!(GtidSet::parse(" \n"), Ok(GtidSet::default()));
}

#[test]
fn what_is_no_set_is_refused() {
    for bad in ["x", "3e11fa47:1", &format!("{A}:0"), &format!("{A}:5-4"), &format!("{A}:1-"), &format!("{A}:-1")] {
        assert!(GtidSet::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(GtidSet::parse(&format!("{A}:blue:1-2")), Err(GtidError::Tag("blue".into())));
    assert!(GtidSet::parse(&format!("{A}:9223372036854775807")).is_err(), "beyond the last number");
}
