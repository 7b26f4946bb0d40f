//! Kills: at random moments under load, at every step of an epoch and of a recovery, and of hosts that share a state.
//! Nothing is lost, doubled or changed, and nothing durable is read again.
#![cfg(test)]

mod hosts;
mod rounds;
mod scene;
mod steps;
