//! The main job in sight: a live MySQL into a lake, through a kill, compared by the lake's own readers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::lake::LakeReader;
use crate::pipeline::{Pipeline, PipelineSpec};
use crate::project;
use crate::server::Server;
use crate::shop::{self, Customers, Shop};
use crate::verdict::{self, Verdict};
use crate::wait;
use crate::watchdog::Folder;

const DATABASE: &str = "shop";
/// Gives 210,000 rows in four tables.
const ORDERS: u32 = 60_000;
/// Between two transactions of the customers.
const PAUSE: Duration = Duration::from_millis(3);
/// How long the customers go on after the restart, before the comparison.
const LIVE: Duration = Duration::from_secs(6);
const LIMIT: Duration = Duration::from_secs(180);

/// How the demo runs.
#[derive(Clone, Debug, Default)]
pub struct DemoOptions {
    /// Ends after the first comparison; otherwise it goes on until Ctrl-C.
    pub once: bool,
    /// Where to work and leave everything; by default a folder that goes away.
    pub folder: Option<PathBuf>,
}

/// Runs it; `say` takes what is to be told.
pub async fn run(options: &DemoOptions, say: fn(&str)) -> Result<Verdict> {
    let start = Instant::now();
    say("fetching what is missing: MySQL, and two readers of Paimon tables");
    let mut readers = [LakeReader::pypaimon()?, LakeReader::java()?];
    let server = Server::start()?;
    say(&format!("MySQL 8.0.15 is up on {}; loading four tables", server.address()));
    let shop = shop::open(&server, DATABASE, ORDERS).await?;
    let temporary = Folder::new("demo")?;
    let folder = options.folder.as_deref().unwrap_or(temporary.path());
    ensure!(!folder.join("pipeline.toml").exists(), "{} has been used: name another folder", folder.display());
    let spec = PipelineSpec {
        interval: "200ms".to_owned(),
        chunk_rows: 1_000,
        ..PipelineSpec::into_lake(&server.address(), DATABASE)
    };
    let mut pipeline = Pipeline::new(folder, &spec)?;
    let program = project::program()?;
    let mut customers = Customers::enter(&server, &shop, 1, 1, PAUSE).await?;
    say(&format!("customers are changing the shop; `cdchost run {}`", pipeline.file().display()));
    through_a_kill(&mut pipeline, program, say).await?;
    customers.leave().await?;
    let mut verdict = settle(&server, &mut pipeline, &mut readers).await?;
    say(&format!("compared after {:.0} s", start.elapsed().as_secs_f64()));
    if !options.once {
        verdict = until_told(&server, &shop, &mut pipeline, &mut readers, say).await?;
    }
    let ended = pipeline.stop(LIMIT)?;
    ensure!(ended.success(), "cdchost ended with {ended} after SIGTERM");
    Ok(verdict)
}

/// Starts the pipeline, kills it while it reads the tables, starts it again and lets it follow the log.
async fn through_a_kill(pipeline: &mut Pipeline, program: &Path, say: fn(&str)) -> Result<()> {
    pipeline.start_in_sight(program, &[])?;
    let status = pipeline.wait_until("part of the tables is in the lake", LIMIT, |s| {
        let committed = s["epoch"]["committed"].as_u64().is_some();
        committed && (rows_read(s) > 0 || s["phase"] == "streaming")
    })?;
    pipeline.kill()?;
    say(&format!("kill -9 after {} rows, in phase {}; starting again", rows_read(&status), status["phase"]));
    pipeline.start_in_sight(program, &[])?;
    pipeline.wait_until_caught_up(LIMIT)?;
    wait::pass(LIVE).await;
    Ok(())
}

/// Has everything committed, then compares.
async fn settle(server: &Server, pipeline: &mut Pipeline, readers: &mut [LakeReader]) -> Result<Verdict> {
    pipeline.wait_until_at_the_end_of(server, LIMIT).await?;
    pipeline.checkpoint(LIMIT)?;
    verdict::compare(server, pipeline, DATABASE, readers).await
}

/// Lets the customers work and compares now and then, until Ctrl-C.
async fn until_told(
    server: &Server,
    shop: &Shop,
    pipeline: &mut Pipeline,
    readers: &mut [LakeReader],
    say: fn(&str),
) -> Result<Verdict> {
    say("going on until Ctrl-C");
    let told = tokio::signal::ctrl_c();
    tokio::pin!(told);
    for visit in 2.. {
        let mut customers = Customers::enter(server, shop, visit, u64::from(visit), PAUSE).await?;
        let ends = tokio::select! {
            _ = &mut told => true,
            () = wait::pass(LIVE * 3) => false,
        };
        customers.leave().await?;
        let verdict = settle(server, pipeline, readers).await?;
        if ends || verdict.differences > 0 {
            return Ok(verdict);
        }
        say(&format!("{} rows equal", verdict.rows));
    }
    unreachable!("visits are counted without end")
}

fn rows_read(status: &Value) -> u64 {
    status["tables"].as_array().into_iter().flatten().filter_map(|table| table["rows-read"].as_u64()).sum()
}
