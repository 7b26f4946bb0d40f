//! The whole program into a lake: source, engine, component, files.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::project;
use cdchost_tests::server::{PASSWORD, Server};
use cdchost_tests::watchdog::{Folder, Process};
use serde_json::json;

use crate::measure::{Cost, children_cpu, peak_of};
use crate::report::Measured;
use crate::{RUNS, load};

/// What the work is called.
pub(crate) const NAME: &str = "lake";
/// Rows by default.
pub(crate) const ROWS: u64 = 1_000_000;
/// Writers side by side.
const WRITERS: u32 = 2;
const TABLE: &str = "sbtest";
/// Most memory that the program may hold at once, bytes.
const PEAK_TARGET: u64 = 200_000_000;
const RUN_LIMIT: Duration = Duration::from_secs(600);

/// Sysbench's table into the lake, a snapshot from nothing to its last commit.
pub(crate) struct LakeReport {
    rows: u64,
    runs: Measured,
}

/// Measures the program over a table of `rows` rows.
pub(crate) fn measure(server: &Server, rows: u64) -> Result<LakeReport> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut conn = load::connect(server.port()).await?;
        load::load(&mut conn, TABLE, rows).await
    })?;
    // The first start of a component compiles it, with more memory than any later one takes.
    run(server, rows)?;
    let mut runs = Measured::default();
    for _ in 0..RUNS {
        runs.add(run(server, rows)?);
    }
    Ok(LakeReport { rows, runs })
}

/// One run, from the program's start to its end.
fn run(server: &Server, rows: u64) -> Result<Cost> {
    let folder = Folder::new("bench-lake")?;
    let tables = vec![format!("bench.{TABLE}")];
    let spec = PipelineSpec { tables, ..PipelineSpec::into_lake(&server.address(), "bench") };
    let pipeline = Pipeline::new(folder.path(), &spec)?;
    let log = std::fs::File::create(pipeline.log())?;
    let mut command = Command::new(project::program()?);
    command.arg("run").arg("--plugins").arg(project::plugins()?).args(["--until", "snapshot", "--log-format", "json"]);
    command.arg(pipeline.file()).env("CDCHOST_TEST_PASSWORD", PASSWORD).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let (before, began) = (children_cpu()?, Instant::now());
    let mut process = Process::start(&mut command)?;
    let mut peak = 0;
    let status = cdchost_tests::wait::until("the program ends", RUN_LIMIT, || {
        peak = peak.max(peak_of(process.id()).unwrap_or(0));
        process.ended()
    })?;
    let wall = began.elapsed().as_secs_f64();
    let shown = || std::fs::read_to_string(pipeline.log()).unwrap_or_default();
    ensure!(status.success(), "the program ended with {status}:\n{}", shown());
    Ok(Cost { rows, cpu: children_cpu()? - before, wall, peak })
}

impl LakeReport {
    pub(crate) fn json(&self) -> Result<String> {
        let cost = self.runs.median();
        let digest = component_digest()?;
        Ok(serde_json::to_string(&json!({
            "work": NAME,
            "rows": self.rows,
            "cdchost": {
                "rows-per-cpu-second": cost.per_cpu().round(),
                "rows-per-second": (cost.rows as f64 / cost.wall).round(),
                "peak-bytes": self.runs.peak(),
            },
            "peak-target": PEAK_TARGET,
            "met": self.runs.peak() <= PEAK_TARGET,
            "writers": WRITERS,
            "component": digest,
        }))?)
    }

    pub(crate) fn text(&self) -> Result<String> {
        let cost = self.runs.median();
        Ok(format!(
            "{NAME:<18} whole run {:>6.0} k rows per CPU-second; {:>5.0} k rows/s, peak {:>4} MB (target <= {}), {WRITERS} writers, component {}",
            cost.per_cpu() / 1e3,
            cost.rows as f64 / cost.wall / 1e3,
            self.runs.peak() / 1_000_000,
            PEAK_TARGET / 1_000_000,
            &component_digest()?[..16],
        ))
    }
}

/// Which component was measured.
fn component_digest() -> Result<String> {
    use sha2::Digest as _;
    let file = project::plugins()?.join("paimon/paimon.wasm");
    let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
    Ok(sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
