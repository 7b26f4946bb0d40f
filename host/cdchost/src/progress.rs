//! How far a running pipeline is: bars on a terminal, lines anywhere else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use cdchost_connector::{SnapshotState, SourcePhase};
use cdchost_model::TableId;
use cdchost_pipeline::{PipelineState, PipelineStatus};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::watch;

use crate::server::{lag_ms, phase_name};
use crate::telemetry::{RUN, Screen};

/// Time between two looks on a terminal.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Time between two lines where nothing changes but numbers.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Tables that have a bar at once.
const TABLE_BARS_MAX: usize = 8;

/// Shows progress until the pipeline has ended. Dropped, it clears what it drew.
pub(crate) async fn show(screen: Screen, status: watch::Receiver<PipelineStatus>, now_micros: impl Fn() -> i64) {
    match screen.bars() {
        Some(bars) => draw(bars.clone(), status, now_micros).await,
        None => tell(status, now_micros).await,
    }
}

async fn draw(bars: MultiProgress, status: watch::Receiver<PipelineStatus>, now_micros: impl Fn() -> i64) {
    let mut board = Board::new(bars);
    let mut known = Known::default();
    let mut meter = Meter::new(Instant::now());
    let mut tick = tokio::time::interval(DRAW_EVERY);
    while status.has_changed().is_ok() {
        tick.tick().await;
        let status = status.borrow().clone();
        known.tell_new(&status);
        meter.look(&status, Instant::now());
        board.draw(&status, &meter.summary(&status, now_micros()));
    }
}

async fn tell(mut status: watch::Receiver<PipelineStatus>, now_micros: impl Fn() -> i64) {
    let mut meter = Meter::new(Instant::now());
    let mut known = Known::default();
    let (mut said, mut said_at) = (None, Instant::now());
    loop {
        let changed = tokio::time::timeout(LINE_EVERY, status.changed()).await;
        if matches!(changed, Ok(Err(_))) {
            return;
        }
        let status = status.borrow_and_update().clone();
        let (step, now) = (step(&status), Instant::now());
        known.tell_new(&status);
        if said.as_ref() == Some(&step) && now.duration_since(said_at) < LINE_EVERY {
            continue;
        }
        meter.look(&status, now);
        let summary = meter.summary(&status, now_micros());
        tracing::info!(target: RUN, event = "progress", "{summary}");
        (said, said_at) = (Some(step), now);
    }
}

/// The tables that were there; each that comes later has a line of its own.
#[derive(Debug, Default)]
struct Known(BTreeSet<TableId>);

impl Known {
    fn tell_new(&mut self, status: &PipelineStatus) {
        for table in self.new_ones(status) {
            let table = printable(&table.to_string());
            tracing::info!(target: RUN, event = "table-taken-in", table, "table {table} is new, and is taken in");
        }
    }

    /// Those that were not there at the look before.
    fn new_ones(&mut self, status: &PipelineStatus) -> Vec<TableId> {
        let is_first = self.0.is_empty();
        let new: Vec<_> = status.source.tables.keys().filter(|table| !self.0.contains(*table)).cloned().collect();
        self.0.extend(new.iter().cloned());
        if is_first { Vec::new() } else { new }
    }
}

/// What is worth a line of its own when it changes.
fn step(status: &PipelineStatus) -> (&'static str, usize) {
    let done = status.source.tables.values().filter(|table| table.snapshot == SnapshotState::Done).count();
    (doing(status), done)
}

/// A call that failed so often is said to be held up: fewer are the usual noise of networks.
const HELD_UP_FROM: u64 = 3;

/// What the pipeline is doing, in a word.
fn doing(status: &PipelineStatus) -> &'static str {
    match status.state {
        PipelineState::Running if status.held_up.values().any(|held| held.tries >= HELD_UP_FROM) => "held up",
        PipelineState::Running if status.source.caught_up && status.source.phase == SourcePhase::Streaming => {
            "caught up"
        }
        PipelineState::Running => phase_name(status.source.phase),
        state => state.name(),
    }
}

/// The time that a speed is measured over.
const SPEED_OVER: Duration = Duration::from_secs(5);

/// Measures what a status alone does not say: speed, and the most rows so far.
struct Meter {
    /// Rows at moments of the last [`SPEED_OVER`], oldest first; one a look at most.
    looks: VecDeque<(Instant, u64)>,
    /// The tables were there at the last look.
    has_tables: bool,
    /// The most rows that there were at a look. After a restart some come again, and do not count again.
    most: u64,
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self { looks: [(now, 0)].into(), has_tables: false, most: 0 }
    }

    fn look(&mut self, status: &PipelineStatus, now: Instant) {
        let rows = rows(status);
        let is_restart = self.looks.back().is_some_and(|(_, before)| *before > rows);
        if is_restart || !std::mem::replace(&mut self.has_tables, !status.source.tables.is_empty()) {
            // The source counts anew, or the rows are those of earlier runs.
            self.looks.clear();
        }
        self.looks.push_back((now, rows));
        while self.looks.get(1).is_some_and(|(second, _)| now.duration_since(*second) > SPEED_OVER) {
            self.looks.pop_front();
        }
        self.most = self.most.max(rows);
    }

    fn rows_per_second(&self) -> u64 {
        let (Some((from, before)), Some((to, after))) = (self.looks.front(), self.looks.back()) else { return 0 };
        let micros = to.duration_since(*from).as_micros().max(1);
        let rate = u128::from(after - before) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn summary(&self, status: &PipelineStatus, now_micros: i64) -> String {
        let source = &status.source;
        let mut parts = vec![format!("{}{}", doing(status), self.read(status))];
        if let Some(lag) = lag_ms(source, now_micros) {
            parts.push(format!("lag {}.{} s", grouped((lag / 1_000).unsigned_abs()), lag % 1_000 / 100));
        }
        let seconds = |at: i64| grouped((now_micros.saturating_sub(at).max(0) / 1_000_000).unsigned_abs());
        if let (Some(epoch), Some(at)) = (status.committed, status.committed_micros) {
            parts.push(format!("checkpoint {epoch} committed {} s ago", seconds(at)));
        }
        if let Some(at) = status.unchanged_micros {
            parts.push(format!("nothing new since as of {} s ago", seconds(at)));
        }
        if status.restarts > 0 {
            parts.push(format!("{} restarts", status.restarts));
        }
        parts.extend(status.told_held_up(now_micros).map(|held| printable(&held)));
        if let (PipelineState::Restarting, Some(reason)) = (status.state, &status.reason) {
            parts.push(printable(&reason.message));
        }
        parts.join(", ")
    }

    /// How far the tables are; nothing before they are known.
    fn read(&self, status: &PipelineStatus) -> String {
        let tables = &status.source.tables;
        if tables.is_empty() {
            return String::new();
        }
        let done = tables.values().filter(|table| table.snapshot == SnapshotState::Done).count();
        let chunks: u64 = tables.values().map(|table| table.chunks_done).sum();
        let (rows, rate) = (grouped(self.most), grouped(self.rows_per_second()));
        format!(": {done} of {} tables read, {chunks} chunks, {rows} rows, {rate} rows/s", tables.len())
    }
}

/// All rows handed on so far: read from tables, and changed since.
fn rows(status: &PipelineStatus) -> u64 {
    status.source.tables.values().map(|table| table.rows_read.saturating_add(table.changes)).sum()
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A name from a server, without what could move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The bars: one for each table being read, one line for all.
struct Board {
    bars: MultiProgress,
    total: ProgressBar,
    tables: BTreeMap<TableId, ProgressBar>,
}

impl Board {
    fn new(bars: MultiProgress) -> Self {
        let total = bars.add(ProgressBar::new_spinner());
        total.set_style(style("{spinner} {wide_msg}"));
        Self { bars, total, tables: BTreeMap::new() }
    }

    fn draw(&mut self, status: &PipelineStatus, summary: &str) {
        let tables = &status.source.tables;
        let reading = |id: &TableId| tables.get(id).is_some_and(|table| table.snapshot == SnapshotState::Reading);
        self.tables.retain(|id, bar| {
            let stays = reading(id);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        for (id, table) in tables.iter().filter(|(id, _)| reading(id)) {
            if !self.tables.contains_key(id) && self.tables.len() < TABLE_BARS_MAX {
                let bar = self.bars.insert_before(&self.total, ProgressBar::new(0));
                bar.set_style(style("  {prefix:30!} {bar:30} {human_pos}/{human_len} rows"));
                bar.set_prefix(printable(&id.to_string()));
                self.tables.insert(id.clone(), bar);
            }
            if let Some(bar) = self.tables.get(id) {
                bar.set_length(table.rows_estimate.unwrap_or_default().max(table.rows_read));
                bar.set_position(table.rows_read);
            }
        }
        self.total.set_message(summary.to_owned());
        self.total.tick();
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.total.finish_and_clear();
        // A terminal that is gone needs no clearing.
        let _ = self.bars.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use cdchost_connector::{SourceProgress, StopClass, TableProgress};
    use cdchost_model::Epoch;
    use cdchost_pipeline::{HeldUp, Reason};

    use super::*;

    fn status(rows_read: u64) -> PipelineStatus {
        let table =
            TableProgress { snapshot: SnapshotState::Reading, rows_read, chunks_done: 2, ..TableProgress::default() };
        let done = TableProgress { snapshot: SnapshotState::Done, changes: 1, ..TableProgress::default() };
        let tables = [(TableId::new("s", "a"), table), (TableId::new("s", "b"), done)].into();
        let source = SourceProgress { phase: SourcePhase::Snapshot, tables, ..SourceProgress::default() };
        let (state, committed, committed_micros) = (PipelineState::Running, Some(Epoch(3)), Some(8_000_000));
        PipelineStatus { state, committed, committed_micros, source, ..PipelineStatus::default() }
    }

    #[test]
    fn the_line_says_where_the_pipeline_is() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        let later = start + Duration::from_secs(10);
        meter.look(&status(9_999), start);
        meter.look(&status(49_999), later);
        let line = meter.summary(&status(49_999), 20_000_000);
        let expect =
            "snapshot: 1 of 2 tables read, 2 chunks, 50,000 rows, 4,000 rows/s, checkpoint 3 committed 12 s ago";
        assert_eq!(line, expect);
    }

    #[test]
    fn rows_of_earlier_runs_are_no_speed() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        meter.look(&PipelineStatus::default(), start);
        meter.look(&status(1_000_000), start + Duration::from_secs(1));
        assert_eq!(meter.rows_per_second(), 0);
        meter.look(&status(1_000_500), start + Duration::from_secs(2));
        assert_eq!(meter.rows_per_second(), 500);
    }

    #[test]
    fn a_restarted_source_has_no_negative_speed() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        meter.look(&status(1_000), start + Duration::from_secs(5));
        meter.look(&status(10), start + Duration::from_secs(10));
        assert_eq!(meter.rows_per_second(), 0);
    }

    #[test]
    fn lag_is_told_in_seconds() {
        let mut status = status(0);
        status.source.event_time_micros = Some(1_000_000);
        let line = |status: &PipelineStatus| Meter::new(Instant::now()).summary(status, 3_340_000);
        assert!(line(&status).contains("lag 2.3 s"));
        status.source.phase = SourcePhase::Ended;
        assert!(!line(&status).contains("lag"), "a run that has ended is behind nothing");
    }

    #[test]
    fn rows_that_come_again_are_not_fewer_rows() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        meter.look(&status(519_168), start);
        meter.look(&status(515_768), start + Duration::from_secs(1));
        assert!(meter.summary(&status(515_768), 0).contains("519,169 rows"));
    }

    #[test]
    fn a_source_that_only_begins_has_no_tables_to_count() {
        assert_eq!(Meter::new(Instant::now()).summary(&PipelineStatus::default(), 0), "starting");
    }

    #[test]
    fn a_quiet_pipeline_is_told_from_one_whose_checkpoints_do_not_come() {
        let meter = Meter::new(Instant::now());
        let mut status = status(1);
        status.unchanged_micros = Some(77_000_000);
        let line = meter.summary(&status, 78_000_000);
        assert!(line.ends_with("checkpoint 3 committed 70 s ago, nothing new since as of 1 s ago"), "{line}");
    }

    #[test]
    fn what_is_held_up_is_said_with_its_reason() {
        let meter = Meter::new(Instant::now());
        let mut status = status(1);
        (status.source.phase, status.source.caught_up) = (SourcePhase::Streaming, true);
        assert_eq!(doing(&status), "caught up");
        let (code, message, instruction) = ("full".into(), "no space left on device".into(), "make room".into());
        let reason = Reason { class: StopClass::Storage, code, message, instruction };
        let held = HeldUp { since_micros: 10_000_000, tries: HELD_UP_FROM, reason };
        status.held_up.insert("sink lake: commit".into(), held);
        let line = meter.summary(&status, 72_000_000);
        let why = "sink lake: commit fails again and again for 62 s: no space left on device";
        assert!(line.starts_with("held up: ") && line.ends_with(why), "{line}");
    }

    #[test]
    fn only_tables_that_come_later_are_new() {
        let mut known = Known::default();
        let mut status = status(1);
        assert_eq!(known.new_ones(&PipelineStatus::default()), []);
        assert_eq!(known.new_ones(&status), []);
        let table = TableId::new("s", "later");
        status.source.tables.insert(table.clone(), TableProgress::default());
        assert_eq!(known.new_ones(&status), [table]);
        assert_eq!(known.new_ones(&status), []);
    }

    #[test]
    fn numbers_are_grouped() {
        let expect = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        assert!(expect.iter().all(|(number, text)| grouped(*number) == *text));
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a?[2Jb?c");
    }
}
