//! Prints rows as they come.

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use cdchost_sdk::json_lines::{self, Metadata};
use cdchost_sdk::{Batch, Committable, Cut, PluginError, ReadPlan, Result, Schema, Writer, runtime};

use crate::Options;

/// One subtask; `out` is the host's standard output.
#[derive(Debug)]
pub struct PrintWriter<W> {
    out: W,
    metadata: Vec<Metadata>,
    /// Lines of the batch at hand; kept for its memory.
    lines: Vec<u8>,
}

impl<W: Write> PrintWriter<W> {
    pub(crate) fn new(out: W, options: Options) -> Self {
        Self { out, metadata: options.metadata, lines: Vec::new() }
    }
}

impl<W: Write + 'static> Writer for PrintWriter<W> {
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan> {
        Ok(ReadPlan::all(schema).with_meta(Metadata::row_meta(&self.metadata)))
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.lines.clear();
        json_lines::encode(&batch, &self.metadata, &mut self.lines)?;
        // What part of the lines is out is not known after a fault, and printing them again is what this sink may do.
        let printed = self.out.write_all(&self.lines).and_then(|()| self.out.flush());
        printed.map_err(|error| {
            let why = match error.kind() {
                // A stream that the host has closed may also just take no bytes.
                ErrorKind::BrokenPipe | ErrorKind::WriteZero => "what reads it has gone".to_owned(),
                _ => format!("{error}; the log of the host says why"),
            };
            let message = format!("standard output takes no more lines: {why}");
            PluginError::remote("output-closed", message).with_retry(cdchost_sdk::Retry::Never)
        })?;
        runtime::counter_add("rows_total", batch.rows() as u64);
        runtime::counter_add("bytes_total", self.lines.len() as u64);
        Ok(())
    }

    fn prepare_commit(&mut self, _at: &Cut) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }
}
