//! A world for the engine to run in: a scripted source, targets that outlive crashes, a store with faults, a clock
//! that stands still while there is work. One seed, one run.

pub mod harness;
pub mod history;
pub mod sink;
pub mod source;
pub mod world;
