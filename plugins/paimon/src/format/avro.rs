//! Avro: object container files and the binary encoding, as far as Paimon's manifests use them.

mod file;
mod schema;
mod value;

pub use file::{read_file, write_file};
pub use schema::{AvroType, RecordType};
pub use value::{Encoder, Value};

/// Why bytes are not the Avro that was looked for.
#[derive(Debug, PartialEq, Eq)]
pub struct AvroError(pub String);

impl AvroError {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl std::fmt::Display for AvroError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AvroError {}
