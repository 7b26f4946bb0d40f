//! What a pipeline counts. Labels are few and bounded: the pipeline, and the sink.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The labels of what is counted per sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct SinkLabel {
    pipeline: String,
    sink: String,
}

/// Counters of one pipeline. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PipelineMetrics {
    pub(crate) source_rows: Counter,
    pub(crate) source_bytes: Counter,
    pub(crate) restarts: Counter,
    pub(crate) epochs_stored: Counter,
    pub(crate) checkpoint_retries: Counter,
    pub(crate) epoch_durable: Gauge,
    pub(crate) epoch_committed: Gauge,
    pub(crate) prepare_seconds: Histogram,
    pub(crate) store_seconds: Histogram,
    pub(crate) commit_seconds: Histogram,
    path: PathMetrics,
    sink_rows: Family<SinkLabel, Counter>,
    sink_batches: Family<SinkLabel, Counter>,
    sink_retries: Family<SinkLabel, Counter>,
    sink_busy: Family<SinkLabel, Counter<f64, AtomicU64>>,
    pipeline: Arc<str>,
}

/// Counters of transforms and routes, all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathMetrics {
    pub(crate) rows_in: Counter,
    pub(crate) rows_out: Counter,
    pub(crate) retries: Counter,
}

/// Counters of one sink.
#[derive(Clone, Debug)]
pub(crate) struct SinkMetrics {
    pub(crate) rows: Counter,
    pub(crate) batches: Counter,
    pub(crate) retries: Counter,
    pub(crate) busy_seconds: Counter<f64, AtomicU64>,
}

impl PipelineMetrics {
    /// Registers the counters of a pipeline.
    pub fn register(registry: &mut Registry, pipeline: &str) -> Self {
        let metrics = Self::unregistered(pipeline);
        let label = [("pipeline".into(), pipeline.to_owned().into())];
        let own = registry.sub_registry_with_prefix("cdchost").sub_registry_with_labels(label.into_iter());
        own.register("source_rows", "Rows handed on by the source", metrics.source_rows.clone());
        own.register_with_unit("source", "Bytes handed on by the source", Unit::Bytes, metrics.source_bytes.clone());
        own.register("restarts", "Restarts after a failure", metrics.restarts.clone());
        own.register("epochs_stored", "Epochs whose record became durable", metrics.epochs_stored.clone());
        own.register("checkpoint_retries", "Calls to the store repeated", metrics.checkpoint_retries.clone());
        own.register("epoch_durable", "Newest epoch with a durable record", metrics.epoch_durable.clone());
        own.register("epoch_committed", "Newest epoch committed at all sinks", metrics.epoch_committed.clone());
        let seconds = Unit::Seconds;
        own.register_with_unit("prepare", "Barrier to prepared", seconds.clone(), metrics.prepare_seconds.clone());
        own.register_with_unit("store", "Prepared to durable", seconds.clone(), metrics.store_seconds.clone());
        own.register_with_unit("commit", "Durable to committed", seconds.clone(), metrics.commit_seconds.clone());
        own.register("path_rows_in", "Rows that came to transforms and routes", metrics.path.rows_in.clone());
        own.register("path_rows_out", "Rows that left them, once a target", metrics.path.rows_out.clone());
        own.register("path_retries", "Calls to transforms and routes repeated", metrics.path.retries.clone());
        let all = registry.sub_registry_with_prefix("cdchost_sink");
        all.register("rows", "Rows given to writers", metrics.sink_rows.clone());
        all.register("batches", "Batches given to writers", metrics.sink_batches.clone());
        all.register("retries", "Calls repeated", metrics.sink_retries.clone());
        all.register_with_unit("busy", "Time inside the writers' calls", seconds, metrics.sink_busy.clone());
        metrics
    }

    /// Counters that nobody reads.
    pub fn unregistered(pipeline: &str) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        Self {
            source_rows: Counter::default(),
            source_bytes: Counter::default(),
            restarts: Counter::default(),
            epochs_stored: Counter::default(),
            checkpoint_retries: Counter::default(),
            epoch_durable: Gauge::default(),
            epoch_committed: Gauge::default(),
            prepare_seconds: seconds(),
            store_seconds: seconds(),
            commit_seconds: seconds(),
            path: PathMetrics::default(),
            sink_rows: Family::default(),
            sink_batches: Family::default(),
            sink_retries: Family::default(),
            sink_busy: Family::default(),
            pipeline: pipeline.into(),
        }
    }

    pub(crate) fn path(&self) -> PathMetrics {
        self.path.clone()
    }

    pub(crate) fn sink(&self, sink: &str) -> SinkMetrics {
        let label = SinkLabel { pipeline: self.pipeline.to_string(), sink: sink.into() };
        SinkMetrics {
            rows: self.sink_rows.get_or_create(&label).clone(),
            batches: self.sink_batches.get_or_create(&label).clone(),
            retries: self.sink_retries.get_or_create(&label).clone(),
            busy_seconds: self.sink_busy.get_or_create(&label).clone(),
        }
    }
}
