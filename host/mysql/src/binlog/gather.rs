//! Rows of one table on their way from the log to a batch, across transactions.

use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::{ChangeBatch, Op, RowMeta, TransactionRun};
use cdchost_mysql_row::{
    ColumnError, Columns, ImagePlan, TableLayout, TextRules, ValueError, read_image, read_partial_image,
};
use cdchost_mysql_wire::binlog::RowsOp;

use crate::remedy::ANEW;

/// A batch is cut when it has so many rows.
pub(crate) const BATCH_ROWS: usize = 8_192;
/// A batch is cut when its values take so many bytes.
pub(crate) const BATCH_BYTES: usize = 2 << 20;

/// What the log says of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct TransactionFacts {
    pub(crate) id: cdchost_model::TransactionId,
    pub(crate) position: cdchost_model::SourcePosition,
    pub(crate) commit_time: i64,
}

/// The open batch of one table.
#[derive(Debug)]
pub(crate) struct Gather {
    layout: Arc<TableLayout>,
    columns: Columns,
    ops: Vec<u8>,
    seqs: Vec<i64>,
    ordinals: Vec<u32>,
    runs: Vec<TransactionRun>,
    /// Rows that `runs` tell of.
    told: usize,
    /// Rows of transactions that have ended; the others may be taken back.
    ended: usize,
    /// The next row change's place among the table's in its transaction.
    ordinal: u32,
    /// Bytes of the rows as the log had them, near what the columns take.
    raw_bytes: usize,
}

/// A batch cut inside of a transaction.
#[derive(Debug)]
pub(crate) struct CutBatch {
    pub(crate) batch: ChangeBatch,
    /// So many rows at its beginning belong to transactions that have ended.
    pub(crate) ended: usize,
}

impl CutBatch {
    /// What stays of it when the open transaction's rows behind a change-seq are taken back, and the ordinal of that
    /// transaction's next row change.
    pub(crate) fn roll_back(self, seq: i64) -> (Option<Self>, u32) {
        let meta = self.batch.meta();
        let kept = self.ended.max(meta.change_seq.partition_point(|row| *row <= seq));
        let ordinal = meta.ordinal[self.ended..kept].last().map_or(0, |last| last + 1);
        if kept == self.batch.rows() {
            return (Some(self), ordinal);
        }
        let rows: Vec<u32> = (0..).take(kept).collect();
        let batch = (kept > 0).then(|| Self { batch: self.batch.take(&rows), ended: self.ended });
        (batch, ordinal)
    }
}

impl Gather {
    pub(crate) fn new(layout: Arc<TableLayout>) -> Self {
        let columns = layout.columns();
        Self {
            layout,
            columns,
            ops: Vec::new(),
            seqs: Vec::new(),
            ordinals: Vec::new(),
            runs: Vec::new(),
            told: 0,
            ended: 0,
            ordinal: 0,
            raw_bytes: 0,
        }
    }

    pub(crate) fn layout(&self) -> &Arc<TableLayout> {
        &self.layout
    }

    pub(crate) fn rows(&self) -> usize {
        self.ops.len()
    }

    /// Whether another row change might pass the limits.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ops.len() + 2 > BATCH_ROWS || self.raw_bytes >= BATCH_BYTES
    }

    /// Reads one row change off the front of `rest`.
    #[inline]
    pub(crate) fn change(
        &mut self,
        plan: &ImagePlan,
        op: RowsOp,
        rest: &mut &[u8],
        seq: i64,
    ) -> Result<(), ColumnError> {
        let before = rest.len();
        match op {
            RowsOp::Insert => self.image(plan, Op::Insert, rest, seq)?,
            RowsOp::Delete => self.image(plan, Op::Delete, rest, seq)?,
            RowsOp::Update => {
                self.image(plan, Op::UpdateBefore, rest, seq)?;
                self.image(plan, Op::UpdateAfter, rest, seq)?;
            }
            RowsOp::PartialUpdate => {
                let before = *rest;
                self.image(plan, Op::UpdateBefore, rest, seq)?;
                read_partial_image(plan, before, rest, self.columns.as_mut_slice())?;
                self.note(Op::UpdateAfter, seq);
            }
        }
        self.raw_bytes += before - rest.len();
        let malformed = ColumnError { column: 0, error: ValueError::Malformed("transaction: it has 2^32 rows") };
        self.ordinal = self.ordinal.checked_add(1).ok_or(malformed)?;
        Ok(())
    }

    #[inline]
    fn image(&mut self, plan: &ImagePlan, op: Op, rest: &mut &[u8], seq: i64) -> Result<(), ColumnError> {
        read_image(plan, rest, self.columns.as_mut_slice())?;
        self.note(op, seq);
        Ok(())
    }

    /// Notes what was done with the row just read.
    #[inline]
    fn note(&mut self, op: Op, seq: i64) {
        self.ops.push(op as u8);
        self.seqs.push(seq);
        self.ordinals.push(self.ordinal);
    }

    /// Appends the key of a row of the open batch.
    pub(crate) fn encode_key(&self, row: usize, out: &mut Vec<u8>) {
        for place in self.layout.key() {
            self.columns.column(place).encode_key(row, out);
        }
    }

    /// The transaction has ended: its rows stay. Gives the number of its row changes.
    pub(crate) fn end_transaction(&mut self, facts: &TransactionFacts) -> u32 {
        self.tell(facts);
        self.ended = self.rows();
        std::mem::take(&mut self.ordinal)
    }

    /// Takes back the rows behind a change-seq of the transaction that has not ended. `ordinal` is that of the next row
    /// change if none of its rows stay here.
    pub(crate) fn roll_back(&mut self, seq: i64, ordinal: u32) {
        let kept = self.ended.max(self.seqs.partition_point(|row| *row <= seq));
        self.columns.truncate(kept);
        self.ops.truncate(kept);
        self.seqs.truncate(kept);
        self.ordinals.truncate(kept);
        // Runs of a transaction that has not ended are told only where a batch is cut, and leave with it.
        self.ordinal = self.ordinals[self.ended..].last().map_or(ordinal, |last| last + 1);
    }

    /// Cuts the batch inside of a transaction.
    pub(crate) fn cut(&mut self, facts: &TransactionFacts) -> Result<CutBatch, ConnectorError> {
        self.tell(facts);
        let ended = self.ended;
        Ok(CutBatch { batch: self.finish()?, ended })
    }

    /// The batch of all rows, between transactions.
    pub(crate) fn finish(&mut self) -> Result<ChangeBatch, ConnectorError> {
        let columns = self.columns.finish().map_err(|error| value_error(&self.layout, error, ""))?;
        let room = self.ops.len();
        let meta = RowMeta {
            change_seq: std::mem::replace(&mut self.seqs, Vec::with_capacity(room)).into(),
            ordinal: std::mem::replace(&mut self.ordinals, Vec::with_capacity(room)).into(),
            transactions: std::mem::take(&mut self.runs),
        };
        let ops = std::mem::replace(&mut self.ops, Vec::with_capacity(room));
        (self.told, self.ended, self.raw_bytes) = (0, 0, 0);
        ChangeBatch::new(Arc::clone(&self.layout.schema), columns, ops.into(), meta).map_err(|error| {
            ConnectorError::stop(StopClass::Bug, "mysql-batch", "rows of the log do not make a batch")
                .with_table(self.layout.schema.table.clone())
                .with_cause(error)
        })
    }

    fn tell(&mut self, facts: &TransactionFacts) {
        let untold = self.rows() - self.told;
        if untold > 0 {
            self.runs.push(TransactionRun {
                rows: u32::try_from(untold).expect("a batch is far below 2^32 rows"),
                id: Some(facts.id.clone()),
                position: Some(facts.position.clone()),
                commit_time: facts.commit_time,
            });
            self.told = self.rows();
        }
    }
}

/// A value that cannot be carried, in words.
#[cold]
pub(crate) fn value_error(layout: &TableLayout, error: ColumnError, place: &str) -> ConnectorError {
    let table = &layout.schema.table;
    let column = layout.schema.fields.get(error.column).map_or("?", |field| field.name.as_str());
    let message = format!("the value of column `{column}` of table {table}{place} cannot be carried: {}", error.error);
    let (class, code, instruction) = match error.error {
        ValueError::ZeroDate => (
            StopClass::Data,
            "mysql-zero-date",
            format!(
                "set zero-date = \"null\" or zero-date = \"text\" in [source] and {ANEW}, since either changes the column; or find the rows with SELECT … FROM {table} WHERE \
                 `{column}` IN (0) OR MONTH(`{column}`) = 0 OR DAY(`{column}`) = 0 and give them a real date; or leave \
                 the table out (add {} to `tables`)",
                TablePatterns::leaving_out(&table.database, &table.table)
            ),
        ),
        ValueError::Text | ValueError::Unmapped => {
            let field = layout.schema.fields.get(error.column);
            let charset =
                field.and_then(|field| TextRules::of(&field.native_type)).map_or("utf8mb4", |text| text.charset);
            let instruction = format!(
                "find the rows with SELECT … FROM {table} WHERE HEX(`{column}`) <> HEX(CONVERT(CONVERT(`{column}` USING \
                 utf8mb4) USING {charset})) and mend them, or make the column a binary one"
            );
            (StopClass::Data, "mysql-invalid-text", instruction)
        }
        ValueError::TooLarge => (StopClass::Data, "mysql-batch-too-large", "report this; values are too large".into()),
        _ => (
            StopClass::Source,
            "mysql-malformed-row",
            "compare the table with the log; if nothing is wrong with the server, report this".into(),
        ),
    };
    ConnectorError::stop(class, code, message).with_table(table.clone()).with_instruction(instruction)
}
