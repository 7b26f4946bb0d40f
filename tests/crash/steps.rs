//! Every failpoint with two sinks: the run that meets it dies there, the next one makes good.

use anyhow::{Context, Result, ensure};
use cdchost_pipeline::FAILPOINTS;

use crate::scene::Scene;

/// Beside the first to come there: with one sink of two prepared, one writer of two, one sink committed or recovered.
const OF_ONE: [&str; 6] = [
    "checkpoint-prepared-target-1",
    "checkpoint-prepared-lines-0",
    "commit-before-target",
    "commit-before-lines",
    "recovery-after-recover-target",
    "recovery-after-recover-lines",
];

/// No checkpoint comes by itself, so a run dies in the epoch that the test asked for.
const NEVER: &str = "1h";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_dies_at_any_step_leaves_what_the_next_makes_good() -> Result<()> {
    let mut scene = Scene::open(NEVER).await?;
    for failpoint in FAILPOINTS.into_iter().chain(OF_ONE) {
        let step = async {
            if failpoint.starts_with("recovery") {
                // What there is to recover: an epoch that is durable and not committed.
                scene.die_at("checkpoint-after-persist").await?;
            }
            scene.die_at(failpoint).await?;
            scene.make_good().await?;
            scene.compare().await
        };
        step.await.with_context(|| failpoint.to_owned())?;
    }
    Ok(())
}

/// Records that a store keeps.
const RETAINED: usize = 3;

/// Each leaves what the next finds: an epoch that is durable, and is noted by none.
const IN_RECOVERY: [&str; 4] =
    ["recovery-before-claim", "recovery-before-recover", "recovery-after-recover", "recovery-before-note"];

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_that_dies_twenty_times_ends_well_and_leaves_no_litter() -> Result<()> {
    let mut scene = Scene::open(NEVER).await?;
    scene.make_good().await?;
    scene.die_at("checkpoint-after-persist").await?;
    let (_, at_first) = scene.objects()?;
    let mut in_targets = Vec::new();
    for _ in 0..5 {
        for failpoint in IN_RECOVERY {
            scene.die_at(failpoint).await.with_context(|| failpoint.to_owned())?;
        }
        in_targets.push(scene.objects()?.0);
    }
    let (_, at_last) = scene.objects()?;
    ensure!(in_targets.windows(2).all(|turns| turns[0] == turns[1]), "the targets grow: {in_targets:?}");
    // A run that has claimed its place leaves that place, and nothing else.
    ensure!(at_last <= at_first + 15 + 1, "{at_first} objects in the store became {at_last}");
    // Those lie between records, and go with the older of them.
    for _ in 0..RETAINED {
        scene.change().await?;
        scene.make_good().await?;
    }
    let (_, at_end) = scene.objects()?;
    ensure!(at_end <= at_first + RETAINED, "{at_first} objects in the store became {at_end}");
    scene.compare().await
}
