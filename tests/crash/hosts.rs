//! Hosts that are told twice to end, and hosts that sleep while another takes their place.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cdchost_tests::journal::{Event, Journal};
use cdchost_tests::pipeline::Pipeline;
use cdchost_tests::watchdog::Folder;
use cdchost_tests::{project, wait};

use crate::scene::{LIMIT, Scene};

/// A second signal does not wait for what the first began.
const AT_ONCE: Duration = Duration::from_secs(10);

fn wait_for(journal: &mut Journal, name: &str) -> Result<Event> {
    wait::until(name, LIMIT, || Ok(journal.read()?.into_iter().find(|event| event.name == name)))
}

/// Begins behind what earlier runs wrote.
fn journal_of(pipeline: &Pipeline) -> Result<Journal> {
    let mut journal = Journal::new(&pipeline.log());
    journal.read()?;
    Ok(journal)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once_and_costs_nothing() -> Result<()> {
    let mut scene = Scene::open("1h").await?;
    for (held, event) in [("checkpoint-before-persist", "prepared"), ("commit-before-lines", "record-stored")] {
        scene.change().await?;
        let mut journal = journal_of(&scene.pipeline)?;
        scene.pipeline.start(project::program()?, &[], &[("FAILPOINTS", &format!("{held}=sleep(600000)"))])?;
        scene.pipeline.wait_until_at_the_end_of(&scene.server, LIMIT).await?;
        scene.pipeline.signal("TERM")?;
        wait_for(&mut journal, event)?;
        // One that comes at once is taken for the first one's echo.
        let status = wait::until("the program ends", AT_ONCE, || {
            let ended = scene.pipeline.ended()?;
            if ended.is_none() {
                scene.pipeline.signal("TERM")?;
            }
            Ok(ended)
        })?;
        ensure!(status.code() == Some(143), "{held}: it ended with {status}");
        scene.make_good().await?;
        scene.compare().await?;
    }
    Ok(())
}

/// A pipeline in a folder of its own on the state and the targets of another, as on a machine that shares its storage.
fn beside(scene: &Scene, folder: &Folder) -> Result<Pipeline> {
    let pipeline = Pipeline::new(folder.path(), &scene.spec)?;
    let url = |folder: &Folder| format!("\"file://{}/", folder.path().display());
    let file = fs::read_to_string(pipeline.file())?;
    fs::write(pipeline.file(), file.replace(&url(folder), &url(&scene.folder)))?;
    Ok(pipeline)
}

/// The lock of the state folder does not reach other machines: what holds there is the chain and the targets' markers.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_wakes_behind_its_successor_writes_nothing_that_counts() -> Result<()> {
    let mut scene = Scene::open("500ms").await?;
    let folder = Folder::new("successor")?;
    let mut second = beside(&scene, &folder)?;
    scene.make_good().await?;
    for (held, event) in [
        ("checkpoint-before-persist", "prepared"),
        ("checkpoint-after-persist", "record-stored"),
        ("commit-before-lines", "record-stored"),
        ("commit-between", "record-stored"),
        ("commit-before-note", "record-stored"),
    ] {
        scene.change().await?;
        let mut journal = journal_of(&scene.pipeline)?;
        scene.pipeline.start(project::program()?, &[], &[("FAILPOINTS", &format!("{held}=sleep(1500)"))])?;
        wait_for(&mut journal, event)?;
        scene.pipeline.signal("STOP")?;

        second.start(project::program()?, &[], &[])?;
        second.wait_until_at_the_end_of(&scene.server, LIMIT).await?;
        second.checkpoint(LIMIT)?;
        scene.change().await?;
        scene.pipeline.signal("CONT")?;
        let status = scene.pipeline.wait_for_end(LIMIT)?;
        let ended = wait_for(&mut journal, "ended")?;
        let code = ended.text("code").unwrap_or_default();
        // By the chain, or by the target that it came to first.
        let is_fenced = matches!(code, "fenced" | "later-run");
        ensure!(status.code() == Some(1) && is_fenced, "{held}: it ended with {status}, {code}");

        scene.change().await?;
        second.wait_until_at_the_end_of(&scene.server, LIMIT).await?;
        second.checkpoint(LIMIT)?;
        let stopped = second.stop(LIMIT)?;
        ensure!(stopped.success(), "{held}: the successor ended with {stopped}:\n{}", second.last_lines());
        // What the sleeper staged when it woke is removed by the next that starts.
        scene.change().await?;
        scene.make_good().await?;
        scene.compare().await.context(held)?;
    }
    Ok(())
}
