use std::sync::Arc;

use super::*;
use crate::derive::tests::record;

fn chain(base: Option<u64>, open: &[u64]) -> ChainState {
    let mut parent = None;
    let mut made = |slot: u64, epoch: u64| {
        let next = record(slot, 1, epoch, parent.as_ref());
        parent = Some(next.clone());
        Arc::new(next)
    };
    let base = base.map(|epoch| made(2, epoch));
    let open: Vec<_> = open.iter().enumerate().map(|(i, &epoch)| made(3 + i as u64, epoch)).collect();
    let top = open.last().or(base.as_ref()).map_or(0, |record| record.epoch().0);
    ChainState {
        committed: base.as_ref().map(|record| record.epoch()),
        base,
        damaged: None,
        epoch_top: Epoch(top),
        end: Slot(9),
        open,
    }
}

fn damaged_chain(base: Option<u64>, open: &[u64]) -> ChainState {
    ChainState { damaged: Some((Slot(8), "torn".into())), ..chain(base, open) }
}

/// A report of a sink whose marker names this epoch, with the records' own generation and lineage.
fn at(epoch: Option<u64>) -> SinkReport {
    let progress = epoch.map(|epoch| SinkProgress { pipeline: "sales".into(), cut: record(2, 1, epoch, None).cut });
    SinkReport { sink: "lake".into(), keeps_marker: true, progress, lost: vec![], settled: vec![] }
}

fn lost(mut report: SinkReport, epochs: &[u64]) -> SinkReport {
    let item = |&epoch: &u64| LostItem { epoch: Epoch(epoch), reason: "expired".into() };
    report.lost = epochs.iter().map(item).collect();
    report
}

fn settled(mut report: SinkReport, epochs: &[u64]) -> SinkReport {
    report.settled = epochs.iter().map(|&epoch| Epoch(epoch)).collect();
    report
}

fn code(result: Result<Settled, Refusal>) -> String {
    match result {
        Ok(Settled::Ready { first_epoch }) => format!("ready {first_epoch}"),
        Ok(Settled::StepBack { lost }) => format!("step-back {lost}"),
        Err(refusal) => refusal.code().into(),
    }
}

fn decide(chain: &ChainState, reports: &[SinkReport]) -> String {
    match plan(chain) {
        Ok(plan) => code(settle("sales", &plan, chain, reports)),
        Err(refusal) => refusal.code().into(),
    }
}

#[test]
fn a_fresh_store_wants_a_fresh_target() {
    assert_eq!(decide(&chain(None, &[]), &[at(None)]), "ready 1");
    assert_eq!(decide(&chain(None, &[]), &[at(None), at(Some(4))]), "store-empty-target-not");
    let mut noted = chain(None, &[]);
    noted.committed = Some(Epoch(3));
    assert_eq!(decide(&noted, &[at(None)]), "records-gone");
}

#[test]
fn a_target_may_stand_at_the_base_or_at_any_open_epoch() {
    let open = chain(Some(3), &[5, 6]);
    for epoch in [3, 5, 6] {
        assert_eq!(decide(&open, &[at(Some(epoch))]), "ready 7", "{epoch}");
    }
    for (epoch, expected) in [
        (Some(2), "target-behind"),
        (Some(4), "target-of-another-lineage"),
        (Some(7), "target-ahead"),
        (None, "target-marker-gone"),
    ] {
        assert_eq!(decide(&open, &[at(Some(5)), at(epoch)]), expected, "{epoch:?}");
    }
}

#[test]
fn before_the_first_commit_a_target_has_no_marker() {
    assert_eq!(decide(&chain(None, &[1]), &[at(None)]), "ready 2");
    assert_eq!(decide(&chain(None, &[1]), &[at(Some(1))]), "ready 2");
}

#[test]
fn a_sink_that_keeps_no_marker_is_believed() {
    let mut silent = at(None);
    silent.keeps_marker = false;
    assert_eq!(decide(&chain(Some(3), &[]), &[silent.clone()]), "ready 4");
    assert_eq!(decide(&damaged_chain(Some(3), &[]), &[silent]), "record-damaged");
}

#[test]
fn markers_of_others_are_refused() {
    let mut other = at(Some(3));
    other.progress.as_mut().unwrap().pipeline = "other".into();
    assert_eq!(decide(&chain(Some(3), &[]), &[other]), "target-of-another-pipeline");
    let mut lineage = at(Some(3));
    lineage.progress.as_mut().unwrap().cut.lineage = cdchost_model::Lineage("x".into());
    assert_eq!(decide(&chain(Some(3), &[]), &[lineage]), "target-of-another-lineage");
    let mut generation = at(Some(3));
    generation.progress.as_mut().unwrap().cut.generation = cdchost_model::Generation(9);
    assert_eq!(decide(&chain(Some(3), &[]), &[generation]), "target-of-another-lineage");
    let mut copy = at(Some(3));
    copy.progress.as_mut().unwrap().cut.offset = cdchost_model::SourceOffset("elsewhere".into());
    assert_eq!(decide(&chain(Some(3), &[]), &[copy.clone()]), "target-of-another-run");
    assert_eq!(decide(&chain(None, &[3]), &[copy]), "target-of-another-run");
}

#[test]
fn epochs_begin_above_everything_that_was_ever_seen() {
    let mut gap = chain(Some(3), &[]);
    gap.epoch_top = Epoch(40);
    assert_eq!(decide(&gap, &[at(Some(3))]), "ready 41");
}

#[test]
fn a_damaged_newest_record_is_passed_over_only_if_every_target_shows_that_it_does_not_hold_it() {
    let damaged = damaged_chain(Some(3), &[5]);
    assert_eq!(decide(&damaged, &[at(Some(3)), at(Some(5))]), format!("ready {}", 6 + (1u64 << 32)));
    assert_eq!(decide(&damaged, &[at(Some(5)), at(Some(6))]), "target-ahead");
    assert_eq!(decide(&damaged, &[at(Some(5)), at(None)]), "record-damaged");
    let mut noted = damaged_chain(Some(3), &[]);
    noted.committed = Some(Epoch(4));
    assert_eq!(decide(&noted, &[at(Some(3))]), "record-damaged");
    assert_eq!(decide(&damaged_chain(None, &[]), &[at(None)]), "record-damaged");
}

#[test]
fn an_epoch_lost_whole_is_made_again_from_the_record_before() {
    assert_eq!(decide(&chain(Some(3), &[5]), &[lost(at(Some(3)), &[5, 5])]), "step-back 5");
    assert_eq!(decide(&chain(Some(3), &[5, 6]), &[settled(lost(at(Some(5)), &[6]), &[5])]), "step-back 6");
    assert_eq!(decide(&chain(Some(3), &[5, 6]), &[lost(at(Some(3)), &[6]), lost(at(Some(3)), &[5])]), "step-back 5");
}

#[test]
fn an_epoch_lost_in_part_or_without_a_record_before_is_final() {
    assert_eq!(decide(&chain(Some(3), &[5]), &[settled(lost(at(Some(3)), &[5]), &[5])]), "target-lost-prepared");
    assert_eq!(decide(&chain(Some(3), &[5, 6]), &[settled(lost(at(Some(3)), &[5]), &[6])]), "target-lost-prepared");
    assert_eq!(decide(&chain(None, &[1]), &[lost(at(None), &[1])]), "target-lost-prepared");
    // After the step back, a sink that holds the lost epoch is ahead of the record.
    let before = chain(Some(3), &[5]).before(Epoch(5));
    assert_eq!(decide(&before, &[at(Some(3)), at(Some(5))]), "target-ahead");
}

#[test]
fn sinks_are_neither_dropped_nor_added_in_silence() {
    let record = record(2, 1, 1, None);
    assert_eq!(match_sinks(&record, &["log", "lake"]), Ok(()));
    assert_eq!(match_sinks(&record, &["lake"]).unwrap_err().code(), "sink-removed");
    assert_eq!(match_sinks(&record, &["lake", "log", "new"]).unwrap_err().code(), "sink-added");
}
