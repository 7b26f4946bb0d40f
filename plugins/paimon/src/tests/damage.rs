//! Files of the lake that were cut or written over: named, with what to do, and never blamed on the options.

use cdchost_sdk::{Blame, Op, Outcome, PluginError, Retry};

use super::kit::{Warehouse, cut, orders};

/// The first error of a run that goes on over the lake.
fn go_on(warehouse: &Warehouse) -> PluginError {
    let go_on = || {
        let (mut run, _) = warehouse.start(2, Some(&cut(2, 1)), &[])?;
        run.create(&orders())?;
        run.write(&orders(), &[(3, Op::Insert, 6, Some("c"))])?;
        let items = run.prepare(3)?;
        run.commit(3, &items)
    };
    match go_on() {
        Err(error) => error,
        Ok(outcomes) => {
            let [Outcome::Failed(error)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
            error.clone()
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_what_to_do() {
    for kind in ["/schema/schema-0", "/snapshot/snapshot-2", "/manifest/manifest-list-", "/epochs/epoch-2", "/tables/"]
    {
        for is_cut in [true, false] {
            let warehouse = Warehouse::new();
            let (mut run, _) = warehouse.start(1, None, &[]).unwrap();
            run.create(&orders()).unwrap();
            run.epoch(1, &orders(), &[(1, Op::Insert, 2, Some("a"))]);
            run.epoch(2, &orders(), &[(2, Op::Insert, 4, Some("b"))]);
            let newest_list = warehouse.snapshots("orders").pop().unwrap().delta_manifest_list;
            let is_meant =
                |path: &String| path.contains(kind) && (!kind.ends_with("list-") || path.ends_with(&newest_list));
            let path = warehouse.paths().into_iter().find(is_meant).unwrap();
            let whole = warehouse.world.object("lake", &path).unwrap();
            let damaged = if is_cut { &whole[..whole.len() / 2] } else { b"of another program" };
            warehouse.world.put("lake", &path, damaged);
            let error = go_on(&warehouse);
            assert_eq!((error.blame, error.retry), (Blame::Remote, Retry::Never), "{path}: {error}");
            let name = path.strip_prefix("wh/").unwrap();
            assert!(error.message.contains(name) && error.message.contains("put the file back"), "{path}: {error}");
        }
    }
}
