//! The rows of the benchmark tables, as text for `LOAD DATA`; the same bytes for the same number of rows.

use std::fmt::Write as _;

use crate::mersenne::Mersenne;

/// Sysbench's table.
pub(crate) const SBTEST: &str = "CREATE TABLE sbtest (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, \
    c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) CHARSET=utf8mb4";

/// Twenty columns of mixed types.
pub(crate) const WIDE: &str = "CREATE TABLE wide (id BIGINT NOT NULL PRIMARY KEY, i1 INT NOT NULL, i2 INT UNSIGNED, \
    i3 SMALLINT, flag TINYINT(1), b1 BIGINT UNSIGNED, d1 DECIMAL(18,4), d2 DECIMAL(38,10), f1 DOUBLE, f2 FLOAT, \
    created DATETIME(6) NOT NULL, updated TIMESTAMP(3) NULL, day DATE, at TIME(3), name VARCHAR(64), \
    note VARCHAR(255), state ENUM('new','paid','sent','done'), tags SET('a','b','c','d'), doc JSON, raw BLOB) \
    CHARSET=utf8mb4";

const NULLABLE: [usize; 14] = [2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 18, 19];
const WORDS: [&str; 8] = ["order", "straße", "数据", "customer", "naïve", "étude", "warehouse", "поток"];

/// `rows` rows of sysbench's table, 10,000 a block.
pub(crate) fn sbtest(rows: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Mersenne::seeded(1);
    (1..=rows).step_by(10_000).map(move |start| {
        let count = 10_000.min(rows + 1 - start);
        let digits: Vec<u8> = random.bytes(184 * count as usize).into_iter().map(|byte| b'0' + byte % 10).collect();
        let mut out = Vec::with_capacity(200 * count as usize);
        for (row, d) in digits.chunks_exact(184).enumerate() {
            out.extend_from_slice(format!("{}\t", start + row as u64).as_bytes());
            out.extend_from_slice(&d[..4]);
            out.push(b'\t');
            join_groups(&d[4..114], &mut out);
            out.push(b'\t');
            join_groups(&d[114..169], &mut out);
            out.push(b'\n');
        }
        out
    })
}

fn join_groups(digits: &[u8], out: &mut Vec<u8>) {
    for (place, group) in digits.chunks_exact(11).enumerate() {
        if place > 0 {
            out.push(b'-');
        }
        out.extend_from_slice(group);
    }
}

/// `rows` rows of the wide table, 2,000 a block.
pub(crate) fn wide(rows: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Mersenne::seeded(2);
    (1..=rows).step_by(2000).map(move |start| {
        let mut out = String::new();
        for id in start..(start + 2000).min(rows + 1) {
            wide_row(id, random.bits(64), &mut out);
        }
        out.into_bytes()
    })
}

fn wide_row(id: u64, r: u64, out: &mut String) {
    let (a, b) = (r & 0xFFFF_FFFF, r >> 32);
    let at = a as usize;
    let signed = a as i64 - (1 << 31);
    let yes = if a & 1 == 1 { "true" } else { "false" };
    let word = |shift: u32| WORDS[(r >> shift & 7) as usize];
    let note: Vec<_> = (0..24).step_by(3).map(word).collect();
    let hundredth = (b % 10_000) as f64 / 100.0;
    let values = [
        id.to_string(),
        signed.to_string(),
        b.to_string(),
        (a as i64 % 60_000 - 30_000).to_string(),
        (a & 1).to_string(),
        r.to_string(),
        format!("{signed}.{:04}", b % 10_000),
        format!("{r}.{:010}", a % 10_000_000_000),
        format!("{:?}", b as f64 / 7.0),
        format!("{:?}", (a % 100_000) as f64 / 8.0),
        format!(
            "{}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
            2000 + a % 25,
            1 + b % 12,
            1 + a % 28,
            b % 24,
            a % 60,
            b % 60,
            a % 1_000_000
        ),
        format!(
            "{}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
            2001 + b % 25,
            1 + a % 12,
            1 + b % 28,
            a % 24,
            b % 60,
            a % 60,
            b % 1000
        ),
        format!("{}-{:02}-{:02}", 1990 + a % 35, 1 + b % 12, 1 + a % 28),
        format!("{:02}:{:02}:{:02}.{:03}", a % 24, b % 60, a % 60, b % 1000),
        format!("{} {a:x}", WORDS[(b % 8) as usize]),
        note.join(" "),
        ["new", "paid", "sent", "done"][at & 3].into(),
        ["a", "b,c", "", "a,d"][(b & 3) as usize].into(),
        format!(
            r#"{{"id": {id}, "who": "{}", "n": [{}, {}], "ok": {yes}, "x": {hundredth:?}}}"#,
            WORDS[at % 8],
            a % 100,
            b % 100
        ),
        format!("{r:016x}").repeat(4),
    ];
    for (column, value) in values.iter().enumerate() {
        let null = NULLABLE.contains(&column) && (r >> column).is_multiple_of(10);
        let shown = if null { r"\N" } else { value };
        write!(out, "{shown}{}", if column == 19 { '\n' } else { '\t' }).expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    fn digest(blocks: impl Iterator<Item = Vec<u8>>) -> String {
        let mut hash = Sha256::new();
        blocks.for_each(|block| hash.update(&block));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The digests of the generator that earlier figures of this and other programs were taken with.
    #[test]
    fn rows_are_those_of_earlier_figures() {
        let sbtest = "c04150bd76e6b4b0394ac1ad97ce6a8d53aa8c802947dbfa238e7520f843cc69";
        let wide = "f6ec27eda57f8dfc19065d8da6fd9e939bb9b869eb04c92bd5129b7a13f66389";
        assert_eq!(digest(super::sbtest(25_000)), sbtest);
        assert_eq!(digest(super::wide(25_000)), wide);
    }
}
