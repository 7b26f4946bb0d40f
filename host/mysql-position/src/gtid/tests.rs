//! Sets against a plain model: every operation on small random sets gives what sets of pairs give.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::reached::Reached;

type Model = BTreeSet<(u8, u64)>;

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

/// Two servers, each under a tag and under none.
fn source(number: u8) -> TransactionSource {
    let tag = if number.is_multiple_of(2) { "" } else { "tag" };
    TransactionSource { server: ServerUuid([number / 2; 16]), tag: Tag::parse(tag.as_bytes()).unwrap() }
}

fn random(rng: &mut StdRng) -> (GtidSet, Model) {
    let (mut set, mut model) = (GtidSet::default(), Model::new());
    for _ in 0..rng.random_range(0..24) {
        let (server, number) = (rng.random_range(1..5), rng.random_range(1..20));
        set.add(source(server), number);
        model.insert((server, number));
    }
    (set, model)
}

fn of(model: &Model) -> GtidSet {
    let mut set = GtidSet::default();
    for &(server, number) in model {
        set.add(source(server), number);
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
        for server in 1..5 {
            for number in 1..21 {
                assert_eq!(a.has(source(server), number), in_a.contains(&(server, number)));
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
    let tagged = GtidSet::parse(&format!("{A}:2:Red:5-6:3,{A}:_b1:1, {A}:red:4:blue:9")).unwrap();
    assert_eq!(tagged.to_string(), format!("{A}:2:_b1:1:blue:9:red:3-6"));
    let alone = format!("{A}:red:3-6");
    assert_eq!(GtidSet::parse(&alone).unwrap().to_string(), alone);
}

#[test]
fn what_is_no_set_is_refused() {
    for bad in ["x", "3e11fa47:1", &format!("{A}:0"), &format!("{A}:5-4"), &format!("{A}:1-"), &format!("{A}:-1")] {
        assert!(GtidSet::parse(bad).is_err(), "{bad}");
    }
    let long = "x".repeat(33);
    for tag in ["b-1", "b\u{e4}", &long] {
        assert_eq!(GtidSet::parse(&format!("{A}:{tag}:1-2")), Err(GtidError::Tag(tag.into())));
    }
    assert!(GtidSet::parse(&format!("{A}:9223372036854775807")).is_err(), "beyond the last number");
}

#[test]
fn sets_without_tags_are_written_as_all_servers_know_them() {
    let mut bytes = Vec::new();
    GtidSet::parse(&format!("{A}:1-5:8")).unwrap().encode(&mut bytes);
    let uuid = ServerUuid::parse(A).unwrap().0;
    let numbers: Vec<u8> = [2_u64, 1, 6, 8, 9].iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(bytes, [&1_u64.to_le_bytes()[..], &uuid, &numbers].concat());
}

#[test]
fn the_servers_bytes_of_a_set_with_tags_are_understood() {
    // PREVIOUS_GTIDS of MySQL 9.7.4.
    const HEX: &str = "0103000000000001\
        e9a4f65fecac11f1919302fc00000001\
        00010000000000000001000000000000000a00000000000000\
        e9a4f65fecac11f1919302fc00000001\
        40615f6c6f6e6765725f7461675f6f665f33325f6c6574746572735f3030303030\
        010000000000000001000000000000000300000000000000\
        e9a4f65fecac11f1919302fc00000001\
        08626c7565\
        010000000000000001000000000000000200000000000000";
    let bytes: Vec<u8> =
        (0..HEX.len()).step_by(2).map(|at| u8::from_str_radix(&HEX[at..at + 2], 16).unwrap()).collect();
    let set = GtidSet::decode(&bytes).unwrap();
    let text = "e9a4f65f-ecac-11f1-9193-02fc00000001:1-9:a_longer_tag_of_32_letters_00000:1-2:blue:1";
    assert_eq!(set.to_string(), text);
    let mut again = Vec::new();
    set.encode(&mut again);
    assert_eq!(again, bytes);
    for length in 0..bytes.len() {
        assert!(GtidSet::decode(&bytes[..length]).is_err());
    }
}
