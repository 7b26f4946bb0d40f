//! Cuts, committables, state and progress, both ways; what a guest gives is held to what was asked of it.

use cdchost_model::{ChangeSeq, Committable, Cut, Epoch, Generation, Lineage, SinkProgress, SourceOffset, StateBlob};

use crate::bindings::v0_1::cdchost::plugin::sink_types as wit;
use crate::limits::{COMMITTABLE_BYTES_MAX, COMMITTABLE_KEY_BYTES_MAX, COMMITTABLES_MAX, STATE_BYTES_MAX};

/// A cut on its way in.
pub(crate) fn cut(cut: &Cut) -> wit::CutParam<'_> {
    wit::CutParam {
        epoch: cut.epoch.0,
        generation: cut.generation.0,
        lineage: &cut.lineage.0,
        offset: &cut.offset.0,
        change_seq: cut.change_seq.0,
        path_digest: &cut.path_digest,
        tables_digest: &cut.tables_digest,
        end_of_input: cut.end_of_input,
    }
}

/// A committable on its way in.
pub(crate) fn item(item: &Committable) -> wit::CommittableParam<'_> {
    wit::CommittableParam {
        epoch: item.epoch.0,
        generation: item.generation.0,
        key: &item.key,
        format: item.format,
        payload: &item.payload,
        rows: item.rows,
        bytes: item.bytes,
    }
}

/// What a writer prepared for `at`: bounded, and of that epoch and generation only.
pub(crate) fn committables(at: &Cut, found: Vec<wit::CommittableResult>) -> Result<Vec<Committable>, String> {
    if found.len() > COMMITTABLES_MAX {
        return Err(format!("hands over {} committables, at most {COMMITTABLES_MAX} are taken", found.len()));
    }
    found.into_iter().map(|one| committable(at, one)).collect()
}

fn committable(at: &Cut, found: wit::CommittableResult) -> Result<Committable, String> {
    let (epoch, generation) = (found.epoch, found.generation);
    if (epoch, generation) != (at.epoch.0, at.generation.0) {
        let (asked, own) = (at.epoch, at.generation);
        return Err(format!(
            "hands over a committable of epoch {epoch}, generation {generation}; asked was epoch {asked}, generation {own}"
        ));
    }
    if found.payload.len() > COMMITTABLE_BYTES_MAX {
        let bytes = found.payload.len();
        return Err(format!("hands over a committable of {bytes} bytes, at most {COMMITTABLE_BYTES_MAX} are taken"));
    }
    if found.key.len() > COMMITTABLE_KEY_BYTES_MAX {
        let bytes = found.key.len();
        return Err(format!("names a committable in {bytes} bytes, at most {COMMITTABLE_KEY_BYTES_MAX} are taken"));
    }
    Ok(Committable {
        epoch: at.epoch,
        generation: at.generation,
        key: found.key,
        format: found.format,
        payload: found.payload.into(),
        rows: found.rows,
        bytes: found.bytes,
    })
}

/// A writer's state.
pub(crate) fn blob(found: wit::BlobResult) -> Result<StateBlob, String> {
    if found.payload.len() > STATE_BYTES_MAX {
        return Err(format!("saves {} bytes of state, at most {STATE_BYTES_MAX} are taken", found.payload.len()));
    }
    Ok(StateBlob { format: found.format, payload: found.payload.into() })
}

/// What a target says of itself.
pub(crate) fn progress(found: wit::Progress) -> Result<SinkProgress, String> {
    let digest = |bytes: Vec<u8>| {
        <[u8; 32]>::try_from(bytes).map_err(|bytes| format!("reports a digest of {} bytes, 32 are asked", bytes.len()))
    };
    let cut = found.cut;
    Ok(SinkProgress {
        pipeline: found.pipeline,
        cut: Cut {
            epoch: Epoch(cut.epoch),
            generation: Generation(cut.generation),
            lineage: Lineage(cut.lineage),
            offset: SourceOffset(cut.offset.into()),
            change_seq: ChangeSeq(cut.change_seq),
            path_digest: digest(cut.path_digest)?,
            tables_digest: digest(cut.tables_digest)?,
            end_of_input: cut.end_of_input,
        },
    })
}

#[cfg(test)]
mod tests;
