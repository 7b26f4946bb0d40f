//! The floor: a blocking reader of our own that does the least work that still gives columns.

mod log;
mod socket;
mod table;

pub(crate) use log::read_log;
pub(crate) use table::read_table;

/// Column values as they lie on the wire, appended to plain buffers that are emptied every 8,192 rows.
#[derive(Default)]
struct Columns {
    values: Vec<Vec<u8>>,
    ends: Vec<Vec<u32>>,
    rows: usize,
    total: u64,
}

impl Columns {
    fn with(count: usize) -> Self {
        Self { values: vec![Vec::new(); count], ends: vec![Vec::new(); count], ..Self::default() }
    }

    #[inline]
    fn push(&mut self, column: usize, value: &[u8]) {
        self.values[column].extend_from_slice(value);
    }

    #[inline]
    fn push_text(&mut self, column: usize, value: &[u8]) {
        self.values[column].extend_from_slice(value);
        self.ends[column].push(self.values[column].len() as u32);
    }

    #[inline]
    fn end_row(&mut self) {
        self.rows += 1;
        self.total += 1;
        if self.rows == 8192 {
            std::hint::black_box(&self.values);
            self.values.iter_mut().for_each(Vec::clear);
            self.ends.iter_mut().for_each(Vec::clear);
            self.rows = 0;
        }
    }
}
