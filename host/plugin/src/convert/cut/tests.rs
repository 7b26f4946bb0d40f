use super::*;

fn at() -> Cut {
    Cut {
        epoch: Epoch(4),
        generation: Generation(2),
        lineage: Lineage("l".into()),
        offset: SourceOffset::default(),
        change_seq: ChangeSeq(1),
        path_digest: [0; 32],
        tables_digest: [0; 32],
        end_of_input: false,
    }
}

fn found(epoch: u64, generation: u64, payload: usize) -> wit::CommittableResult {
    wit::CommittableResult {
        epoch,
        generation,
        key: "k".into(),
        format: 1,
        payload: vec![0; payload],
        rows: 1,
        bytes: 1,
    }
}

#[test]
fn committables_are_of_the_epoch_and_generation_asked_for() {
    assert_eq!(committables(&at(), vec![found(4, 2, 0), found(4, 2, 9)]).unwrap().len(), 2);
    assert!(committables(&at(), vec![found(4, 2, 0), found(5, 2, 0)]).unwrap_err().contains("epoch 5"));
    assert!(committables(&at(), vec![found(4, 1, 0)]).unwrap_err().contains("generation 1"));
}

#[test]
fn committables_and_state_are_bounded() {
    assert!(committables(&at(), vec![found(4, 2, COMMITTABLE_BYTES_MAX)]).is_ok());
    assert!(committables(&at(), vec![found(4, 2, COMMITTABLE_BYTES_MAX + 1)]).is_err());
    let mut long = found(4, 2, 0);
    long.key = "k".repeat(COMMITTABLE_KEY_BYTES_MAX + 1);
    assert!(committables(&at(), vec![long]).is_err());
    assert!(blob(wit::BlobResult { format: 1, payload: vec![0; STATE_BYTES_MAX + 1] }).is_err());
}

#[test]
fn progress_comes_back_as_it_was_given() {
    let at = at();
    let given = cut(&at);
    let told = wit::Progress {
        pipeline: "p".into(),
        cut: wit::CutResult {
            epoch: given.epoch,
            generation: given.generation,
            lineage: given.lineage.into(),
            offset: given.offset.into(),
            change_seq: given.change_seq,
            path_digest: given.path_digest.into(),
            tables_digest: given.tables_digest.into(),
            end_of_input: given.end_of_input,
        },
    };
    assert_eq!(progress(told).unwrap(), SinkProgress { pipeline: "p".into(), cut: at });
}

#[test]
fn a_digest_of_another_length_is_refused() {
    let cut = wit::CutResult {
        epoch: 1,
        generation: 1,
        lineage: String::new(),
        offset: Vec::new(),
        change_seq: 0,
        path_digest: vec![0; 31],
        tables_digest: vec![0; 32],
        end_of_input: false,
    };
    assert!(progress(wit::Progress { pipeline: String::new(), cut }).unwrap_err().contains("31 bytes"));
}
