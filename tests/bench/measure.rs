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
        let peak = peak_of(std::process::id()).context("no VmHWM in status")?;
        Ok(Self { rows, cpu: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9, wall, peak })
    }

    /// Rows a second of processor time.
    pub(crate) fn per_cpu(&self) -> f64 {
        self.rows as f64 / self.cpu
    }
}

/// Most memory that a running process has held at once, bytes; none if it has ended.
pub(crate) fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Processor time of all children of this process that have ended, user and system, seconds (in hundredths).
pub(crate) fn children_cpu() -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The program's name, in brackets, may hold blanks; the two times are the 14th and 15th fields behind it.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let ticks: Vec<f64> = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    anyhow::ensure!(ticks.len() == 2, "no children's times in stat");
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_time_is_counted_when_it_has_ended() {
        let before = children_cpu().unwrap();
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let began = std::time::Instant::now();
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let spent = children_cpu().unwrap() - before;
        assert!(spent > 0.0 && spent <= began.elapsed().as_secs_f64() + 0.02, "{spent}");
    }

    #[test]
    fn a_peak_is_seen_while_it_runs() {
        assert!(peak_of(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(peak_of(u32::MAX), None);
    }
}
