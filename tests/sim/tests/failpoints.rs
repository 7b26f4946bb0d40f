//! Every failpoint: the run that meets it dies there, the next one makes good.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use cdchost_pipeline::{FAILPOINTS, Pipeline, PipelineExit};

use cdchost_sim::harness::{check_complete, process, setup};
use cdchost_sim::world::{Rates, World};

#[test]
fn a_run_that_dies_at_any_failpoint_loses_and_doubles_nothing() {
    for name in FAILPOINTS {
        let scenario = fail::FailScenario::setup();
        fail::cfg(name, "1*panic(scripted)").unwrap();
        let also = if name.starts_with("recovery") { 1 } else { 0 };
        if also == 1 {
            fail::cfg("checkpoint-after-persist", "1*panic(scripted)").unwrap();
        }
        let world: Arc<World> = World::new(7, 40, 2, Rates::default());
        let restarts = process().block_on(async {
            let mut handle = Pipeline::start(setup(&world, world.store.clone(), 2));
            assert_eq!(handle.wait().await, PipelineExit::Finished, "{name}");
            handle.status().borrow().restarts
        });
        assert_eq!(restarts, 1 + also, "{name} was not met as often as it should be");
        check_complete(&world).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        scenario.teardown();
    }
}
