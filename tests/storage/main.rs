//! What a store promises, of every kind of store; and what only a bucket can do to it.
#![cfg(test)]

mod bucket;
mod promises;
