//! The changes of the log benchmarks, as statements over runs of ids, one transaction each.

use crate::mersenne::Mersenne;

/// What a change benchmark does.
pub(crate) struct Changes {
    /// `sbtest` or `wide`.
    pub(crate) table: &'static str,
    /// Row events in all.
    pub(crate) events: u64,
    /// Row events a transaction.
    pub(crate) per_transaction: u64,
    /// Rows that the table has before.
    pub(crate) base: u64,
}

/// The statements: of ten, six update, three insert, one deletes.
pub(crate) fn statements(changes: &Changes) -> Vec<String> {
    let Changes { table, events, per_transaction, base } = *changes;
    let mut random = Mersenne::seeded(3);
    let (mut made, mut new, mut gone) = (0, base + 1, base + 1);
    let mut out = Vec::new();
    while made < events {
        let n = per_transaction.min(events - made);
        let bound = base.saturating_sub(per_transaction).max(2);
        let at = 1 + random.below(bound - 1);
        let mut kind = random.below(10);
        if kind >= 9 && new - gone < n {
            kind = 0;
        }
        let to = at + n - 1;
        out.push(match kind {
            0..6 => update(table, made, at, to),
            6..9 => {
                let insert = insert(table, at, to, new);
                new += n;
                insert
            }
            _ => {
                let delete = format!("DELETE FROM {table} WHERE id BETWEEN {gone} AND {}", gone + n - 1);
                gone += n;
                delete
            }
        });
        made += n;
    }
    out
}

fn update(table: &str, made: u64, at: u64, to: u64) -> String {
    if table == "wide" {
        return format!("UPDATE wide SET i1=i1+1, note=CONCAT('n',{made}) WHERE id BETWEEN {at} AND {to}");
    }
    let made = made % 10_000_000_000;
    format!("UPDATE {table} SET k=k+1, c=CONCAT(SUBSTR(c,12),'-',LPAD({made},10,'0')) WHERE id BETWEEN {at} AND {to}")
}

fn insert(table: &str, at: u64, to: u64, new: u64) -> String {
    let rest = if table == "wide" {
        "i1,i2,i3,flag,b1,d1,d2,f1,f2,created,updated,day,at,name,note,state,tags,doc,raw"
    } else {
        "k,c,pad"
    };
    format!("INSERT INTO {table} SELECT id-{at}+{new},{rest} FROM {table} WHERE id BETWEEN {at} AND {to}")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::{Changes, statements};

    /// The digests of the generator that earlier figures of this and other programs were taken with.
    #[test]
    fn changes_are_those_of_earlier_figures() {
        let digest = |events, per_transaction| {
            let changes = Changes { table: "sbtest", events, per_transaction, base: 100_000 };
            let text: String = statements(&changes).iter().map(|statement| format!("{statement};\n")).collect();
            Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(digest(200_000, 100), "d3fbed23605a9f1da1c1d194e383da8de9595798b11d94fbe2aebb3d6cd8c9f3");
        assert_eq!(digest(30_000, 1), "731cf5071f3820bd30bd0b4a06f5121b85818721b5437e4d364ff12fbd78c1cb");
    }
}
