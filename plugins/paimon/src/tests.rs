//! The sink driven through the contract, on a warehouse in memory.

mod commits;
mod contract;
mod crashes;
mod damage;
mod kit;
mod longevity;
mod neighbours;
mod rivals;
mod values;
