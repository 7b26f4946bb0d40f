//! Components good and bad against the engine, through its public face.
#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test binary: its modules are its own, and a panic is a finding"
)]

mod calls;
mod guest;
mod hostile;
mod loading;
mod options;
mod passage;
mod stage;
mod stores;
