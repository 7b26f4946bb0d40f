//! A sink that counts rows and bytes and forgets them: for benchmarks, and to try a source.

mod committer;
mod config;
mod writer;

use cdchost_sdk::{Blob, Capabilities, Delivery, Manifest, Result, Sink};

pub use committer::BlackholeCommitter;
pub use config::Options;
pub use writer::BlackholeWriter;

/// The sink.
#[derive(Debug)]
pub struct Blackhole;

cdchost_sdk::export!(Blackhole);

impl Sink for Blackhole {
    type Options = Options;
    type Committer = BlackholeCommitter;
    type Writer = BlackholeWriter;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "blackhole", options: Options }
    }

    fn committer(options: Options) -> Result<(BlackholeCommitter, Capabilities)> {
        let contract =
            [("target", "none: rows are counted and forgotten"), ("duplicates", "none are kept, nor is anything")];
        let capabilities = Capabilities {
            wants_update_before: options.wants_update_before,
            contract: contract.map(|(what, how)| (what.to_owned(), how.to_owned())).into(),
            ..Capabilities::new(Delivery::Transactional)
        };
        Ok((BlackholeCommitter, capabilities))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<BlackholeWriter> {
        Ok(BlackholeWriter::new(&options))
    }
}
