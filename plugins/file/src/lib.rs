//! A sink that writes row changes as JSON lines to files, each visible once and whole.

mod client;
mod committer;
mod config;
mod writer;

use cdchost_sdk::{Abilities, Blob, Capabilities, Delivery, Manifest, Ordering, Result, Sink, json_lines};

pub use committer::FileCommitter;
pub use config::Options;
pub use writer::FileWriter;

/// The sink.
#[derive(Debug)]
pub struct File;

cdchost_sdk::export!(File);

impl Sink for File {
    type Options = Options;
    type Committer = FileCommitter;
    type Writer = FileWriter;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "file", options: Options, wants: ["object-store"] }
    }

    fn committer(options: Options) -> Result<(FileCommitter, Capabilities)> {
        let capabilities = capabilities(&options);
        Ok((FileCommitter::new(&options)?, capabilities))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<FileWriter> {
        FileWriter::new(options)
    }
}

fn capabilities(options: &Options) -> Capabilities {
    let contract = [
        ("target", "JSON lines, one a row change, in DATABASE/TABLE/part-EPOCH-SUBTASK-NUMBER.jsonl"),
        ("visible", "part-* files only; each appears whole, once, when its epoch is committed"),
        ("duplicates", "none"),
        ("order", "lines of one key are in order within a subtask's files, epoch by epoch"),
        ("clean-up", "staged files of older runs are removed at the start"),
    ];
    Capabilities {
        ordering: Ordering::PerKey,
        wants_update_before: options.before_images,
        abilities: Abilities { reports_progress: true, takes_changelog: true, ..Abilities::default() },
        schema_changes: json_lines::SCHEMA_CHANGES.map(str::to_owned).into(),
        contract: contract.map(|(what, how)| (what.to_owned(), how.to_owned())).into(),
        ..Capabilities::new(Delivery::Transactional)
    }
}

#[cfg(test)]
mod tests;
