//! Metrics that guests keep, and the host's own about guests; bounded in number.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
            kept: Arc::default(),
        }
    }
}

/// The metrics of one sink; clones share what was looked up. Labels are made once a name: a lookup costs less than a
/// call into a guest.
#[derive(Clone, Debug)]
pub(crate) struct OperatorMetrics {
    metrics: GuestMetrics,
    pipeline: String,
    plugin: String,
    kept: Arc<Mutex<Kept>>,
}

/// Metrics by name.
#[derive(Debug, Default)]
struct Kept {
    calls: HashMap<&'static str, (Counter, FloatCounter)>,
    counters: HashMap<String, Counter>,
    gauges: HashMap<String, FloatGauge>,
    histograms: HashMap<String, Histogram>,
}

impl Kept {
    fn is_full(&self) -> bool {
        self.counters.len() + self.gauges.len() + self.histograms.len() >= NAMES_MAX
    }
}

impl OperatorMetrics {
    pub(crate) fn called(&self, function: &'static str, took: Duration) {
        let mut kept = self.kept();
        let (calls, seconds) = kept.calls.entry(function).or_insert_with(|| {
            let labels = self.labels(function);
            let (calls, seconds) = (&self.metrics.calls, &self.metrics.call_seconds);
            (calls.get_or_create_owned(&labels), seconds.get_or_create_owned(&labels))
        });
        calls.inc();
        seconds.inc_by(took.as_secs_f64());
    }

    pub(crate) fn failed(&self, function: &'static str) {
        self.metrics.failures.get_or_create(&self.labels(function)).inc();
    }

    pub(super) fn counter_add(&self, name: &str, by: u64) {
        let find = |kept: &mut Kept, name: &str| kept.counters.get(name).cloned();
        if let Some(counter) = self.keep(name, find, |kept, labels| {
            let counter = self.metrics.counters.get_or_create_owned(labels);
            kept.counters.insert(name.into(), counter.clone());
            counter
        }) {
            counter.inc_by(by);
        }
    }

    pub(super) fn gauge_set(&self, name: &str, value: f64) {
        let find = |kept: &mut Kept, name: &str| kept.gauges.get(name).cloned();
        if let Some(gauge) = self.keep(name, find, |kept, labels| {
            let gauge = self.metrics.gauges.get_or_create_owned(labels);
            kept.gauges.insert(name.into(), gauge.clone());
            gauge
        }) {
            gauge.set(value);
        }
    }

    pub(super) fn histogram_record(&self, name: &str, value: f64) {
        let find = |kept: &mut Kept, name: &str| kept.histograms.get(name).cloned();
        if let Some(histogram) = self.keep(name, find, |kept, labels| {
            let histogram = self.metrics.histograms.get_or_create_owned(labels);
            kept.histograms.insert(name.into(), histogram.clone());
            histogram
        }) {
            histogram.observe(value);
        }
    }

    /// The metric of this name: found, or made if it is one of the first [`NAMES_MAX`] and could stand as a label.
    fn keep<M>(
        &self,
        name: &str,
        find: impl FnOnce(&mut Kept, &str) -> Option<M>,
        make: impl FnOnce(&mut Kept, &Labels) -> M,
    ) -> Option<M> {
        let mut kept = self.kept();
        if let Some(metric) = find(&mut kept, name) {
            return Some(metric);
        }
        if kept.is_full() || !is_name(name) {
            tracing::debug!(plugin = self.plugin, limit = NAMES_MAX, "metric of a plugin is not kept");
            return None;
        }
        Some(make(&mut kept, &self.labels(name)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn labels(&self, name: &str) -> Labels {
        Labels { pipeline: self.pipeline.clone(), plugin: self.plugin.clone(), name: name.into() }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_in_form_and_number() {
        let metrics = GuestMetrics::default();
        let sink = metrics.operator("p", "s");
        for name in ["", "Rows", "rows total", "rows{", &"x".repeat(65)] {
            sink.counter_add(name, 1);
        }
        for n in 0..2 * NAMES_MAX {
            sink.counter_add(&format!("n{n}"), 1);
            sink.gauge_set("late", 1.0);
        }
        sink.clone().counter_add("n1", 4);
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("name=")).collect();
        assert_eq!(lines.len(), NAMES_MAX);
        let line = "cdchost_plugin_counter_total{pipeline=\"p\",plugin=\"s\",name=\"n1\"} 5";
        assert!(lines.contains(&line), "{lines:?}");
        assert!(text.contains("cdchost_plugin_gauge{pipeline=\"p\",plugin=\"s\",name=\"late\"} 1.0"));
    }
}
