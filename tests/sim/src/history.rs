//! What happens at the source, and what of it a target must show.

use std::collections::BTreeMap;

use cdchost_model::Op;

/// A small generator of numbers (splitmix64): the same seed gives the same run.
#[derive(Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// True `per_mille` times of a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// One row change of one table.
#[derive(Clone, Debug)]
pub struct Change {
    pub table: usize,
    /// Place among all changes; its change-seqs are twice that and the number behind.
    pub number: i64,
    pub before: Option<(i64, i64)>,
    pub after: Option<(i64, i64)>,
}

/// A row as a target shows it: table, change-seq, op, id, value.
pub type Shown = (usize, i64, u8, i64, i64);

impl Change {
    /// The rows that the source hands on.
    pub fn rows(&self) -> Vec<(i64, Op, i64, i64)> {
        let seq = self.number * 2;
        match (self.before, self.after) {
            (None, Some((id, value))) => vec![(seq, Op::Insert, id, value)],
            (Some((id, value)), None) => vec![(seq, Op::Delete, id, value)],
            (Some(old), Some(new)) => {
                vec![(seq, Op::UpdateBefore, old.0, old.1), (seq, Op::UpdateAfter, new.0, new.1)]
            }
            (None, None) => vec![],
        }
    }

    /// The rows that a target must show for it.
    pub fn shown(&self, wants_update_before: bool) -> Vec<Shown> {
        let moved = matches!((self.before, self.after), (Some(old), Some(new)) if old.0 != new.0);
        let mut rows = Vec::new();
        for (seq, op, id, value) in self.rows() {
            let (seq, op) = match op {
                Op::UpdateBefore if moved => (seq, Op::Delete),
                Op::UpdateAfter if moved => (seq + 1, Op::Insert),
                Op::UpdateBefore if !wants_update_before => continue,
                other => (seq, other),
            };
            rows.push((self.table, seq, op as u8, id, value));
        }
        rows
    }
}

/// Transactions of changes over so many tables.
pub fn history(rng: &mut Rng, transactions: usize, tables: usize) -> Vec<Vec<Change>> {
    let mut rows: BTreeMap<(usize, i64), i64> = BTreeMap::new();
    let mut number = 0;
    let mut change = |rng: &mut Rng| {
        let table = rng.below(tables as u64) as usize;
        let (id, value) = (rng.below(12) as i64, rng.below(1_000_000) as i64);
        let old = rows.get(&(table, id)).map(|&value| (id, value));
        let new = match old {
            None => Some((id, value)),
            Some(_) if rng.chance(250) => None,
            Some(_) => {
                let moved = rng.below(12) as i64;
                Some((if rows.contains_key(&(table, moved)) { id } else { moved }, value))
            }
        };
        rows.remove(&(table, id));
        if let Some((id, value)) = new {
            rows.insert((table, id), value);
        }
        number += 1;
        Change { table, number, before: old, after: new }
    };
    (0..transactions).map(|_| (0..1 + rng.below(4)).map(|_| change(rng)).collect()).collect()
}
