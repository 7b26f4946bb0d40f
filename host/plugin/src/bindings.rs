//! The versions of the contract that this host speaks, one generated module each.
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "generated code")]

pub(crate) mod v0_1;
