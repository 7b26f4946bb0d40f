//! What happened in a run, in order: a digest of it, and the lines themselves where they are asked for.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Everything that the world's parts noted.
#[derive(Debug, Default)]
pub struct Trace {
    digest: Sha256,
    line: String,
    /// Every line, where they are kept.
    pub lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that keeps its lines, or only their digest.
    pub fn new(keeps_lines: bool) -> Self {
        Self { lines: keeps_lines.then(Vec::new), ..Self::default() }
    }

    /// Notes that this happened.
    pub fn note(&mut self, what: std::fmt::Arguments<'_>) {
        self.line.clear();
        let _ = writeln!(self.line, "{what}"); // writing to a string cannot fail
        self.digest.update(self.line.as_bytes());
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.trim_end().to_owned());
        }
    }

    /// Of all lines so far: equal for two runs in which the same happened in the same order.
    pub fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }
}
