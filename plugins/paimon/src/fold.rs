//! Sorts buffered rows by key within each bucket and folds the versions of a key to the newest.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;

use crate::format::bucket::bucket_of;
use crate::format::data_file::FileLayout;
use crate::format::key::SortKeys;

/// Rows as they came, in the columns of a data file.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Sequence number, kind, then the table's columns.
    pub(crate) columns: Vec<ArrayRef>,
    /// For each row, whether a snapshot read it. Of two versions of one key with one sequence number the one from the
    /// log is kept.
    pub(crate) read: Vec<bool>,
}

/// The rows of one bucket that are to be written, in key order.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) bucket: u32,
    chunks: &'a [Chunk],
    order: Vec<Place>,
}

/// A row: which chunk, which row of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: u32,
    row: u32,
}

/// From this many neighbouring rows on they are handed on as they lie; fewer are gathered.
const STRETCH_ROWS_MIN: usize = 512;
/// How many rows are gathered at a time.
const GATHER_ROWS_MAX: usize = 8192;

/// Sorts and folds all rows; buckets without rows are left out.
pub(crate) fn fold<'a>(layout: &FileLayout, bucket_count: u32, chunks: &'a [Chunk]) -> Vec<Run<'a>> {
    let keys: Vec<SortKeys> =
        chunks.iter().map(|chunk| layout.key_columns(&chunk.columns).sort_keys(chunk.read.len())).collect();
    let mut buckets = place_in_buckets(layout, bucket_count, chunks);
    for order in &mut buckets {
        let narrow = |place: &Place| match &keys[place.chunk as usize] {
            SortKeys::Narrow(keys) => keys[place.row as usize],
            _ => unreachable!("all chunks of a table have one kind of key"),
        };
        let wide = |place: &Place| match &keys[place.chunk as usize] {
            SortKeys::Wide(keys) => keys[place.row as usize],
            _ => unreachable!("all chunks of a table have one kind of key"),
        };
        let bytes = |place: &Place| match &keys[place.chunk as usize] {
            SortKeys::Bytes(bytes, ends) => {
                let row = place.row as usize;
                &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]]
            }
            _ => unreachable!("all chunks of a table have one kind of key"),
        };
        match keys.first() {
            Some(SortKeys::Narrow(_)) => fold_bucket(order, chunks, narrow),
            Some(SortKeys::Wide(_)) => fold_bucket(order, chunks, wide),
            Some(SortKeys::Bytes(..)) => fold_bucket(order, chunks, bytes),
            None => {}
        }
    }
    let runs = (0..).zip(buckets).filter(|(_, order)| !order.is_empty());
    runs.map(|(bucket, order)| Run { bucket, chunks, order }).collect()
}

/// The rows of each bucket, in the order they came.
fn place_in_buckets(layout: &FileLayout, bucket_count: u32, chunks: &[Chunk]) -> Vec<Vec<Place>> {
    let mut buckets = vec![Vec::new(); bucket_count.max(1) as usize];
    for (number, chunk) in (0u32..).zip(chunks) {
        let keys = layout.key_columns(&chunk.columns);
        let (mut values, mut row_bytes) = (Vec::new(), Vec::new());
        for row in 0..chunk.read.len() {
            let bucket = if bucket_count > 1 {
                row_bytes.clear();
                keys.write_row(row, &mut values, &mut row_bytes);
                bucket_of(&row_bytes, bucket_count)
            } else {
                0
            };
            buckets[bucket as usize].push(Place { chunk: number, row: row as u32 }); // a batch is below 2^32 rows
        }
    }
    buckets
}

fn fold_bucket<K: Ord>(order: &mut Vec<Place>, chunks: &[Chunk], key: impl Fn(&Place) -> K) {
    if order.is_sorted_by(|one, next| key(one) < key(next)) {
        return; // as a snapshot reads them
    }
    let sequences: Vec<&[i64]> =
        chunks.iter().map(|chunk| &**chunk.columns[0].as_primitive::<Int64Type>().values()).collect();
    let version = |place: &Place| {
        let (chunk, row) = (place.chunk as usize, place.row as usize);
        (sequences[chunk][row], !chunks[chunk].read[row], *place)
    };
    order.sort_unstable_by(|one, other| key(one).cmp(&key(other)).then_with(|| version(one).cmp(&version(other))));
    let mut kept = 0;
    for place in 0..order.len() {
        if order.get(place + 1).is_none_or(|next| key(next) != key(&order[place])) {
            order[kept] = order[place];
            kept += 1;
        }
    }
    order.truncate(kept);
}

impl Run<'_> {
    /// Hands the rows on in order, some thousands at a time.
    pub(crate) fn for_each<E: From<ArrowError>>(
        &self,
        mut write: impl FnMut(Vec<ArrayRef>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        while at < self.order.len() {
            let stretch = self.stretch(at);
            if stretch >= STRETCH_ROWS_MIN {
                let Place { chunk, row } = self.order[at];
                let columns = &self.chunks[chunk as usize].columns;
                write(columns.iter().map(|column| column.slice(row as usize, stretch)).collect())?;
                at += stretch;
                continue;
            }
            let mut end = at + stretch;
            while end < self.order.len() && end - at < GATHER_ROWS_MAX {
                let stretch = self.stretch(end);
                if stretch >= STRETCH_ROWS_MIN {
                    break;
                }
                end += stretch;
            }
            write(self.gather(&self.order[at..end])?)?;
            at = end;
        }
        Ok(())
    }

    /// How many rows from here on lie one behind the other in one chunk, as far as matters.
    fn stretch(&self, at: usize) -> usize {
        let Place { chunk, row } = self.order[at];
        let follows = |(place, next): &(u32, &Place)| next.chunk == chunk && next.row == row + place;
        (0..).zip(&self.order[at..]).take(GATHER_ROWS_MAX).take_while(follows).count()
    }

    fn gather(&self, order: &[Place]) -> Result<Vec<ArrayRef>, ArrowError> {
        // Only chunks that have a part in it are shown to the kernel.
        let mut part = vec![usize::MAX; self.chunks.len()];
        let mut chunks: Vec<&Chunk> = Vec::new();
        let places: Vec<(usize, usize)> = order
            .iter()
            .map(|place| {
                let chunk = place.chunk as usize;
                if part[chunk] == usize::MAX {
                    part[chunk] = chunks.len();
                    chunks.push(&self.chunks[chunk]);
                }
                (part[chunk], place.row as usize)
            })
            .collect();
        let column_count = self.chunks.first().map_or(0, |chunk| chunk.columns.len());
        let column = |column: usize| {
            let arrays: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.columns[column].as_ref()).collect();
            interleave(&arrays, &places)
        };
        (0..column_count).map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int8Array, Int32Array, Int64Array, StringArray};
    use parquet::basic::Compression;

    use super::*;
    use crate::format::data_file::FileColumn;
    use crate::format::schema::LakeType;

    fn layout(key: LakeType) -> FileLayout {
        let column = |id, name: &str, ty| FileColumn { id, name: name.into(), ty, nullable: false };
        let columns = [column(0, "k", key), column(1, "v", LakeType::String)];
        FileLayout::new(0, &columns, &[0], Compression::UNCOMPRESSED)
    }

    fn chunk(key: ArrayRef, rows: &[(i64, i8, bool, &str)]) -> Chunk {
        Chunk {
            columns: vec![
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
                Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int8Array>()),
                key,
                Arc::new(rows.iter().map(|row| Some(row.3)).collect::<StringArray>()),
            ],
            read: rows.iter().map(|row| row.2).collect(),
        }
    }

    fn written(runs: &[Run<'_>]) -> Vec<(u32, i64, String)> {
        let mut rows = Vec::new();
        for run in runs {
            run.for_each(|columns| {
                let sequences = columns[0].as_primitive::<Int64Type>();
                let texts = columns[3].as_string::<i32>();
                rows.extend(
                    (0..sequences.len()).map(|row| (run.bucket, sequences.value(row), texts.value(row).to_owned())),
                );
                Ok::<_, ArrowError>(())
            })
            .unwrap();
        }
        rows
    }

    fn ints(keys: &[i32]) -> ArrayRef {
        Arc::new(Int32Array::from(keys.to_vec()))
    }

    #[test]
    fn the_newest_version_of_a_key_is_kept_wherever_it_came() {
        let chunks = [
            chunk(ints(&[5, 1, 5]), &[(10, 0, false, "five"), (11, 0, false, "one"), (12, 2, false, "five again")]),
            chunk(
                ints(&[1, 5, 3]),
                &[(9, 0, true, "one read late"), (14, 3, false, "five gone"), (15, 0, false, "three")],
            ),
        ];
        let rows = written(&fold(&layout(LakeType::Int), 1, &chunks));
        let expected = [(0, 11, "one"), (0, 15, "three"), (0, 14, "five gone")];
        assert_eq!(rows, expected.map(|(bucket, sequence, text)| (bucket, sequence, text.to_owned())));
    }

    #[test]
    fn of_equal_sequence_numbers_the_log_wins_over_a_read_and_the_later_over_the_earlier() {
        let chunks = [chunk(
            ints(&[1, 1, 2, 2, 3, 3]),
            &[
                (7, 0, false, "log"),
                (7, 0, true, "read"),
                (7, 0, true, "read"),
                (7, 0, false, "log"),
                (7, 0, false, "earlier"),
                (7, 0, false, "later"),
            ],
        )];
        let texts: Vec<_> = written(&fold(&layout(LakeType::Int), 1, &chunks)).into_iter().map(|row| row.2).collect();
        assert_eq!(texts, ["log", "log", "later"]);
    }

    #[test]
    fn text_keys_sort_by_their_bytes() {
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["b", "", "a\0", "a", "b"]));
        let rows: Vec<_> = (0..5).map(|n| (n, 0i8, false, ["b", "", "a0", "a", "b2"][n as usize])).collect();
        let chunks = [chunk(keys, &rows)];
        let texts: Vec<_> =
            written(&fold(&layout(LakeType::String), 1, &chunks)).into_iter().map(|row| row.2).collect();
        assert_eq!(texts, ["", "a", "a0", "b2"]);
    }

    #[test]
    fn rows_go_to_the_bucket_of_their_key_and_none_is_lost() {
        let keys: Vec<i32> = (0..20_000).collect();
        let rows: Vec<_> = keys.iter().map(|&key| (i64::from(key), 0i8, true, "x")).collect();
        let chunks: Vec<_> =
            keys.chunks(3_000).zip(rows.chunks(3_000)).map(|(keys, rows)| chunk(ints(keys), rows)).collect();
        for bucket_count in [1, 7] {
            let runs = fold(&layout(LakeType::Int), bucket_count, &chunks);
            assert_eq!(runs.len(), bucket_count as usize);
            let mut sequences: Vec<_> = written(&runs).into_iter().map(|row| row.1).collect();
            assert_eq!(runs.iter().map(|run| run.order.len()).sum::<usize>(), sequences.len());
            sequences.sort_unstable();
            assert!(sequences.into_iter().eq(0..20_000));
        }
        let first: Vec<_> = written(&fold(&layout(LakeType::Int), 7, &chunks[..1]));
        let of_one = first.iter().find(|row| row.1 == 1).unwrap();
        assert_eq!(of_one.0, 5, "the bucket that Paimon puts 1 into");
    }
}
