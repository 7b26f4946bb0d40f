//! How runs end and go on: signals, bounds, a second host.

use std::time::{Duration, Instant};

use cdchost_tests::lake::LakeReader;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::server::Server;
use cdchost_tests::shop::{self, Customers};
use cdchost_tests::watchdog::Folder;
use cdchost_tests::{project, verdict, wait};

const LIMIT: Duration = Duration::from_secs(120);

/// SIGTERM drains and commits, so the lake is whole without a further run; and the next run goes on from there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_pipeline_leaves_a_whole_lake() {
    let server = Server::start().unwrap();
    let shop = shop::open(&server, "stops", 600).await.unwrap();
    let folder = Folder::new("stops").unwrap();
    let spec = PipelineSpec { interval: "1h".to_owned(), ..PipelineSpec::into_lake(&server.address(), "stops") };
    let mut pipeline = Pipeline::new(folder.path(), &spec).unwrap();
    let mut readers = [LakeReader::pypaimon().unwrap()];
    for visit in 1..=2 {
        pipeline.start(project::program().unwrap(), &[], &[]).unwrap();
        let mut customers = Customers::enter(&server, &shop, visit, 5, Duration::from_millis(1)).await.unwrap();
        pipeline.wait_until_caught_up(LIMIT).unwrap();
        customers.leave().await.unwrap();
        pipeline.checkpoint(LIMIT).unwrap();
        server.run(&["UPDATE stops.orders SET amount = amount + 1 WHERE id < 50"]).await.unwrap();
        pipeline.wait_until_at_the_end_of(&server, LIMIT).await.unwrap();
        let status = pipeline.stop(LIMIT).unwrap();
        assert_eq!(status.code(), Some(0), "{}", pipeline.last_lines());
        let verdict = verdict::compare(&server, &pipeline, "stops", &mut readers).await.unwrap();
        assert_eq!(verdict.shown, [""; 0], "visit {visit}");
    }
}

/// A bounded run ends by itself, with all that the server had.
#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_run_ends_by_itself() {
    let server = Server::start().unwrap();
    let shop = shop::open(&server, "bounds", 600).await.unwrap();
    let folder = Folder::new("bounds").unwrap();
    let mut pipeline = Pipeline::new(folder.path(), &PipelineSpec::into_lake(&server.address(), "bounds")).unwrap();
    let mut readers = [LakeReader::pypaimon().unwrap()];
    // Each run but the first finds changes and the record of a run that had come to its end.
    for (visit, until) in [(1, "snapshot"), (2, "caught-up"), (3, "caught-up")] {
        pipeline.start(project::program().unwrap(), &["--until", until], &[]).unwrap();
        let status = pipeline.wait_for_end(LIMIT).unwrap();
        assert_eq!(status.code(), Some(0), "{}", pipeline.last_lines());
        let verdict = verdict::compare(&server, &pipeline, "bounds", &mut readers).await.unwrap();
        assert_eq!(verdict.shown, [""; 0], "until {until}");
        let mut customers = Customers::enter(&server, &shop, visit, 6, Duration::ZERO).await.unwrap();
        wait::until("something has changed", LIMIT, || Ok((customers.rows_before(Instant::now()) > 20).then_some(())))
            .unwrap();
        customers.leave().await.unwrap();
    }
}

/// Of two hosts on one state folder the second refuses, and the first goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_is_refused() {
    let server = Server::start().unwrap();
    shop::open(&server, "twice", 60).await.unwrap();
    let folder = Folder::new("twice").unwrap();
    let spec = PipelineSpec::into_lake(&server.address(), "twice");
    let mut first = Pipeline::new(folder.path(), &spec).unwrap();
    first.start(project::program().unwrap(), &[], &[]).unwrap();
    first.wait_until_caught_up(LIMIT).unwrap();
    let mut second = Pipeline::new(folder.path(), &spec).unwrap();
    second.start(project::program().unwrap(), &[], &[]).unwrap();
    let status = second.wait_for_end(LIMIT).unwrap();
    assert_eq!(status.code(), Some(3), "{}", second.last_lines());
    first.checkpoint(LIMIT).unwrap();
    assert!(first.stop(LIMIT).unwrap().success());
}
