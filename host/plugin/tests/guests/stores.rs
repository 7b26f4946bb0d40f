//! Roots granted and not granted, paths that lead elsewhere, uploads that end early.

use cdchost_storage::Store;
use tempfile::TempDir;

use crate::guest::{Guest, WRITER};
use crate::stage::{batch, cut, engine, load, spec, writer};

/// Calls `put` and `put-if-absent` at `root` and `path` in `write`, and `upload` without `finish` in `flush`; the
/// outcome of each (0 ok, else 1 + the error's case) comes back as rows and bytes of a committable.
fn putting(root: &str, path: &str) -> Guest {
    let (r, p) = (root.len(), path.len());
    let put = |name: &str| {
        format!(
            "(call ${name} (i32.const 9800) (i32.const {r}) (i32.const 9900) (i32.const {p}) (i32.const 9800)
               (i32.const {r}) (i32.const 10000))
             (i64.extend_i32_u (select (i32.add (i32.const 1) (i32.load8_u (i32.const 10004))) (i32.const 0)
               (i32.load8_u (i32.const 10000))))"
        )
    };
    Guest::sink()
        .head(&format!(
            "(import \"cdchost:plugin/object-store@0.1.0\" \"put\" (func $put (param i32 i32 i32 i32 i32 i32 i32)))
             (import \"cdchost:plugin/object-store@0.1.0\" \"put-if-absent\"
               (func $absent (param i32 i32 i32 i32 i32 i32 i32)))
             (import \"cdchost:plugin/object-store@0.1.0\" \"[constructor]upload\"
               (func $upload (param i32 i32 i32 i32) (result i32)))
             (import \"cdchost:plugin/object-store@0.1.0\" \"[method]upload.write\"
               (func $part (param i32 i32 i32 i32)))
             (import \"cdchost:plugin/object-store@0.1.0\" \"[resource-drop]upload\" (func $drop (param i32)))
             (global $one (mut i64) (i64.const 9)) (global $two (mut i64) (i64.const 9))
             (data (i32.const 9800) \"{root}\") (data (i32.const 9900) \"{path}\")"
        ))
        .body(
            WRITER,
            "write",
            &format!("(global.set $one {}) (global.set $two {}) (i32.const 4096)", put("put"), put("absent")),
        )
        .body(
            WRITER,
            "flush",
            &format!(
                "(local $handle i32)
                 (local.set $handle
                   (call $upload (i32.const 9800) (i32.const {r}) (i32.const 9900) (i32.const {p})))
                 (call $part (local.get $handle) (i32.const 9800) (i32.const 100) (i32.const 10000))
                 (call $drop (local.get $handle)) (i32.const 4096)"
            ),
        )
        // Never drops what it opens.
        .body(
            WRITER,
            "close",
            &format!(
                "(loop $more (drop
                   (call $upload (i32.const 9800) (i32.const {r}) (i32.const 9900) (i32.const {p}))) (br $more))"
            ),
        )
        .body(
            WRITER,
            "prepare-commit",
            "(i64.store (i32.const 9200) (local.get 0)) (i64.store (i32.const 9208) (local.get 1))
             (i64.store (i32.const 9240) (global.get $one)) (i64.store (i32.const 9248) (global.get $two))
             (i32.store (i32.const 9304) (i32.const 9200)) (i32.store (i32.const 9308) (i32.const 1))
             (i32.const 9300)",
        )
}

const OK: u64 = 0;
const ALREADY_EXISTS: u64 = 2;
const DENIED: u64 = 3;

/// Outcomes of put and put-if-absent.
async fn put(root: &str, path: &str, store: &Store) -> (u64, u64) {
    let mut spec = spec();
    spec.allow.store.insert("lake".into());
    spec.stores.insert("lake".into(), store.clone());
    let sink = load(&engine(), putting(root, path)).await.sink(spec).unwrap();
    let mut writer = writer(&sink).await;
    writer.write(&batch(&[1])).await.unwrap();
    let items = writer.prepare_commit(&cut(1)).await.unwrap();
    let item = items.first().unwrap();
    (item.rows, item.bytes)
}

#[tokio::test]
async fn a_granted_root_can_be_written() {
    let store = Store::memory();
    assert_eq!(put("lake", "wh/part-1", &store).await, (OK, ALREADY_EXISTS));
    assert_eq!(store.get("wh/part-1").await.unwrap().as_ref(), b"lake");
}

#[tokio::test]
async fn other_roots_and_paths_out_of_the_root_are_denied() {
    let store = Store::memory();
    assert_eq!(put("attic", "wh/part-1", &store).await, (DENIED, DENIED));
    for path in ["../x", "/etc/x", "a/../../x", "a//b", ""] {
        assert_eq!(put("lake", path, &store).await, (DENIED, DENIED), "{path:?}");
    }
    assert!(store.list("", None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_remains_of_an_upload_that_was_dropped() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&format!("file://{}", folder.path().display()), &Default::default()).await.unwrap();
    let mut spec = spec();
    spec.allow.store.insert("lake".into());
    spec.stores.insert("lake".into(), store.clone());
    let sink = load(&engine(), putting("lake", "big")).await.sink(spec).unwrap();
    let mut writer = writer(&sink).await;
    writer.flush(&crate::stage::schema().table).await.unwrap();
    assert!(store.list("", None, 10).await.unwrap().is_empty());
    // Leaking handles ends the guest at its limit, and leaves nothing either.
    writer.close(true).await;
    assert!(store.list("", None, 10).await.unwrap().is_empty());
}
