//! Lake and checkpoints in a bucket that fails now and then, with a process that is killed there.

use std::time::Duration;

use cdchost_tests::bucket::{Bucket, Fault, SECRET};
use cdchost_tests::lake::LakeReader;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::server::Server;
use cdchost_tests::shop::{self, Customers};
use cdchost_tests::watchdog::Folder;
use cdchost_tests::{project, verdict, wait};

const LIMIT: Duration = Duration::from_secs(120);

/// Of the writes one in seven fails, one in eleven loses its answer, one in thirteen is late.
fn weather(bucket: &Bucket) {
    let mut writes = 0;
    bucket.script(move |method, _| {
        writes += u64::from(method == hyper::Method::PUT);
        match (method == hyper::Method::PUT, writes) {
            (true, n) if n % 7 == 0 => Fault::Error,
            (true, n) if n % 11 == 0 => Fault::LostAnswer,
            (true, n) if n % 13 == 0 => Fault::Slow(Duration::from_millis(50)),
            _ => Fault::None,
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lake_in_a_bucket_is_whole_after_faults_and_kills() {
    let server = Server::start().unwrap();
    let shop = shop::open(&server, "clouds", 600).await.unwrap();
    let folder = Folder::new("clouds").unwrap();
    let bucket = Bucket::open().unwrap();
    let spec = PipelineSpec {
        bucket: Some(bucket.options()),
        interval: "200ms".to_owned(),
        ..PipelineSpec::into_lake(&server.address(), "clouds")
    };
    let mut pipeline = Pipeline::new(folder.path(), &spec).unwrap();
    weather(&bucket);
    for visit in 1..=3 {
        pipeline.start(project::program().unwrap(), &[], &[]).unwrap();
        let mut customers = Customers::enter(&server, &shop, visit, 5, Duration::from_millis(1)).await.unwrap();
        pipeline.wait_until_caught_up(LIMIT).unwrap();
        let seen = bucket.keys().len();
        let more = || Ok((bucket.keys().len() > seen + 40).then_some(()));
        wait::until("some epochs lie in the bucket", LIMIT, more).unwrap();
        if visit < 3 {
            pipeline.kill().unwrap();
        }
        customers.leave().await.unwrap();
    }
    pipeline.wait_until_caught_up(LIMIT).unwrap();
    pipeline.checkpoint(LIMIT).unwrap();
    assert!(pipeline.stop(LIMIT).unwrap().success(), "{}", pipeline.last_lines());
    bucket.copy_to("lake/", &pipeline.lake()).unwrap();
    let mut readers = [LakeReader::pypaimon().unwrap(), LakeReader::java().unwrap()];
    let verdict = verdict::compare(&server, &pipeline, "clouds", &mut readers).await.unwrap();
    assert_eq!(verdict.shown, [""; 0]);
    let log = std::fs::read_to_string(pipeline.log()).unwrap();
    assert!(!log.contains(SECRET));
    assert!(bucket.keys().iter().any(|key| key.starts_with("state/own/slots/")));
    assert!(!pipeline.state().join("slots").exists());
}
