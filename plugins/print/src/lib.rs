//! A sink that prints row changes as JSON lines on the host's standard output: to see what a pipeline carries.

mod config;
mod writer;

use std::io::Stdout;

use cdchost_sdk::{
    Abilities, Blob, Capabilities, Delivery, Manifest, NothingToCommit, Ordering, Result, Sink, json_lines,
};

pub use config::Options;
pub use writer::PrintWriter;

/// The sink.
#[derive(Debug)]
pub struct Print;

cdchost_sdk::export!(Print);

impl Sink for Print {
    type Options = Options;
    type Committer = NothingToCommit;
    type Writer = PrintWriter<Stdout>;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "print", options: Options, wants: ["stdout"] }
    }

    fn committer(options: Options) -> Result<(NothingToCommit, Capabilities)> {
        let contract = [
            ("target", "JSON lines on standard output, one a row change"),
            ("visible", "as soon as a row is read, before its epoch is committed"),
            ("duplicates", "after a restart, lines since the last checkpoint come again"),
            ("order", "lines of one key are in order"),
        ];
        let capabilities = Capabilities {
            ordering: Ordering::PerKey,
            wants_update_before: options.before_images,
            abilities: Abilities { takes_changelog: true, ..Abilities::default() },
            schema_changes: json_lines::SCHEMA_CHANGES.map(str::to_owned).into(),
            contract: contract.map(|(what, how)| (what.to_owned(), how.to_owned())).into(),
            ..Capabilities::new(Delivery::AtLeastOnce)
        };
        Ok((NothingToCommit, capabilities))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<PrintWriter<Stdout>> {
        Ok(PrintWriter::new(std::io::stdout(), options))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use cdchost_sdk::harness::{Check, Instance, Rows, Table, World, check_readme, check_sink};
    use cdchost_sdk::json_lines::Metadata;
    use cdchost_sdk::{LogicalType, Retry, Writer, row};
    use serde_json::json;

    use super::*;

    /// Standard output of a test; it is closed when it holds as many bytes as it may.
    #[derive(Clone, Default)]
    struct Output {
        bytes: Arc<Mutex<Vec<u8>>>,
        bytes_max: usize,
    }

    impl std::io::Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut all = self.bytes.lock().unwrap();
            let room = self.bytes_max - all.len();
            if room == 0 {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            let taken = bytes.len().min(room);
            all.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn print(rows: &Rows, output: &Output) -> Result<String> {
        let options = Options { metadata: vec![Metadata::ChangeSeq], before_images: true };
        let mut writer = PrintWriter::new(output.clone(), options);
        World::new(&[]).run(&Instance::new(json!({})), || {
            let plan = writer.on_schema(rows.schema())?;
            writer.write(rows.batch(&Arc::new(plan))?)
        })?;
        Ok(String::from_utf8(output.bytes.lock().unwrap().clone()).unwrap())
    }

    #[test]
    fn the_contract_is_kept() {
        let nothing = |_: &World| Vec::new();
        check_sink::<Print>(&Check { config: json!({}), roots: &[], visible: &nothing, left_over: &nothing });
    }

    #[test]
    fn a_row_change_is_a_line() {
        let table = Table::new("d.t").key("id", LogicalType::Int64);
        let rows = table.rows(7).insert(row![1]).delete(row![1]);
        let said = print(&rows, &Output { bytes_max: 1 << 20, ..Output::default() }).unwrap();
        let expect = "{\"op\":\"insert\",\"table\":\"d.t\",\"row\":{\"id\":1},\"change-seq\":7}\n\
                      {\"op\":\"delete\",\"table\":\"d.t\",\"row\":{\"id\":1},\"change-seq\":8}\n";
        assert_eq!(said, expect);
    }

    #[test]
    fn an_output_that_is_closed_ends_the_pipeline() {
        let rows = Table::new("d.t").key("id", LogicalType::Int64).rows(1).insert(row![1]);
        let error = print(&rows, &Output { bytes_max: 10, ..Output::default() }).unwrap_err();
        assert_eq!(error.message, "standard output takes no more lines: what reads it has gone");
        assert_eq!((error.code.as_str(), error.retry), ("output-closed", Retry::Never));
    }

    #[test]
    fn the_readme_has_the_options_as_they_are() {
        check_readme::<Print>(env!("CARGO_MANIFEST_DIR"));
    }
}
