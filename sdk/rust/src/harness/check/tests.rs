//! The check finds each sink that breaks the contract, and says how.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::object_store::{Creation, Root};
use crate::runtime::context;
use crate::{
    Batch, Blob, Capabilities, Committable, Committer, Cut, Manifest, ReadPlan, Recovered, Schema, SchemaChangeRequest,
    Writer, data,
};

#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
enum Defect {
    None,
    ShowsAtPrepare,
    CommitsTwice,
    IgnoresPending,
    ShowsAborted,
    HidesOutcomes,
    ItemsForNothing,
    LeavesStaged,
    TakesNewerAway,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Options {
    defect: Defect,
}

/// Stages an epoch's rows in one object and moves it at commit.
struct Staging {
    defect: Defect,
    lines: String,
}

fn out() -> Root {
    Root::new("out")
}

fn shown(staged: &str) -> String {
    staged.replace("staged/", "shown/").split_once('-').map(|(_, rest)| format!("shown/{rest}")).unwrap()
}

impl Staging {
    fn settle(&self, items: &[Committable]) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for item in items {
            let staged = String::from_utf8(item.payload.clone()).unwrap();
            let mut path = shown(&staged);
            if self.defect == Defect::CommitsTwice {
                path += &out().list_all("shown")?.len().to_string();
            }
            let outcome = match out().get(&staged) {
                Ok(lines) => match out().put_if_absent(&path, &lines)? {
                    Creation::Created => Outcome::Committed,
                    Creation::AlreadyExists => Outcome::AlreadyCommitted,
                },
                Err(_) if out().get(&path).is_ok() => Outcome::AlreadyCommitted,
                Err(error) => Outcome::Lost(error.to_string()),
            };
            outcomes.push(outcome);
            if !matches!(self.defect, Defect::LeavesStaged | Defect::CommitsTwice) {
                out().delete(&[staged])?;
            }
        }
        Ok(outcomes)
    }
}

impl Sink for Staging {
    type Options = Options;
    type Committer = Self;
    type Writer = Self;

    fn manifest() -> Manifest {
        crate::manifest! { name: "staging", options: Options }
    }

    fn committer(options: Options) -> Result<(Self, Capabilities)> {
        Ok((Self { defect: options.defect, lines: String::new() }, Capabilities::new(Delivery::Transactional)))
    }

    fn writer(options: Options, _restored: Vec<Blob>) -> Result<Self> {
        Ok(Self { defect: options.defect, lines: String::new() })
    }
}

impl Writer for Staging {
    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<ReadPlan> {
        Ok(ReadPlan::all(schema))
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        let ids: &[i64] = batch.columns()[0].as_i64()?;
        let texts: data::Texts<'_> = batch.columns().last().unwrap().as_text()?;
        for (row, op) in batch.ops().enumerate() {
            self.lines += &format!("{} {} {}\n", op.name(), ids[row], texts.get(row));
        }
        Ok(())
    }

    fn prepare_commit(&mut self, at: &Cut) -> Result<Vec<Committable>> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() && self.defect != Defect::ItemsForNothing {
            return Ok(Vec::new());
        }
        let staged = format!("staged/{}-{}-{}", at.generation, at.epoch, context().subtask);
        out().put(&staged, lines.as_bytes())?;
        if self.defect == Defect::ShowsAtPrepare {
            out().put(&shown(&staged), lines.as_bytes())?;
        }
        let (epoch, generation, rows) = (at.epoch, at.generation, lines.lines().count() as u64);
        let (key, payload, bytes) = (staged.clone(), staged.into_bytes(), lines.len() as u64);
        Ok(vec![Committable { epoch, generation, key, format: 1, payload, rows, bytes }])
    }
}

impl Committer for Staging {
    fn recover(&mut self, _restored: Option<&Cut>, pending: &[Committable]) -> Result<Recovered> {
        let outcomes = match self.defect {
            Defect::IgnoresPending => vec![Outcome::AlreadyCommitted; pending.len()],
            _ => self.settle(pending)?,
        };
        let generation = |path: &str| path["staged/".len()..].split_once('-').unwrap().0.parse::<u64>().unwrap();
        for staged in out().list_all("staged")? {
            let is_older = generation(&staged.path) < context().generation;
            let removes = match self.defect {
                Defect::LeavesStaged => false,
                Defect::TakesNewerAway => true,
                _ => is_older,
            };
            if removes {
                out().delete(&[staged.path])?;
            }
        }
        Ok(Recovered { outcomes, progress: None })
    }

    fn commit(&mut self, _at: &Cut, items: &[Committable]) -> Result<Vec<Outcome>> {
        let mut outcomes = self.settle(items)?;
        if self.defect == Defect::HidesOutcomes {
            outcomes.pop();
        }
        Ok(outcomes)
    }

    fn abort(&mut self, items: &[Committable]) -> Result<()> {
        if self.defect == Defect::ShowsAborted {
            self.settle(items)?;
            return Ok(());
        }
        let staged = items.iter().map(|item| String::from_utf8(item.payload.clone()).unwrap());
        Ok(out().delete(&staged.collect::<Vec<_>>())?)
    }

    fn apply_schema_change(&mut self, _request: &SchemaChangeRequest) -> Result<()> {
        Ok(())
    }
}

/// What the check says of a sink with this defect; none if it finds nothing.
fn finding(defect: &str) -> Option<String> {
    let lines = |world: &World, folder: &str| {
        let paths = world.paths("out").into_iter().filter(|path| path.starts_with(folder));
        let texts = paths.map(|path| String::from_utf8(world.object("out", &path).unwrap()).unwrap());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let found = std::panic::catch_unwind(|| {
        check_sink::<Staging>(&Check {
            config: json!({ "defect": defect }),
            roots: &["out"],
            visible: &|world| lines(world, "shown/"),
            left_over: &|world| world.paths("out").into_iter().filter(|path| path.starts_with("staged/")).collect(),
        });
    });
    found.err().map(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).unwrap_or_default(),
    })
}

#[test]
fn a_sink_that_keeps_the_contract_passes() {
    assert_eq!(finding("None"), None);
}

#[test]
fn each_broken_promise_is_named() {
    for (defect, expect) in [
        ("ShowsAtPrepare", "rows show between prepare and commit"),
        ("CommitsTwice", "changed the rows"),
        ("IgnoresPending", "other rows than without it"),
        ("ShowsAborted", "aborted rows show"),
        ("HidesOutcomes", "outcomes for"),
        ("ItemsForNothing", "an epoch without rows has items"),
        ("LeavesStaged", "left over"),
        ("TakesNewerAway", "commit of what the successor prepared"),
    ] {
        let found = finding(defect).unwrap_or_else(|| panic!("{defect} was not found"));
        assert!(found.contains(expect), "{defect}: {found}");
    }
}
