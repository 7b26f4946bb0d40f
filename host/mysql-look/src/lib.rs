//! What a server is, what its tables are, and what stands in the way of reading them.
#![warn(missing_docs)]

pub mod charsets;
pub mod check;
mod digest;
pub mod discover;
pub mod session;

pub use digest::digest;

/// A name in backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
