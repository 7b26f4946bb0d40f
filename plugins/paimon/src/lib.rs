//! A sink that writes real Apache Paimon tables: primary-key tables with fixed buckets, exactly once.

mod client;
mod committer;
mod config;
mod encode;
mod fold;
pub mod format;
mod handover;
mod writer;

use cdchost_sdk::{Abilities, Blob, Capabilities, Delivery, Manifest, Ordering, Result, Sink};

pub use committer::PaimonCommitter;
pub use config::{Options, SnapshotOptions, TimeForm};
pub use writer::PaimonWriter;

/// The sink.
#[derive(Debug)]
pub struct Paimon;

cdchost_sdk::export!(Paimon);

/// Epochs that may be prepared and not committed: files wait as long as they must.
const OPEN_EPOCHS_MAX: u32 = 8;

/// The write contract, shown to the user.
const CONTRACT: [(&str, &str); 8] = [
    (
        "target",
        "Paimon primary-key tables, merge-on-read, a fixed number of buckets, append tables where there is no key; made as \
         source tables appear",
    ),
    ("business key", "the source table's key, compared byte by byte"),
    (
        "deletes",
        "a delete removes the row of its key; tables without a key take new rows only, an update or delete of one is an \
         error that names the rows by their place in the source's log",
    ),
    (
        "versions",
        "the greater change-seq wins (_SEQUENCE_NUMBER); a row read in a snapshot loses to a change of its number",
    ),
    ("duplicates", "none: each epoch is one snapshot per table, put once, found again by commit user and epoch"),
    ("schema changes", "create-table; any other stops the pipeline"),
    ("after a crash", "prepared files of earlier runs that no checkpoint holds are removed at the start"),
    (
        "others",
        "may read, compact, tag, expire and roll back; rows that others write to the same keys are out of contract",
    ),
];

impl Sink for Paimon {
    type Options = Options;
    type Committer = PaimonCommitter;
    type Writer = PaimonWriter;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "paimon", options: Options, wants: ["object-store"] }
    }

    fn committer(options: Options) -> Result<(PaimonCommitter, Capabilities)> {
        let capabilities = Capabilities {
            ordering: Ordering::PerKey,
            abilities: Abilities { reports_progress: true, ..Abilities::default() },
            schema_changes: vec!["create-table".into()],
            max_open_epochs: OPEN_EPOCHS_MAX,
            contract: CONTRACT.map(|(what, how)| (what.to_owned(), how.to_owned())).into(),
            ..Capabilities::new(Delivery::Transactional)
        };
        Ok((PaimonCommitter::new(&options)?, capabilities))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<PaimonWriter> {
        PaimonWriter::new(&options)
    }
}

#[cfg(test)]
mod tests;
