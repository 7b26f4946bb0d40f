//! The product over a work: its source and its engine, with a sink that counts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cdchost_checkpoint::CheckpointStore;
use cdchost_config::{
    ByteSize, CheckpointConfig, ChunkConfig, MysqlConfig, RestartConfig, Secret, StartupMode, TlsConfig, Watermark,
    ZeroDate,
};
use cdchost_connector::{SourceEnd, SystemClock};
use cdchost_mysql::MysqlSource;
use cdchost_pipeline::{
    Pipeline, PipelineExit, PipelineHandle, PipelineMetrics, PipelineSetup, PipelineState, SinkSetup,
};
use cdchost_storage::Store;
use cdchost_tests::server::{ACCOUNT, PASSWORD};
use cdchost_tests::watchdog::Folder;

use crate::ReadArgs;
use crate::counter::CountingSink;
use crate::work::Work;

const NAME: &str = "bench";

/// Reads a work; the number of rows or row events, and the time from the first to the last.
pub(crate) fn read(args: &ReadArgs, work: &Work) -> Result<(u64, Duration)> {
    // A log is read from a checkpoint made before the changes, by each run from a copy of it.
    let copy = Folder::new("bench-state")?;
    if work.per_transaction.is_some() {
        copy_files(Path::new(&args.state), copy.path())?;
    }
    runtime()?.block_on(async {
        let (startup, end) = match work.per_transaction {
            None => (StartupMode::Initial, SourceEnd::Snapshot),
            Some(_) => (StartupMode::Latest, SourceEnd::CaughtUp),
        };
        let sink = Arc::new(CountingSink::default());
        let mut pipeline = start(args.port, work, copy.path(), (startup, end), &sink).await?;
        match pipeline.wait().await {
            PipelineExit::Finished => Ok((sink.rows(), sink.span())),
            PipelineExit::Stopped => bail!("the pipeline stopped before its end"),
            PipelineExit::Failed(reason) => bail!("{reason} ({})", reason.instruction),
        }
    })
}

/// Makes a checkpoint at the log's end, in the folder `args.state`.
pub(crate) fn mark(args: &ReadArgs, work: &Work) -> Result<()> {
    runtime()?.block_on(async {
        let sink = Arc::new(CountingSink::default());
        let how = (StartupMode::Latest, SourceEnd::Never);
        let mut pipeline = start(args.port, work, Path::new(&args.state), how, &sink).await?;
        let mut status = pipeline.status();
        let begun = |state| matches!(state, PipelineState::Running | PipelineState::Failed);
        let state = status.wait_for(|status| begun(status.state)).await.context("the pipeline is gone")?.state;
        if state == PipelineState::Running {
            pipeline.checkpoint().await.map_err(|reason| anyhow::anyhow!("no checkpoint: {reason}"))?;
            pipeline.stop();
        }
        match pipeline.wait().await {
            PipelineExit::Stopped => Ok(()),
            PipelineExit::Finished => bail!("a run without end ended"),
            PipelineExit::Failed(reason) => bail!("{reason} ({})", reason.instruction),
        }
    })
}

/// As the program makes it.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn start(
    port: u16,
    work: &Work,
    state: &Path,
    (startup, end): (StartupMode, SourceEnd),
    sink: &Arc<CountingSink>,
) -> Result<PipelineHandle> {
    let url = format!("file://{}", state.display());
    let store = Store::open(&url, &Default::default()).await?;
    Ok(Pipeline::start(PipelineSetup {
        name: NAME.to_owned(),
        config: "{}".to_owned(),
        checkpoint: CheckpointConfig {
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(600),
            min_pause: Duration::ZERO,
            retained: 3,
            tolerable_failures: 0,
            store: url,
            folder: None,
        },
        restart: RestartConfig {
            budget: 0,
            window: Duration::from_secs(600),
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(30),
        },
        path: Default::default(),
        source: Arc::new(MysqlSource::new(source(port, work, startup), end)),
        sinks: vec![SinkSetup { sink: Arc::clone(sink) as _, parallelism: 1 }],
        store: CheckpointStore::new(store),
        clock: Arc::new(SystemClock::default()),
        metrics: PipelineMetrics::unregistered(NAME),
    }))
}

/// The source as a pipeline file without further options gives it.
fn source(port: u16, work: &Work, startup: StartupMode) -> MysqlConfig {
    MysqlConfig {
        hosts: vec![format!("127.0.0.1:{port}")],
        username: ACCOUNT.to_owned(),
        password: Secret::new(PASSWORD),
        tables: vec![format!("bench.{}", work.table)],
        startup,
        server_id: None,
        tls: TlsConfig::default(),
        readers: 2,
        chunk: ChunkConfig { rows: 8096, bytes: ByteSize(8 << 20) },
        watermark: Watermark::Gtid,
        zero_date: ZeroDate::Error,
        heartbeat: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(10),
        reconnect_timeout: Duration::from_secs(300),
        transaction_max_buffer: ByteSize(64 << 20),
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy_files(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
