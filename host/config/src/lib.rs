//! pipeline.toml as checked structs, and words for what is wrong in it.
#![warn(missing_docs)]

mod checkpoint;
mod finding;
mod limits;
mod load;
mod pipeline;
mod reference;
mod secret;
mod sink;
mod source;
mod step;
mod tables;
mod units;

pub use checkpoint::CheckpointConfig;
pub use finding::{Finding, Place, Places, Severity, nearest};
pub use limits::{Grants, Limits};
pub use load::{Input, Loaded, Lookup, Refused, load};
pub use pipeline::{Guarantee, PipelineConfig, RestartConfig, StorageConfig};
pub use reference::{page as reference_page, schema as json_schema, sink_keys};
pub use secret::Secret;
pub use sink::SinkConfig;
pub use source::{ChunkConfig, MysqlConfig, StartupMode, TlsConfig, TlsMode, Watermark, ZeroDate};
pub use step::StepConfig;
pub use tables::{TablePatternError, TablePatterns};
pub use units::ByteSize;
