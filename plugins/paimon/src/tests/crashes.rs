//! Death between any two steps: nothing is lost, nothing comes twice, nothing is left behind.

use cdchost_sdk::harness::Fault;
use cdchost_sdk::{Committable, Cut, Op, Outcome, Result};

use super::kit::{Run, Warehouse, cut, orders, table};

/// What the checkpoint store holds: the newest durable record.
#[derive(Default)]
struct Record {
    cut: Option<Cut>,
    items: Vec<Committable>,
}

const EPOCHS: u64 = 3;

/// One process: starts from the record and runs until the last epoch is committed, or dies where the store goes away.
fn live(warehouse: &Warehouse, generation: u64, record: &mut Record) -> Result<()> {
    let (mut run, recovered) = warehouse.start(generation, record.cut.as_ref(), &record.items)?;
    if let Some(failed) =
        recovered.outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Committed | Outcome::AlreadyCommitted))
    {
        return Err(cdchost_sdk::PluginError::remote("not-settled", format!("{failed:?}")));
    }
    run.create(&orders())?;
    run.create(&table("items"))?;
    let done = record.cut.as_ref().map_or(0, |cut| cut.epoch);
    // Epoch numbers are never used twice: those of a generation begin at its hundred.
    let first = generation * 100;
    for step in done_steps(record)..EPOCHS {
        let epoch = first.max(done + 1) + step;
        write_step(&mut run, step)?;
        let items = run.prepare(epoch)?;
        let cut = Cut { change_seq: step as i64, ..cut(epoch, generation) };
        *record = Record { cut: Some(cut.clone()), items: items.clone() };
        for outcome in run.committer(|committer| cdchost_sdk::Committer::commit(committer, &cut, &items))? {
            if let Outcome::Failed(error) = outcome {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// How many steps the record covers; its cut says so in place of a source's offset.
fn done_steps(record: &Record) -> u64 {
    record.cut.as_ref().map_or(0, |cut| cut.change_seq as u64 + 1)
}

fn write_step(run: &mut Run, step: u64) -> Result<()> {
    let sequence = 10 + step as i64 * 10;
    let key = step as i32;
    run.write(
        &orders(),
        &[(key, Op::Insert, sequence, Some("order")), (50, Op::UpdateAfter, sequence, Some(NOTES[step as usize]))],
    )?;
    run.write(&table("items"), &[(key, Op::Insert, sequence, Some("item")), (key - 1, Op::Delete, sequence, None)])
}

const NOTES: [&str; 3] = ["first", "second", "third"];

#[test]
fn death_at_any_write_loses_and_doubles_nothing() {
    let mut deaths = 0;
    for fault in [Fault::Before, Fault::After] {
        for writes in 0.. {
            let warehouse = Warehouse::new();
            let mut record = Record::default();
            warehouse.world.go_away_after(writes, fault);
            let outcome = live(&warehouse, 1, &mut record);
            if !warehouse.world.come_back() {
                outcome.unwrap();
                break;
            }
            deaths += 1;
            live(&warehouse, 2, &mut record).unwrap_or_else(|error| panic!("write {writes} {fault:?}: {error:?}"));
            check(&warehouse, &format!("write {writes} {fault:?}"));
        }
    }
    assert!(deaths > 40, "only {deaths} deaths");
}

#[test]
fn death_in_recovery_itself_is_survived() {
    for writes in 0..60 {
        let warehouse = Warehouse::new();
        let mut record = Record::default();
        // The first process dies in the midst, the second at each of its first steps, the third comes through.
        warehouse.world.go_away_after(25, Fault::Before);
        live(&warehouse, 1, &mut record).unwrap_err();
        warehouse.world.come_back();
        warehouse.world.go_away_after(writes, Fault::After);
        let second = live(&warehouse, 2, &mut record);
        if warehouse.world.come_back() {
            live(&warehouse, 3, &mut record).unwrap_or_else(|error| panic!("write {writes}: {error:?}"));
        } else {
            second.unwrap();
        }
        check(&warehouse, &format!("second death at write {writes}"));
    }
}

/// A lake that was emptied, or put back to an older state, must not be taken for one that holds what was committed.
#[test]
fn the_marker_is_what_the_lake_says_not_what_the_record_says() {
    let recovered = |warehouse: &Warehouse, generation: u64, epoch: u64| {
        let (_, recovered) = warehouse.start(generation, Some(&cut(epoch, 1)), &[]).unwrap();
        recovered.progress.map(|progress| progress.cut.epoch)
    };
    assert_eq!(recovered(&Warehouse::new(), 2, 100), None);
    let warehouse = Warehouse::new();
    let mut record = Record::default();
    live(&warehouse, 1, &mut record).unwrap();
    let newest = record.cut.unwrap().epoch;
    assert_eq!(recovered(&warehouse, 2, newest + 7), Some(newest));
}

fn check(warehouse: &Warehouse, when: &str) {
    let orders: Vec<_> = warehouse.rows("orders").into_iter().collect();
    let expected = [(0, "order"), (1, "order"), (2, "order"), (50, "third")].map(|(key, note)| (key, note.to_owned()));
    assert_eq!(orders, expected, "{when}");
    let items: Vec<_> = warehouse.rows("items").into_iter().collect();
    assert_eq!(items, [(2, "item".to_owned())], "{when}");
    for table in ["orders", "items"] {
        assert_eq!(warehouse.snapshots(table).len(), 3, "{when}: one snapshot an epoch");
        assert_eq!(warehouse.unnamed_data_files(table), Vec::<String>::new(), "{when}: orphans");
    }
}
