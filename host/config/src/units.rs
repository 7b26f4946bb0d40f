//! Sizes with units.

/// A number of bytes, written as `"64MiB"`, `"2MB"`, `"512"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);
