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
