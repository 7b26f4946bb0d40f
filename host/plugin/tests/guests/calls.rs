//! A whole life of a sink, and what comes back from its calls.

use cdchost_connector::{CommitOutcome, StopClass, Verdict};
use cdchost_model::{ChangeBatch, Committable, Epoch, Generation, RowMeta, TransactionRun};

use crate::guest::{COMMITTER, Guest, WRITER};
use crate::stage::{batch, cut, engine, sink, writer};

/// Adds up the ids of the rows that it gets, and says the sum as the bytes of its committable.
fn summing() -> Guest {
    Guest::sink()
        .head("(global $sum (mut i64) (i64.const 0)) (global $rows (mut i64) (i64.const 0))")
        // Wants column 0 and change-seq.
        .body(
            WRITER,
            "on-schema",
            "(i32.store (i32.const 4096) (i32.const 0)) (i32.store (i32.const 9000) (i32.const 0))
             (i32.store (i32.const 9100) (i32.const 0))
             (i32.store (i32.const 9104) (i32.const 9000)) (i32.store (i32.const 9108) (i32.const 1))
             (i32.store8 (i32.const 9112) (i32.const 1)) (i32.const 9100)",
        )
        // batch: schema rows ops columns meta; a column: null-count validity offsets data.
        .body(
            WRITER,
            "write",
            "(local $at i32) (local $end i32)
             (if (i32.ne (local.get 5) (i32.const 1)) (then unreachable))
             (if (i32.ne (local.get 7) (i32.const 1)) (then unreachable))
             (local.set $at (i32.load offset=20 (local.get 4)))
             (local.set $end (i32.add (local.get $at) (i32.load offset=24 (local.get 4))))
             (global.set $rows (i64.add (global.get $rows) (i64.extend_i32_u (local.get 1))))
             (block $done (loop $next
               (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
               (global.set $sum (i64.add (global.get $sum) (i64.load (local.get $at))))
               (local.set $at (i32.add (local.get $at) (i32.const 8)))
               (br $next)))
             (i32.const 4096)",
        )
        // A committable of the epoch and generation asked for.
        .body(
            WRITER,
            "prepare-commit",
            "(i64.store (i32.const 9200) (local.get 0)) (i64.store (i32.const 9208) (local.get 1))
             (i64.store (i32.const 9240) (global.get $rows)) (i64.store (i32.const 9248) (global.get $sum))
             (i32.store (i32.const 9304) (i32.const 9200)) (i32.store (i32.const 9308) (i32.const 1))
             (i32.const 9300)",
        )
        // As many zeros (committed) as there are items; the items' length is the last parameter.
        .body(
            COMMITTER,
            "commit",
            "(i32.store (i32.const 9404) (i32.const 12288)) (i32.store (i32.const 9408) (local.get 13))
             (i32.const 9400)",
        )
}

#[tokio::test]
async fn a_sink_lives_from_open_to_commit() {
    let engine = engine();
    let sink = sink(&engine, summing()).await;
    assert_eq!(sink.id(), "lake");
    assert_eq!(sink.version(), "test 0.1.0");

    let mut committer = sink.committer(Generation(3)).await.unwrap();
    let capabilities = committer.open().await.unwrap();
    assert_eq!((capabilities.target_rows, capabilities.max_open_epochs), (8192, 2));
    let recovered = committer.recover(None, &[]).await.unwrap();
    assert!(recovered.progress.is_none() && recovered.outcomes.is_empty());

    let mut writer = writer(&sink).await;
    writer.write(&batch(&[1, 2, 3])).await.unwrap();
    writer.write(&batch(&[40])).await.unwrap();
    let items = writer.prepare_commit(&cut(5)).await.unwrap();
    let [item] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((item.epoch, item.generation, item.rows, item.bytes), (Epoch(5), Generation(3), 4, 46));
    assert!(writer.save_state().await.unwrap().payload.is_empty());

    let outcomes = committer.commit(&cut(5), &items).await.unwrap();
    assert!(matches!(outcomes.as_slice(), [CommitOutcome::Committed]), "{outcomes:?}");
    writer.close(false).await;
    committer.close().await;
}

#[tokio::test]
async fn a_slice_of_a_batch_arrives_from_its_first_row() {
    let engine = engine();
    let sink = sink(&engine, summing()).await;
    let mut writer = writer(&sink).await;
    let (schema, columns, ops, meta) = batch(&[100, 200, 1, 2, 3]).into_parts();
    let meta = RowMeta {
        change_seq: meta.change_seq.slice(2, 3),
        ordinal: meta.ordinal.slice(2, 3),
        transactions: vec![TransactionRun { rows: 3, id: None, position: None, commit_time: 7 }],
    };
    let tail = ChangeBatch::new(schema, columns.slice(2, 3), ops.slice(2, 3), meta).unwrap();
    writer.write(&tail).await.unwrap();
    let items = writer.prepare_commit(&cut(1)).await.unwrap();
    assert_eq!(items.first().unwrap().bytes, 6);
}

#[tokio::test]
async fn writers_share_nothing() {
    let engine = engine();
    let sink = sink(&engine, summing()).await;
    let (mut one, mut other) = (writer(&sink).await, writer(&sink).await);
    one.write(&batch(&[7])).await.unwrap();
    other.write(&batch(&[8])).await.unwrap();
    assert_eq!(one.prepare_commit(&cut(1)).await.unwrap().first().unwrap().bytes, 7);
    assert_eq!(other.prepare_commit(&cut(1)).await.unwrap().first().unwrap().bytes, 8);
}

#[tokio::test]
async fn an_outcome_too_few_breaks_the_contract() {
    let engine = engine();
    let sink = sink(&engine, Guest::sink()).await;
    let mut committer = sink.committer(Generation(3)).await.unwrap();
    let error = committer.commit(&cut(1), &[item(1)]).await.unwrap_err();
    assert_eq!(
        (error.verdict, error.class, error.code.as_str()),
        (Verdict::Restart, StopClass::Plugin, "plugin-contract")
    );
    assert!(error.message.contains("0 outcomes for 1 committables"), "{error}");
}

#[tokio::test]
async fn a_foreign_committable_breaks_the_contract() {
    let engine = engine();
    // Epoch 0 and generation 0, whatever was asked.
    let foreign = Guest::sink().body(
        WRITER,
        "prepare-commit",
        "(i32.store (i32.const 9304) (i32.const 4096)) (i32.store (i32.const 9308) (i32.const 1)) (i32.const 9300)",
    );
    let sink = sink(&engine, foreign).await;
    let mut writer = writer(&sink).await;
    let error = writer.prepare_commit(&cut(5)).await.unwrap_err();
    assert_eq!(error.code, "plugin-contract");
    assert!(error.message.contains("epoch 0"), "{error}");
    assert_eq!(writer.save_state().await.unwrap_err().code, "plugin-gone");
}

#[tokio::test]
async fn a_plugins_error_says_what_now() {
    let engine = engine();
    // never, auth, code "denied-here", message with a newline.
    let refusing =
        Guest::sink().head("(data (i32.const 9500) \"denied-here\") (data (i32.const 9520) \"no\\nrights\")").body(
            COMMITTER,
            "open",
            "(i32.store8 (i32.const 9400) (i32.const 1)) (i32.store8 (i32.const 9404) (i32.const 2))
             (i32.store8 (i32.const 9408) (i32.const 2)) (i32.store8 (i32.const 9409) (i32.const 3))
             (i32.store (i32.const 9412) (i32.const 9500)) (i32.store (i32.const 9416) (i32.const 11))
             (i32.store (i32.const 9420) (i32.const 9520)) (i32.store (i32.const 9424) (i32.const 9))
             (i32.const 9400)",
        );
    let sink = sink(&engine, refusing).await;
    let mut committer = sink.committer(Generation(1)).await.unwrap();
    let error = committer.open().await.unwrap_err();
    assert_eq!((error.verdict, error.class, error.code.as_str()), (Verdict::Stop, StopClass::Sink, "denied-here"));
    assert_eq!(error.message, "plugin lake: no\\nrights");
    assert!(error.instruction.contains("credentials"), "{}", error.instruction);
}

#[tokio::test]
async fn a_batch_of_an_unknown_version_is_not_handed_over() {
    let engine = engine();
    let sink = sink(&engine, summing()).await;
    let mut writer = sink.writer(Generation(3), 0, 1).await.unwrap();
    let error = writer.write(&batch(&[1])).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (StopClass::Bug, "plugin-batch"));
}

fn item(epoch: u64) -> Committable {
    Committable {
        epoch: Epoch(epoch),
        generation: Generation(3),
        key: "k".into(),
        format: 1,
        payload: vec![1].into(),
        rows: 1,
        bytes: 1,
    }
}
