//! Medians, ratios, and how they are shown.

use anyhow::Result;
use serde_json::json;

use crate::measure::Cost;
use crate::work::Work;

/// All runs of one reader over one work.
#[derive(Default)]
pub(crate) struct Measured(Vec<Cost>);

/// One work, both readers.
pub(crate) struct Report {
    pub(crate) work: Work,
    pub(crate) rows: u64,
    pub(crate) floor: Measured,
    pub(crate) product: Measured,
}

impl Measured {
    pub(crate) fn add(&mut self, cost: Cost) {
        self.0.push(cost);
    }

    /// The run with the median processor time.
    pub(crate) fn median(&self) -> Cost {
        let mut runs = self.0.clone();
        runs.sort_by(|one, other| one.cpu.total_cmp(&other.cpu));
        runs[runs.len() / 2]
    }

    pub(crate) fn peak(&self) -> u64 {
        self.0.iter().map(|run| run.peak).max().unwrap_or(0)
    }
}

impl Report {
    /// A slow floor makes every ratio good: it must reach half of what it reached on a quiet machine.
    pub(crate) fn floor_holds(&self) -> bool {
        self.floor.median().per_cpu() * 2.0 >= self.work.floor_expected
    }

    fn ratio(&self) -> f64 {
        self.floor.median().per_cpu() / self.product.median().per_cpu()
    }

    pub(crate) fn json(&self) -> Result<String> {
        let reader = |measured: &Measured| {
            let cost = measured.median();
            json!({
                "rows-per-cpu-second": cost.per_cpu().round(),
                "rows-per-second": (cost.rows as f64 / cost.wall).round(),
                "peak-bytes": measured.peak(),
            })
        };
        Ok(serde_json::to_string(&json!({
            "work": self.work.name,
            "rows": self.rows,
            "floor": reader(&self.floor),
            "cdchost": reader(&self.product),
            "ratio": (self.ratio() * 100.0).round() / 100.0,
            "target": self.work.target,
            "met": self.ratio() <= self.work.target,
            "floor-holds": self.floor_holds(),
        }))?)
    }

    pub(crate) fn text(&self) -> String {
        let (floor, product) = (self.floor.median(), self.product.median());
        let mut line = format!(
            "{:<18} floor {:>6.2} M, cdchost {:>6.2} M rows per CPU-second; {:>5.2} M rows/s, peak {:>4} MB; \
             ratio {:.2} (target <= {})",
            self.work.name,
            floor.per_cpu() / 1e6,
            product.per_cpu() / 1e6,
            product.rows as f64 / product.wall / 1e6,
            self.product.peak() / 1_000_000,
            self.ratio(),
            self.work.target,
        );
        if !self.floor_holds() {
            let least = self.work.floor_expected / 2e6;
            line += &format!("; the floor is too slow to compare with: at least {least:.2} M is asked of it");
        }
        line
    }
}
