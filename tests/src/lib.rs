//! What the suites, the demo and the benchmarks share: real servers, the program under test, and other people's readers.
#![warn(missing_docs)]

pub mod authority;
pub mod binlog;
pub mod bucket;
pub mod cache;
pub mod cases;
pub mod cell;
pub mod component;
pub mod control;
pub mod crash;
pub mod demo;
pub mod fuzz;
pub mod journal;
pub mod lake;
pub mod ledger;
pub mod lines;
pub mod origin;
pub mod pipeline;
pub mod project;
pub mod proxy;
pub mod rows;
pub mod server;
pub mod shop;
pub mod value;
pub mod verdict;
pub mod wait;
pub mod watchdog;
