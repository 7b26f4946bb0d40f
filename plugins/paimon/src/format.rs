//! Apache Paimon's on-disk format: bytes in, values out, and back; no input or output.

pub mod avro;
pub mod binary_row;
pub mod bucket;
pub mod data_file;
pub mod key;
pub mod manifest;
pub mod partition;
pub mod schema;
pub mod snapshot;
