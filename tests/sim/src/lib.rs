//! A world for the engine to run in: a scripted source, targets that outlive crashes, a store with faults, a clock
//! that stands still while there is work. The pipeline and the checkpoint protocol in it are those of production.
//!
//! One seed, one run: [`run`] lives through what the seed draws and says what must never happen and did.

pub mod harness;
pub mod history;
pub mod host;
mod life;
mod look;
pub mod script;
pub mod seeds;
pub mod sink;
pub mod source;
pub mod trace;
pub mod world;

pub use life::{Outcome, run};
