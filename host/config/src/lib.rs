//! pipeline.toml as checked structs, and words for what is wrong in it.
#![warn(missing_docs)]

mod checkpoint;
mod limits;
mod pipeline;
mod secret;
mod sink;
mod source;
mod tables;
mod units;

pub use checkpoint::CheckpointConfig;
pub use limits::{Grants, Limits};
pub use pipeline::{Guarantee, PipelineConfig, RestartConfig, StorageConfig};
pub use secret::Secret;
pub use sink::SinkConfig;
pub use source::{ChunkConfig, MysqlConfig, StartupMode, TlsConfig, TlsMode, Watermark};
pub use tables::{TablePatternError, TablePatterns};
pub use units::ByteSize;
