//! Guests that trap, hang, grow and lie: the host goes on, the pipeline restarts, nobody else notices.

use std::time::{Duration, Instant};

use cdchost_connector::{StopClass, Verdict};
use cdchost_model::Generation;

use crate::guest::{COMMITTER, Guest, WRITER};
use crate::stage::{batch, cut, engine, limits, load, sink, spec, writer};

const LOOP: &str = "(loop $for_ever (br $for_ever)) unreachable";

#[tokio::test]
async fn a_trap_in_write_ends_the_instance_and_a_fresh_one_works() {
    let engine = engine();
    // Traps at the row with id 13 only.
    let guest = Guest::sink()
        .body(
            WRITER,
            "on-schema",
            "(i32.store (i32.const 9104) (i32.const 9000)) (i32.store (i32.const 9108) (i32.const 1)) (i32.const 9100)",
        )
        .body(
            WRITER,
            "write",
            "(if (i64.eq (i64.load (i32.load offset=20 (local.get 4))) (i64.const 13)) (then unreachable))
             (i32.const 4096)",
        );
    let sink = sink(&engine, guest).await;
    let mut first = writer(&sink).await;
    first.write(&batch(&[1])).await.unwrap();
    let error = first.write(&batch(&[13])).await.unwrap_err();
    assert_eq!((error.verdict, error.class, error.code.as_str()), (Verdict::Restart, StopClass::Plugin, "plugin-trap"));
    assert!(error.message.contains("unreachable"), "{error}");
    assert_eq!(error.table.as_ref().unwrap().table, "orders");
    assert_eq!(first.write(&batch(&[1])).await.unwrap_err().code, "plugin-gone");
    first.close(true).await;

    writer(&sink).await.write(&batch(&[1])).await.unwrap();
}

#[tokio::test]
async fn an_endless_loop_ends_within_its_limit_while_others_are_served() {
    let engine = engine();
    let looping = load(&engine, Guest::sink().body(WRITER, "write", LOOP)).await;
    let mut short = spec();
    short.limits.call_timeout = Duration::from_millis(300);
    let looping = looping.sink(short).unwrap();
    let calm = sink(&engine, Guest::sink()).await;
    let (mut bad, mut good) = (writer(&looping).await, writer(&calm).await);

    let begun = Instant::now();
    let hung = tokio::spawn(async move { bad.write(&batch(&[1])).await.unwrap_err() });
    // There is one thread for guests: without yields, the calm one would wait for the whole limit.
    let mut served = 0;
    while !hung.is_finished() {
        good.write(&batch(&[2])).await.unwrap();
        served += 1;
    }
    let error = hung.await.unwrap();
    assert_eq!((error.verdict, error.code.as_str()), (Verdict::Restart, "plugin-timeout"));
    assert!(error.message.contains("300ms"), "{error}");
    assert!(served > 5, "{served} calls served");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let engine = engine();
    // Grows by 1 MiB until refused, then traps as a guest's allocator does.
    let bomb = "(loop $more (br_if $more (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable";
    let sink = sink(&engine, Guest::sink().body(WRITER, "write", bomb)).await;
    let error = writer(&sink).await.write(&batch(&[1])).await.unwrap_err();
    assert_eq!(
        (error.verdict, error.class, error.code.as_str()),
        (Verdict::Restart, StopClass::Plugin, "plugin-limit")
    );
    assert!(error.message.contains(&format!("limits.memory is {}", limits().memory.0)), "{error}");
    let given = "the batch: 1 row of table ";
    assert!(error.message.contains(given) && error.message.ends_with(" bytes"), "{error}");
    assert!(error.instruction.contains("limit"), "{}", error.instruction);
}

#[tokio::test]
async fn tables_end_at_their_limit() {
    let engine = engine();
    let guest = Guest::sink().head("(table $t 1 funcref)").body(
        WRITER,
        "write",
        "(drop (table.grow $t (ref.null func) (i32.const 100000))) unreachable",
    );
    let sink = sink(&engine, guest).await;
    let error = writer(&sink).await.write(&batch(&[1])).await.unwrap_err();
    assert_eq!(error.code, "plugin-limit");
    assert!(error.message.contains("table"), "{error}");
}

#[tokio::test]
async fn bottomless_recursion_is_a_trap() {
    let engine = engine();
    let guest = Guest::sink()
        .head("(func $deep (param i64) (result i64) (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))")
        .body(WRITER, "write", "(drop (call $deep (i64.const 0))) (i32.const 4096)");
    let sink = sink(&engine, guest).await;
    let error = writer(&sink).await.write(&batch(&[1])).await.unwrap_err();
    assert_eq!(error.code, "plugin-trap");
    assert!(error.message.contains("stack"), "{error}");
}

#[tokio::test]
async fn a_huge_committable_does_not_reach_the_host() {
    let engine = engine();
    // 24 MiB of payload; the limit of output is 16 MiB.
    let guest = Guest::sink().body(
        WRITER,
        "prepare-commit",
        "(drop (memory.grow (i32.const 400)))
         (i64.store (i32.const 9200) (local.get 0)) (i64.store (i32.const 9208) (local.get 1))
         (i32.store (i32.const 9228) (i32.const 65536)) (i32.store (i32.const 9232) (i32.const 25165824))
         (i32.store (i32.const 9304) (i32.const 9200)) (i32.store (i32.const 9308) (i32.const 1))
         (i32.const 9300)",
    );
    let sink = sink(&engine, guest).await;
    let error = writer(&sink).await.prepare_commit(&cut(1)).await.unwrap_err();
    assert_eq!((error.verdict, error.class), (Verdict::Restart, StopClass::Plugin));
    assert!(error.message.contains("prepare-commit"), "{error}");
}

#[tokio::test]
async fn rows_beyond_the_batch_break_the_contract() {
    let engine = engine();
    // never, data, one row-ref: row 0 of an error whose list lies at zeros, but row 1 of a batch of one.
    let guest = Guest::sink().body(
        WRITER,
        "write",
        "(i32.store (i32.const 9600) (i32.const 1))
         (i32.store8 (i32.const 9700) (i32.const 1)) (i32.store8 (i32.const 9704) (i32.const 2))
         (i32.store8 (i32.const 9705) (i32.const 0))
         (i32.store (i32.const 9744) (i32.const 9600)) (i32.store (i32.const 9748) (i32.const 1))
         (i32.const 9700)",
    );
    let sink = sink(&engine, guest).await;
    let error = writer(&sink).await.write(&batch(&[1])).await.unwrap_err();
    assert_eq!(error.code, "plugin-contract");
    // The same error about a batch that has a row 1 is an ordinary one.
    let error = writer(&sink).await.write(&batch(&[1, 2])).await.unwrap_err();
    assert_eq!((error.verdict, error.class), (Verdict::Stop, StopClass::Data));
    assert_eq!(error.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_ended() {
    let engine = engine();
    let sink = sink(&engine, Guest::sink().body(COMMITTER, "open", LOOP)).await;
    let mut committer = sink.committer(Generation(1)).await.unwrap();
    tokio::time::timeout(Duration::from_millis(100), committer.open()).await.map(|_| ()).unwrap_err();
    assert_eq!(committer.open().await.unwrap_err().code, "plugin-gone");
}
