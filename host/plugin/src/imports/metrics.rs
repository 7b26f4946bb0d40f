//! Metrics that guests keep, and the host's own about guests; bounded in number.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Names that one sink may make up.
const NAMES_MAX: usize = 100;
/// Bytes of such a name.
const NAME_BYTES_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    pipeline: String,
    plugin: String,
    name: String,
}

type FloatCounter = Counter<f64, AtomicU64>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Everything that is counted about guests, and by them.
#[derive(Clone, Debug)]
pub(crate) struct GuestMetrics {
    calls: Family<Labels, Counter>,
    call_seconds: Family<Labels, FloatCounter>,
    failures: Family<Labels, Counter>,
    counters: Family<Labels, Counter>,
    gauges: Family<Labels, FloatGauge>,
    histograms: Family<Labels, Histogram, fn() -> Histogram>,
}

fn histogram() -> Histogram {
    Histogram::new(prometheus_client::metrics::histogram::exponential_buckets(0.001, 4.0, 12))
}

impl Default for GuestMetrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            call_seconds: Family::default(),
            failures: Family::default(),
            counters: Family::default(),
            gauges: Family::default(),
            histograms: Family::new_with_constructor(histogram as fn() -> Histogram),
        }
    }
}

impl GuestMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("cdchost_plugin_calls", "Calls into plugins, by function", self.calls.clone());
        registry.register("cdchost_plugin_call_seconds", "Time in plugins, by function", self.call_seconds.clone());
        registry.register("cdchost_plugin_failures", "Traps, timeouts and broken contracts", self.failures.clone());
        registry.register("cdchost_plugin_counter", "Counters that plugins keep", self.counters.clone());
        registry.register("cdchost_plugin_gauge", "Gauges that plugins keep", self.gauges.clone());
        registry.register("cdchost_plugin_histogram", "Histograms that plugins keep", self.histograms.clone());
    }

    /// The part of one sink.
    pub(crate) fn operator(&self, pipeline: &str, operator: &str) -> OperatorMetrics {
        OperatorMetrics {
            metrics: self.clone(),
            pipeline: pipeline.into(),
            plugin: operator.into(),
            names: Arc::default(),
        }
    }
}

/// The metrics of one sink; clones share the count of names.
#[derive(Clone, Debug)]
pub(crate) struct OperatorMetrics {
    metrics: GuestMetrics,
    pipeline: String,
    plugin: String,
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl OperatorMetrics {
    pub(crate) fn called(&self, function: &'static str, took: Duration) {
        let labels = self.labels(function);
        self.metrics.calls.get_or_create(&labels).inc();
        self.metrics.call_seconds.get_or_create(&labels).inc_by(took.as_secs_f64());
    }

    pub(crate) fn failed(&self, function: &'static str) {
        self.metrics.failures.get_or_create(&self.labels(function)).inc();
    }

    pub(super) fn counter_add(&self, name: &str, by: u64) {
        if self.admit(name) {
            self.metrics.counters.get_or_create(&self.labels(name)).inc_by(by);
        }
    }

    pub(super) fn gauge_set(&self, name: &str, value: f64) {
        if self.admit(name) {
            self.metrics.gauges.get_or_create(&self.labels(name)).set(value);
        }
    }

    pub(super) fn histogram_record(&self, name: &str, value: f64) {
        if self.admit(name) {
            self.metrics.histograms.get_or_create(&self.labels(name)).observe(value);
        }
    }

    fn labels(&self, name: &str) -> Labels {
        Labels { pipeline: self.pipeline.clone(), plugin: self.plugin.clone(), name: name.into() }
    }

    /// Whether this name is one of the first [`NAMES_MAX`] and could stand as a label.
    fn admit(&self, name: &str) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) {
            return true;
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain);
        if !fits || names.len() >= NAMES_MAX {
            tracing::debug!(plugin = self.plugin, limit = NAMES_MAX, "metric of a plugin is not kept");
            return false;
        }
        names.insert(name.into())
    }
}
