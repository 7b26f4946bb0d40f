//! Transforms and routes: those that keep the contract, and those that trap, hang and lie.

use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::{ConnectorError, RouteConnector, Router, StopClass, TableRoute, Transform, Verdict};
use cdchost_model::{Generation, TableId};

use crate::guest::{Guest, ROUTE, TRANSFORM};
use crate::stage::{batch, engine, load, schema, spec};

const LOOP: &str = "(loop $for_ever (br $for_ever)) unreachable";

/// Reads the first column and passes both; `more` changes that plan, which lies at 9204. Its two output columns lie at
/// 9000 and 9060.
fn planning(more: &str) -> Guest {
    let plan = format!(
        "(i32.store (i32.const 9204) (i32.const 8000)) (i32.store (i32.const 9208) (i32.const 1))
         (i32.store (i32.const 9064) (i32.const 1))
         (i32.store (i32.const 9216) (i32.const 9000)) (i32.store (i32.const 9220) (i32.const 2))
         {more} (i32.const 9200)"
    );
    Guest::of("transform-plugin").body(TRANSFORM, "on-schema", &plan)
}

/// Answers each batch with what `wat` leaves at 9300: ok at 9300, the outcome at 9304, its payload from 9308 on.
fn answering(wat: &str) -> Guest {
    planning("").body(TRANSFORM, "process", &format!("{wat} (i32.const 9300)"))
}

async fn transform(guest: Guest) -> Box<dyn Transform> {
    let mut short = spec();
    short.limits.call_timeout = Duration::from_millis(300);
    let connector = load(&engine(), guest).await.transform(short).unwrap();
    connector.open(Generation(1), 0, 1).await.unwrap()
}

async fn router(on_schema: &str, route_rows: &str) -> Box<dyn Router> {
    let guest = Guest::of("route-plugin").body(ROUTE, "on-schema", on_schema).body(ROUTE, "route-rows", route_rows);
    let connector: Arc<dyn RouteConnector> = load(&engine(), guest).await.route(spec()).unwrap();
    connector.open(Generation(1), 0, 1).await.unwrap()
}

fn broke(error: &ConnectorError, how: &str) {
    assert_eq!(
        (error.verdict, error.class, error.code.as_str()),
        (Verdict::Restart, StopClass::Plugin, "plugin-contract")
    );
    assert!(error.message.contains(how), "{error}");
    assert_eq!(error.table, Some(TableId::new("shop", "orders")));
}

#[tokio::test]
async fn rows_pass_and_rows_are_left_out() {
    let mut all = transform(answering("")).await;
    assert_eq!(all.on_schema(&schema()).await.unwrap(), schema());
    let out = all.process(&batch(&[1, 2, 3])).await.unwrap();
    assert_eq!((out.rows(), out.columns()), (3, batch(&[1, 2, 3]).columns()));

    // An edit that keeps the rows of 0b101.
    let some = answering(
        "(i32.store8 (i32.const 9304) (i32.const 1)) (i32.store8 (i32.const 9308) (i32.const 1))
         (i32.store8 (i32.const 8100) (i32.const 5))
         (i32.store (i32.const 9312) (i32.const 8100)) (i32.store (i32.const 9316) (i32.const 1))",
    );
    let mut some = transform(some).await;
    some.on_schema(&schema()).await.unwrap();
    let out = some.process(&batch(&[1, 2, 3])).await.unwrap();
    assert_eq!(out.columns(), batch(&[1, 3]).columns());
}

#[tokio::test]
async fn plans_that_cannot_be_break_the_contract() {
    for (plan, how) in [
        ("(i32.store (i32.const 9220) (i32.const 0))", "gives out 0 columns"),
        ("(i32.store (i32.const 9064) (i32.const 7))", "passes column 7 of 2"),
        ("(i32.store (i32.const 9064) (i32.const 0))", "two columns named id"),
        ("(i32.store (i32.const 8000) (i32.const 9))", "asks for column 9 of 2"),
        // Only the second column comes out.
        (
            "(i32.store (i32.const 9216) (i32.const 9060)) (i32.store (i32.const 9220) (i32.const 1))",
            "does not pass all columns of the input's",
        ),
    ] {
        let mut transform = transform(planning(plan)).await;
        broke(&transform.on_schema(&schema()).await.unwrap_err(), how);
        assert_eq!(transform.on_schema(&schema()).await.unwrap_err().code, "plugin-gone");
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_break_the_contract() {
    let edited = "(i32.store8 (i32.const 9304) (i32.const 1))";
    let replaced = "(i32.store8 (i32.const 9304) (i32.const 2))";
    for (outcome, wat, how) in [
        (
            edited,
            "(i32.store8 (i32.const 9308) (i32.const 1))
             (i32.store (i32.const 9312) (i32.const 8100)) (i32.store (i32.const 9316) (i32.const 2))",
            "2 bytes for the keep bitmap, it must be 1",
        ),
        (
            edited,
            "(i32.store8 (i32.const 9320) (i32.const 1))
             (i32.store (i32.const 9324) (i32.const 8100)) (i32.store (i32.const 9328) (i32.const 1))",
            "batch has 2 rows but ops has 1",
        ),
        (
            edited,
            "(i32.store8 (i32.const 9320) (i32.const 1)) (i32.store8 (i32.const 8101) (i32.const 9))
             (i32.store (i32.const 9324) (i32.const 8100)) (i32.store (i32.const 9328) (i32.const 2))",
            "row 1 has op 9",
        ),
        (
            edited,
            "(i32.store (i32.const 9332) (i32.const 8100)) (i32.store (i32.const 9336) (i32.const 1))",
            "1 computed columns, planned were 0",
        ),
        (replaced, "(i32.store (i32.const 9308) (i32.const 2))", "2 rows and the origins of 0"),
        (replaced, "", "0 columns, planned were 2"),
    ] {
        let mut transform = transform(answering(&format!("{outcome} {wat}"))).await;
        transform.on_schema(&schema()).await.unwrap();
        broke(&transform.process(&batch(&[1, 2])).await.unwrap_err(), how);
    }
}

#[tokio::test]
async fn traps_and_loops_end_the_instance() {
    for (body, code) in [("unreachable", "plugin-trap"), (LOOP, "plugin-timeout")] {
        let mut transform = transform(planning("").body(TRANSFORM, "process", body)).await;
        transform.on_schema(&schema()).await.unwrap();
        let error = transform.process(&batch(&[1])).await.unwrap_err();
        assert_eq!((error.verdict, error.code.as_str()), (Verdict::Restart, code));
        assert_eq!(transform.process(&batch(&[1])).await.unwrap_err().code, "plugin-gone");
    }
}

#[tokio::test]
async fn routes_that_cannot_be_break_the_contract() {
    const ZEROS: &str = "(i32.const 4096)";
    // by-row, with no column
    const BY_ROW: &str = "(i32.store8 (i32.const 9304) (i32.const 1)) (i32.const 9300)";
    let mut dropping = router("(i32.store8 (i32.const 9304) (i32.const 2)) (i32.const 9300)", ZEROS).await;
    assert_eq!(dropping.on_schema(&schema()).await.unwrap(), TableRoute::Drop);
    broke(&router(ZEROS, ZEROS).await.on_schema(&schema()).await.unwrap_err(), "routes a table to no table");

    // Two rows, no target named.
    let places =
        "(i32.store (i32.const 9412) (i32.const 4096)) (i32.store (i32.const 9416) (i32.const 2)) (i32.const 9400)";
    for (answer, how) in [(ZEROS, "0 targets for 2 rows"), (places, "target 0 of 0")] {
        let mut router = router(BY_ROW, answer).await;
        assert_eq!(router.on_schema(&schema()).await.unwrap(), TableRoute::ByRow);
        broke(&router.route_rows(&batch(&[1, 2])).await.unwrap_err(), how);
    }
}

#[tokio::test]
async fn a_plugin_is_used_as_what_it_is() {
    let plugin = load(&engine(), planning("")).await;
    let error = plugin.sink(spec()).unwrap_err();
    assert!(error.to_string().ends_with("is a transform, which cannot be used as a sink"), "{error}");
    let error = plugin.route(spec()).unwrap_err();
    assert!(error.to_string().ends_with("is a transform, which cannot be used as a route"), "{error}");
}
