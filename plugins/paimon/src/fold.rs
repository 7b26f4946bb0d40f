//! Spreads buffered rows over partitions and buckets, sorts them by key there, and folds the versions of a key to the
//! newest. Rows without a key stay as they came.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;

use crate::format::binary_row::empty_row;
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

/// The rows of one bucket that are to be written, in the order of the file.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// As manifests have it.
    pub(crate) partition: Vec<u8>,
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

/// Spreads, sorts and folds all rows; buckets without rows are left out.
pub(crate) fn fold<'a>(layout: &FileLayout, bucket_count: u32, chunks: &'a [Chunk]) -> Vec<Run<'a>> {
    let mut spread = Spread::new(bucket_count);
    (0u32..).zip(chunks).for_each(|(number, chunk)| spread.add(layout, number, chunk));
    if layout.is_keyed() {
        sort_and_fold(layout, chunks, &mut spread.orders);
    }
    let Spread { partitions, orders, .. } = spread;
    let places = partitions.iter().flat_map(|partition| (0..bucket_count).map(move |bucket| (partition, bucket)));
    let runs = places.zip(orders).filter(|(_, order)| !order.is_empty());
    runs.map(|((partition, bucket), order)| Run { partition: partition.clone(), bucket, chunks, order }).collect()
}

fn sort_and_fold(layout: &FileLayout, chunks: &[Chunk], orders: &mut [Vec<Place>]) {
    let keys: Vec<SortKeys> =
        chunks.iter().map(|chunk| layout.key_columns(&chunk.columns).sort_keys(chunk.read.len())).collect();
    for order in orders {
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
}

/// The rows of each bucket of each partition, in the order they came.
struct Spread {
    bucket_count: u32,
    partitions: Vec<Vec<u8>>,
    places: HashMap<Vec<u8>, usize>,
    /// The partition of the row before: mostly that of the next one, too.
    at: usize,
    /// Of each partition, one behind the other, each bucket.
    orders: Vec<Vec<Place>>,
}

impl Spread {
    fn new(bucket_count: u32) -> Self {
        let bucket_count = bucket_count.max(1);
        Self { bucket_count, partitions: Vec::new(), places: HashMap::new(), at: 0, orders: Vec::new() }
    }

    fn add(&mut self, layout: &FileLayout, number: u32, chunk: &Chunk) {
        let keys = layout.key_columns(&chunk.columns);
        let divided = layout.is_divided().then(|| layout.partition_columns(&chunk.columns));
        let (mut values, mut divisors, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..chunk.read.len() {
            let partition = match &divided {
                Some(columns) => {
                    bytes.clear();
                    columns.write_row(row, &mut divisors, &mut bytes);
                    self.partition(&bytes)
                }
                None if self.partitions.is_empty() => self.partition(&empty_row()),
                None => 0,
            };
            let bucket = if self.bucket_count > 1 {
                bytes.clear();
                keys.write_row(row, &mut values, &mut bytes);
                bucket_of(&bytes, self.bucket_count)
            } else {
                0
            };
            let place = Place { chunk: number, row: row as u32 }; // a batch is below 2^32 rows
            self.orders[partition * self.bucket_count as usize + bucket as usize].push(place);
        }
    }

    fn partition(&mut self, row: &[u8]) -> usize {
        if self.partitions.get(self.at).is_none_or(|at| at != row) {
            self.at = self.places.get(row).copied().unwrap_or(self.partitions.len());
        }
        if self.at == self.partitions.len() {
            self.partitions.push(row.to_vec());
            self.places.insert(row.to_vec(), self.at);
            self.orders.resize(self.partitions.len() * self.bucket_count as usize, Vec::new());
        }
        self.at
    }
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
    use crate::format::binary_row::{Datum, serialize_row};
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
    fn rows_without_a_key_stay_as_they_came() {
        let column = |id, name: &str, ty| FileColumn { id, name: name.into(), ty, nullable: true };
        let columns = [column(0, "k", LakeType::Int), column(1, "v", LakeType::String)];
        let layout = FileLayout::new(0, &columns, &[], Compression::UNCOMPRESSED);
        let chunks = [
            chunk(ints(&[5, 1, 5]), &[(3, 0, false, "a"), (3, 0, false, "b"), (4, 0, false, "a")]),
            chunk(ints(&[5]), &[(1, 0, true, "c")]),
        ];
        let texts: Vec<_> = written(&fold(&layout, 1, &chunks)).into_iter().map(|row| row.2).collect();
        assert_eq!(texts, ["a", "b", "a", "c"]);
    }

    #[test]
    fn rows_go_to_the_partition_of_their_values() {
        let column = |id, name: &str, ty| FileColumn { id, name: name.into(), ty, nullable: true };
        let columns = [column(0, "p", LakeType::Int), column(1, "v", LakeType::String)];
        let layout = FileLayout::divided(0, &columns, (&[1], &[0]), Compression::UNCOMPRESSED);
        let parts: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None, Some(7), Some(8), None]));
        let rows = [(1, 0, false, "b"), (2, 0, false, "a"), (3, 0, false, "a"), (4, 0, false, "b"), (5, 3, false, "a")];
        let chunks = [chunk(parts, &rows)];
        let runs = fold(&layout, 1, &chunks);
        let of = |value: Option<i32>| serialize_row(&[value.map(Datum::Int)]);
        assert_eq!(runs.iter().map(|run| &run.partition).collect::<Vec<_>>(), [&of(Some(7)), &of(None), &of(Some(8))]);
        let rows: Vec<_> = written(&runs).into_iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(rows, [(3, "a"), (1, "b"), (5, "a"), (4, "b")].map(|(n, text)| (n, text.to_owned())));
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
