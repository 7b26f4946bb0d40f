//! The rules of the house that the compiler does not know, each as a test.
#![cfg(test)]

mod crates;
mod habits;
mod sizes;
mod sources;
mod tree;
