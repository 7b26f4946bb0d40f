//! What a plugin may use, and what it may touch.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::ByteSize;

/// Bounds of one plugin instance. Every number in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory (512 MiB).
    pub memory: ByteSize,
    /// Table elements (100,000).
    pub table_elements: u32,
    /// Wall-clock time of one call (5 minutes).
    pub call_timeout: Duration,
    /// Bytes that one call may hand back or make the host allocate (256 MiB).
    pub output: ByteSize,
    /// Handles of host resources open at once (1,000).
    pub handles: u32,
    /// Log lines a second (100); more are counted and dropped.
    pub log_lines_per_second: u32,
}

/// What a plugin may touch: nothing that is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// `host:port` patterns for the network import and sockets.
    pub tcp: BTreeSet<String>,
    /// `host:port` patterns for HTTP.
    pub http: BTreeSet<String>,
    /// Names of `[storage.NAME]` roots.
    pub store: BTreeSet<String>,
    /// May print on the host's standard output.
    pub stdout: bool,
}
