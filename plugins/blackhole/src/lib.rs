//! A sink that counts rows and bytes and forgets them: for benchmarks, and to try a source.

mod config;
mod writer;

use cdchost_sdk::{Blob, Capabilities, Delivery, Manifest, NothingToCommit, Result, Sink};

pub use config::Options;
pub use writer::BlackholeWriter;

/// The sink.
#[derive(Debug)]
pub struct Blackhole;

cdchost_sdk::export!(Blackhole);

impl Sink for Blackhole {
    type Options = Options;
    type Committer = NothingToCommit;
    type Writer = BlackholeWriter;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "blackhole", options: Options }
    }

    fn committer(options: Options) -> Result<(NothingToCommit, Capabilities)> {
        let contract =
            [("target", "none: rows are counted and forgotten"), ("duplicates", "none are kept, nor is anything")];
        let capabilities = Capabilities {
            wants_update_before: options.before_images,
            contract: contract.map(|(what, how)| (what.to_owned(), how.to_owned())).into(),
            ..Capabilities::new(Delivery::Transactional)
        };
        Ok((NothingToCommit, capabilities))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<BlackholeWriter> {
        Ok(BlackholeWriter::new(&options))
    }
}

#[cfg(test)]
mod tests {
    use cdchost_sdk::harness::{Check, Harness, Table, World, check_readme, check_sink};
    use cdchost_sdk::{LogicalType, row};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_contract_is_kept() {
        let nothing = |_: &World| Vec::new();
        check_sink::<Blackhole>(&Check { config: json!({}), roots: &[], visible: &nothing, left_over: &nothing });
    }

    #[test]
    fn rows_are_counted_and_the_rate_is_logged_at_its_interval() {
        let world = World::new(&[]);
        let mut sink = Harness::<Blackhole>::new(world, json!({ "log-interval": "2s" }));
        sink.start().unwrap();
        let table = Table::new("d.t").key("id", LogicalType::Int64);
        sink.write(0, table.rows(1).insert(row![1]).update(row![1], row![1])).unwrap();
        assert_eq!((sink.world().counter("rows_total"), sink.world().log_lines().len()), (2, 0));
        sink.world().advance(2_000_000);
        sink.write(0, table.rows(3).delete(row![1]).insert(row![2])).unwrap();
        let lines = sink.world().log_lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].fields[0], ("rows-per-second".to_owned(), "2".to_owned()));
        let prepared = sink.checkpoint().unwrap();
        assert_eq!((prepared.items[0].rows, sink.world().counter("rows_total")), (4, 4));
    }

    #[test]
    fn the_readme_has_the_options_as_they_are() {
        check_readme::<Blackhole>(env!("CARGO_MANIFEST_DIR"));
    }
}
