//! The status as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cdchost_connector::{SnapshotState, SourcePhase, SourceProgress, TableProgress};
use cdchost_model::TableId;
use cdchost_pipeline::{HeldUp, PipelineStatus};
use serde_json::{Value, json};

/// What is known of a sink before it runs.
#[derive(Clone, Debug)]
pub(crate) struct SinkIdentity {
    pub(crate) id: String,
    pub(crate) plugin: String,
    pub(crate) digest: [u8; 32],
    pub(crate) parallelism: u32,
}

/// All that a pipeline says of itself at `now` (microseconds since the epoch).
pub(crate) fn status(pipeline: &str, sinks: &[SinkIdentity], status: &PipelineStatus, now: i64) -> Value {
    let source = &status.source;
    json!({
        "pipeline": pipeline,
        "state": status.state.name(),
        "reason": status.reason.as_ref().map(super::error),
        "generation": status.generation.map(|generation| generation.0),
        "epoch": {
            "durable": status.durable.map(|epoch| epoch.0),
            "committed": status.committed.map(|epoch| epoch.0),
            "committed-ms": status.committed_micros.map(|at| age_ms(at, now)),
            "unchanged-ms": status.unchanged_micros.map(|at| age_ms(at, now)),
        },
        "held-up": status.held_up.iter().map(|(call, held)| held_up(call, held, now)).collect::<Vec<_>>(),
        "phase": phase_name(source.phase),
        "caught-up": source.caught_up,
        "position": source.position,
        "lag-ms": lag_ms(source, now),
        "restarts": status.restarts,
        "reconnects": source.reconnects,
        "last-disconnect": source.last_disconnect,
        "in-one-piece": source.in_one_piece,
        "ignored": source.ignored,
        "tables": source.tables.iter().map(|(id, progress)| table(id, progress, &status.routes)).collect::<Vec<_>>(),
        "sinks": sinks.iter().map(sink).collect::<Vec<_>>(),
    })
}

/// How far the source is behind its server: nothing once it has read all that the server has, unknown before the first
/// transaction.
pub(crate) fn lag_ms(source: &SourceProgress, now: i64) -> Option<i64> {
    if source.caught_up {
        return Some(0);
    }
    // A bounded run that has ended has read all that it was to read.
    let event = source.event_time_micros.filter(|_| source.phase != SourcePhase::Ended);
    event.map(|event| age_ms(event, now))
}

fn age_ms(at: i64, now: i64) -> i64 {
    (now.saturating_sub(at) / 1_000).max(0)
}

/// A call that is repeated until it is done.
fn held_up(call: &str, held: &HeldUp, now: i64) -> Value {
    let HeldUp { since_micros, tries, reason } = held;
    json!({ "call": call, "since-ms": age_ms(*since_micros, now), "tries": tries, "reason": super::error(reason) })
}

/// The word that stands in status.
pub(crate) fn phase_name(phase: SourcePhase) -> &'static str {
    match phase {
        SourcePhase::Starting => "starting",
        SourcePhase::Snapshot => "snapshot",
        SourcePhase::Streaming => "streaming",
        SourcePhase::Ended => "ended",
    }
}

fn table(id: &TableId, progress: &TableProgress, routes: &BTreeMap<TableId, Vec<TableId>>) -> Value {
    let snapshot = match progress.snapshot {
        SnapshotState::Waiting => "waiting",
        SnapshotState::Reading => "reading",
        SnapshotState::Done => "done",
    };
    // Without transforms and routes a table goes to one of its own name.
    let targets = match routes.get(id) {
        Some(targets) => targets.iter().map(ToString::to_string).collect(),
        None if routes.is_empty() => vec![id.to_string()],
        None => Vec::new(),
    };
    json!({
        "table": id.to_string(),
        "targets": targets,
        "snapshot": snapshot,
        "rows-read": progress.rows_read,
        "rows-estimate": progress.rows_estimate,
        "chunks": progress.chunks_done,
        "changes": progress.changes,
    })
}

fn sink(sink: &SinkIdentity) -> Value {
    json!({ "id": sink.id, "plugin": sink.plugin, "digest": hex(&sink.digest), "parallelism": sink.parallelism })
}

/// A digest as people compare it.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use cdchost_connector::StopClass;
    use cdchost_model::{Epoch, Generation};
    use cdchost_pipeline::{PipelineState, Reason};

    use super::*;

    #[test]
    fn a_pipeline_that_has_not_begun_knows_little() {
        let status = status("demo", &[], &PipelineStatus::default(), 0);
        assert_eq!(status["state"], "starting");
        assert_eq!(
            status["epoch"],
            json!({"durable": null, "committed": null, "committed-ms": null, "unchanged-ms": null})
        );
        assert_eq!(
            (&status["reason"], &status["lag-ms"], &status["generation"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
    }

    #[test]
    fn all_of_it_is_shown() {
        let table = TableProgress {
            snapshot: SnapshotState::Reading,
            rows_read: 5,
            rows_estimate: Some(9),
            chunks_done: 2,
            changes: 3,
        };
        let source = SourceProgress {
            phase: SourcePhase::Snapshot,
            position: "binlog.000001:4".into(),
            event_time_micros: Some(1_000_000),
            tables: [(TableId::new("shop", "orders"), table)].into(),
            ..SourceProgress::default()
        };
        let full =
            Reason { class: StopClass::Storage, code: "f".into(), message: "full".into(), instruction: "r".into() };
        let held = HeldUp { since_micros: 2_500_000, tries: 4, reason: full };
        let reason = Reason { class: StopClass::Sink, code: "c".into(), message: "m".into(), instruction: "i".into() };
        let status = PipelineStatus {
            state: PipelineState::Restarting,
            reason: Some(reason),
            generation: Some(Generation(7)),
            durable: Some(Epoch(5)),
            committed: Some(Epoch(4)),
            committed_micros: Some(500_000),
            unchanged_micros: Some(3_000_000),
            held_up: [("checkpoint store: record".into(), held)].into(),
            restarts: 1,
            source,
            routes: BTreeMap::new(),
            sinks: Vec::new(),
        };
        let sink = SinkIdentity { id: "lake".into(), plugin: "paimon".into(), digest: [0xab; 32], parallelism: 2 };
        let shown = super::status("demo", &[sink], &status, 3_500_000);
        let expect = json!({
            "pipeline": "demo",
            "state": "restarting",
            "reason": {"class": "sink", "code": "c", "message": "m", "instruction": "i"},
            "generation": 7,
            "epoch": {"durable": 5, "committed": 4, "committed-ms": 3000, "unchanged-ms": 500},
            "held-up": [{
                "call": "checkpoint store: record", "since-ms": 1000, "tries": 4,
                "reason": {"class": "storage", "code": "f", "message": "full", "instruction": "r"},
            }],
            "phase": "snapshot",
            "caught-up": false,
            "position": "binlog.000001:4",
            "lag-ms": 2500,
            "restarts": 1,
            "reconnects": 0,
            "last-disconnect": null,
            "in-one-piece": null,
            "ignored": {},
            "tables": [{"table": "shop.orders", "targets": ["shop.orders"], "snapshot": "reading", "rows-read": 5, "rows-estimate": 9, "chunks": 2,
                        "changes": 3}],
            "sinks": [{"id": "lake", "plugin": "paimon", "digest": "ab".repeat(32), "parallelism": 2}],
        });
        assert_eq!(shown, expect);
    }
}
