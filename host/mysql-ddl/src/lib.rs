//! What the text of a statement in MySQL's log does to captured tables.
//!
//! [`judge`] reads a [`Statement`] and says whether it is of concern, and whether it can be carried.
#![warn(missing_docs)]

mod judge;
mod lex;

pub use judge::{CASCADE, Captured, Judgement, Statement, judge, logs_its_rows};
pub use lex::Quoting;
