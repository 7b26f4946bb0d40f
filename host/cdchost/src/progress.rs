//! How far a running pipeline is: bars on a terminal, lines anywhere else.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use cdchost_connector::{SnapshotState, SourcePhase};
use cdchost_model::{Epoch, TableId};
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
    let mut meter = Meter::new(Instant::now());
    let mut tick = tokio::time::interval(DRAW_EVERY);
    while status.has_changed().is_ok() {
        tick.tick().await;
        let status = status.borrow().clone();
        meter.look(&status, Instant::now());
        board.draw(&status, &meter.summary(&status, now_micros(), Instant::now()));
    }
}

async fn tell(mut status: watch::Receiver<PipelineStatus>, now_micros: impl Fn() -> i64) {
    let mut meter = Meter::new(Instant::now());
    let (mut said, mut said_at) = (None, Instant::now());
    loop {
        let changed = tokio::time::timeout(LINE_EVERY, status.changed()).await;
        if matches!(changed, Ok(Err(_))) {
            return;
        }
        let status = status.borrow_and_update().clone();
        let (step, now) = (step(&status), Instant::now());
        if said.as_ref() == Some(&step) && now.duration_since(said_at) < LINE_EVERY {
            continue;
        }
        meter.look(&status, now);
        let summary = meter.summary(&status, now_micros(), now);
        tracing::info!(target: RUN, event = "progress", "{summary}");
        (said, said_at) = (Some(step), now);
    }
}

/// What is worth a line of its own when it changes.
fn step(status: &PipelineStatus) -> (&'static str, usize) {
    let done = status.source.tables.values().filter(|table| table.snapshot == SnapshotState::Done).count();
    (doing(status), done)
}

/// What the pipeline is doing, in a word.
fn doing(status: &PipelineStatus) -> &'static str {
    match status.state {
        PipelineState::Running if status.source.caught_up && status.source.phase == SourcePhase::Streaming => {
            "caught up"
        }
        PipelineState::Running => phase_name(status.source.phase),
        state => state.name(),
    }
}

/// The time that a speed is measured over.
const SPEED_OVER: Duration = Duration::from_secs(5);

/// Measures what a status alone does not say: speed, and the age of the last checkpoint.
struct Meter {
    /// Rows at moments of the last [`SPEED_OVER`], oldest first; one a look at most.
    looks: VecDeque<(Instant, u64)>,
    /// The tables were there at the last look.
    has_tables: bool,
    committed: Option<Epoch>,
    committed_at: Instant,
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self { looks: [(now, 0)].into(), has_tables: false, committed: None, committed_at: now }
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
        if status.committed != self.committed {
            (self.committed, self.committed_at) = (status.committed, now);
        }
    }

    fn rows_per_second(&self) -> u64 {
        let (Some((from, before)), Some((to, after))) = (self.looks.front(), self.looks.back()) else { return 0 };
        let micros = to.duration_since(*from).as_micros().max(1);
        let rate = u128::from(after - before) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn summary(&self, status: &PipelineStatus, now_micros: i64, now: Instant) -> String {
        let source = &status.source;
        let state = doing(status);
        let done = source.tables.values().filter(|table| table.snapshot == SnapshotState::Done).count();
        let chunks: u64 = source.tables.values().map(|table| table.chunks_done).sum();
        let tables = source.tables.len();
        let rows = grouped(rows(status));
        let mut parts = vec![format!("{state}: {done} of {tables} tables read, {chunks} chunks, {rows} rows")];
        parts.push(format!("{} rows/s", grouped(self.rows_per_second())));
        if let Some(lag) = lag_ms(source, now_micros) {
            parts.push(format!("lag {}.{} s", grouped((lag / 1_000).unsigned_abs()), lag % 1_000 / 100));
        }
        if let Some(epoch) = status.committed {
            let age = now.duration_since(self.committed_at).as_secs();
            parts.push(format!("checkpoint {epoch} committed {age} s ago"));
        }
        if status.restarts > 0 {
            parts.push(format!("{} restarts", status.restarts));
        }
        if let (PipelineState::Restarting, Some(reason)) = (status.state, &status.reason) {
            parts.push(printable(&reason.message));
        }
        parts.join(", ")
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
    use cdchost_connector::{SourceProgress, TableProgress};

    use super::*;

    fn status(rows_read: u64) -> PipelineStatus {
        let table =
            TableProgress { snapshot: SnapshotState::Reading, rows_read, chunks_done: 2, ..TableProgress::default() };
        let done = TableProgress { snapshot: SnapshotState::Done, changes: 1, ..TableProgress::default() };
        let tables = [(TableId::new("s", "a"), table), (TableId::new("s", "b"), done)].into();
        let source = SourceProgress { phase: SourcePhase::Snapshot, tables, ..SourceProgress::default() };
        PipelineStatus { state: PipelineState::Running, committed: Some(Epoch(3)), source, ..PipelineStatus::default() }
    }

    #[test]
    fn the_line_says_where_the_pipeline_is() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        let later = start + Duration::from_secs(10);
        meter.look(&status(9_999), start);
        meter.look(&status(49_999), later);
        let line = meter.summary(&status(49_999), 0, later + Duration::from_secs(2));
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
        let now = Instant::now();
        assert!(Meter::new(now).summary(&status, 3_340_000, now).contains("lag 2.3 s"));
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
