//! Tables read beside the log: chunk after chunk along the key, each in a window of the stream; without a key, at once.

mod reader;
mod session;
mod shares;
mod walk;
mod whole;
mod window;

pub(crate) use reader::{ArmRequest, Armed, ReaderSetup, Request, Sight, run as run_reader};
pub(crate) use shares::{ReaderJob, Shares};
pub(crate) use walk::Walk;
pub(crate) use whole::{Whole, WholeJob, WholeRows, run as run_whole};
pub use window::Fault;
pub(crate) use window::{Chunk, PassedChunk, Windows};
