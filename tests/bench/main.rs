//! Measures the product against a floor over the same work, both in one run, in turn.
#![expect(clippy::print_stdout, reason = "a command-line program talks to its user")]

mod changes;
mod counter;
mod floor;
mod lake;
mod load;
mod measure;
mod mersenne;
mod product;
mod report;
mod rows;
mod work;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use cdchost_tests::server::{Server, ServerOptions};
use cdchost_tests::watchdog::Folder;
use clap::{Parser, Subcommand};

use crate::measure::Cost;
use crate::report::{Measured, Report};
use crate::work::{WORKS, Work};

/// Runs of each reader; the median counts.
const RUNS: usize = 3;

// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    child: Option<Child>,
    /// One of the works, or `all`
    work: Option<String>,
    /// Rows or row events, instead of the work's own number
    #[arg(long)]
    rows: Option<u64>,
    /// One JSON object per work, one line each
    #[arg(long)]
    json: bool,
}

/// One reader in a process of its own, so that the system counts it alone.
#[derive(Subcommand)]
enum Child {
    /// Reads a work and prints its cost
    Read(ReadArgs),
}

#[derive(clap::Args, Clone)]
struct ReadArgs {
    #[arg(long)]
    reader: String,
    #[arg(long)]
    work: String,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    rows: u64,
    #[arg(long, default_value = "")]
    file: String,
    #[arg(long, default_value_t = 0)]
    position: u32,
    #[arg(long, default_value = "")]
    state: String,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    if let Some(Child::Read(args)) = cli.child {
        println!("{}", serde_json::to_string(&read(&args)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    let name = cli.work.context("say which work, or `all`")?;
    let works: Vec<Work> = WORKS.into_iter().filter(|work| name == "all" || name == work.name).collect();
    let lake = name == "all" || name == lake::NAME;
    if works.is_empty() && !lake {
        let names = WORKS.map(|work| work.name).join(", ");
        bail!("no work is called {name}; there are {names}, {} and all", lake::NAME);
    }
    let server = server()?;
    let mut held = true;
    for work in works {
        let report = measure(&server, &work, cli.rows.unwrap_or(work.rows))?;
        held &= report.floor_holds();
        println!("{}", if cli.json { report.json()? } else { report.text() });
    }
    if lake {
        let report = lake::measure(&server, cli.rows.unwrap_or(lake::ROWS))?;
        println!("{}", if cli.json { report.json()? } else { report.text()? });
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A server whose data lies in memory, with room for the whole log.
fn server() -> Result<Server> {
    let extra = ["--innodb-buffer-pool-size=4G", "--max-binlog-size=1G", "--local-infile=ON"];
    Server::with(ServerOptions { extra: extra.map(String::from).to_vec(), ..ServerOptions::default() })
}

fn measure(server: &Server, work: &Work, rows: u64) -> Result<Report> {
    let runtime = tokio::runtime::Runtime::new()?;
    let state = Folder::new("bench-mark")?;
    let mut args = ReadArgs {
        reader: String::new(),
        work: work.name.into(),
        port: server.port(),
        rows,
        file: String::new(),
        position: 0,
        state: state.path().display().to_string(),
    };
    let mut conn = runtime.block_on(load::connect(args.port))?;
    runtime.block_on(load::load(&mut conn, work.table, work.table_rows(rows)))?;
    if let Some(changes) = work.changes(rows) {
        product::mark(&args, work)?;
        (args.file, args.position) = runtime.block_on(load::change(&mut conn, &changes))?;
    }
    let args = |reader: &str| ReadArgs { reader: reader.into(), ..args.clone() };
    let (mut floor, mut product) = (Measured::default(), Measured::default());
    for _ in 0..RUNS {
        floor.add(child(&args("floor"), rows)?);
        product.add(child(&args("product"), rows)?);
    }
    Ok(Report { work: *work, rows, floor, product })
}

fn child(args: &ReadArgs, rows: u64) -> Result<Cost> {
    let out = Command::new(std::env::current_exe()?)
        .args(["read", "--reader", &args.reader, "--work", &args.work, "--port", &args.port.to_string()])
        .args(["--rows", &args.rows.to_string(), "--file", &args.file, "--position", &args.position.to_string()])
        .args(["--state", &args.state])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    ensure!(out.status.success(), "the {} reader of {} failed", args.reader, args.work);
    let cost: Cost = serde_json::from_slice(&out.stdout)?;
    ensure!(cost.rows == rows, "the {} reader of {} read {} of {rows} rows", args.reader, args.work, cost.rows);
    Ok(cost)
}

fn read(args: &ReadArgs) -> Result<Cost> {
    let work = Work::named(&args.work).context("no such work")?;
    let began = Instant::now();
    let (rows, wall) = match (args.reader.as_str(), work.per_transaction) {
        ("floor", None) => (floor::read_table(args.port, work.table)?, began.elapsed()),
        ("floor", Some(_)) => (floor::read_log(args.port, &args.file, args.position)?, began.elapsed()),
        ("product", _) => product::read(args, &work)?,
        (other, _) => bail!("no reader is called {other}"),
    };
    Cost::so_far(rows, wall.as_secs_f64())
}
