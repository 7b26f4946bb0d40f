//! What a process cost so far, by the operating system's own accounts.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// One run of one reader.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Rows or row events read.
    pub(crate) rows: u64,
    /// Processor time of the whole process, user and system, seconds.
    pub(crate) cpu: f64,
    /// Time from the first to the last row, seconds.
    pub(crate) wall: f64,
    /// Most memory held at once, bytes.
    pub(crate) peak: u64,
}

impl Cost {
    /// The cost of this process, which has just read `rows` in `wall` seconds.
    pub(crate) fn so_far(rows: u64, wall: f64) -> Result<Self> {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in status")?;
        let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse()?;
        Ok(Self { rows, cpu: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9, wall, peak: kib * 1024 })
    }

    /// Rows a second of processor time.
    pub(crate) fn per_cpu(&self) -> f64 {
        self.rows as f64 / self.cpu
    }
}
