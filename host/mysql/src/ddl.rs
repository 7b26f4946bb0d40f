//! What a statement in the log does to captured tables.

mod judge;
mod lex;

pub(crate) use judge::{Captured, Judgement, Statement, judge};
pub(crate) use lex::Quoting;
