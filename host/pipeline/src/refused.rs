//! Rows that a plugin refuses: where they stand in the source's log, and how the pipeline goes on without their table.

use cdchost_config::TablePatterns;
use cdchost_connector::{ConnectorError, RowFault, StopClass, Verdict};
use cdchost_model::{ChangeBatch, TableId, TransactionRun};

/// Rows that one message names.
const ROWS_SHOWN_MAX: usize = 3;
/// Tables that one instruction names.
const TABLES_SHOWN_MAX: usize = 5;

/// A plugin that refuses single rows stops the pipeline: rows are never left out. The message names the rows of the batch
/// that it was given, the instruction the tables that they come from.
pub(crate) fn whole(
    mut error: ConnectorError,
    batch: &ChangeBatch,
    sources: impl FnOnce() -> Vec<TableId>,
) -> ConnectorError {
    if error.rows.is_empty() {
        return error;
    }
    if matches!(error.verdict, Verdict::Retry { .. }) {
        error.verdict = Verdict::Stop;
        error.class = StopClass::Data;
    }
    let mut named: Vec<String> = error.rows.iter().take(ROWS_SHOWN_MAX).map(|row| named(row, batch)).collect();
    match error.rows.len() - named.len() {
        0 => {}
        more => named.push(format!("and {more} more of {} rows", batch.rows())),
    }
    error.message = format!("{}; refused: {}", error.message, named.join("; "));
    if error.class == StopClass::Data {
        error.instruction = leaving_out(&sources());
    }
    error
}

/// A row by its place in the source, without its values.
fn named(fault: &RowFault, batch: &ChangeBatch) -> String {
    let row = fault.row as usize;
    let (ordinal, reason) = (batch.meta().ordinal.get(row).copied().unwrap_or_default(), &fault.reason);
    let place = match run_of(batch, row) {
        Some(TransactionRun { id: Some(id), position: Some(position), .. }) => {
            format!("ordinal {ordinal} of transaction {id}, which ends at {position}")
        }
        Some(TransactionRun { id: Some(id), .. }) => format!("ordinal {ordinal} of transaction {id}"),
        _ => format!("row {row} of a part of the snapshot"),
    };
    format!("{place} ({reason})")
}

fn run_of(batch: &ChangeBatch, row: usize) -> Option<&TransactionRun> {
    let mut end = 0;
    batch.meta().transactions.iter().find(|run| {
        end += run.rows as usize;
        row < end
    })
}

fn leaving_out(sources: &[TableId]) -> String {
    let pattern = |table: &TableId| TablePatterns::leaving_out(&table.database, &table.table);
    let mut patterns: Vec<String> = sources.iter().take(TABLES_SHOWN_MAX).map(pattern).collect();
    if sources.len() > TABLES_SHOWN_MAX {
        patterns.push("…".into());
    }
    let (one, patterns) = (sources.len() == 1, patterns.join(", "));
    let what = if one { "add" } else { "add, of the tables that go there, the one that these rows come from:" };
    format!("leave the table out: {what} {patterns} to `tables` of [source], and the others go on")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch};
    use cdchost_model::{Field, LogicalType, Op, RowMeta, SchemaVersion, SourcePosition, TableSchema, TransactionId};

    use super::*;

    /// Two rows of a snapshot, then three of a transaction.
    fn batch() -> ChangeBatch {
        let id = Field {
            name: "id".into(),
            ty: LogicalType::Int64,
            nullable: false,
            native_type: String::new(),
            default_value: None,
            comment: None,
        };
        let schema = Arc::new(TableSchema {
            table: TableId::new("shop", "audit"),
            version: SchemaVersion(1),
            fields: vec![id],
            primary_key: Vec::new(),
            partition_key: Vec::new(),
            options: Vec::new(),
        });
        let column: Arc<Int64Array> = Arc::new((7..12).collect());
        let columns = RecordBatch::try_from_iter_with_nullable([("id", column as _, false)]).unwrap();
        let read = TransactionRun { rows: 2, id: None, position: None, commit_time: 0 };
        let changed = TransactionRun {
            rows: 3,
            id: Some(TransactionId { prefix: "u:".into(), number: 23 }),
            position: Some(SourcePosition { file: "binlog.000007".into(), offset: 4711 }),
            commit_time: 0,
        };
        let ops = [Op::Read, Op::Read, Op::Delete, Op::Insert, Op::Delete].map(|op| op as u8).to_vec();
        let meta = RowMeta {
            change_seq: vec![1; 5].into(),
            ordinal: vec![0, 1, 40, 41, 42].into(),
            transactions: vec![read, changed],
        };
        ChangeBatch::new(schema, columns, ops.into(), meta).unwrap()
    }

    fn told(verdict: Verdict, class: StopClass, rows: &[u32]) -> ConnectorError {
        let rows = rows.iter().map(|&row| RowFault { row, reason: "its op is delete".into() }).collect();
        ConnectorError { rows, ..ConnectorError::new(verdict, class, "append-only", "m").with_instruction("i") }
    }

    #[test]
    fn refused_rows_are_named_by_their_place_in_the_source() {
        let audit = || vec![TableId::new("shop", "audit")];
        let retry = Verdict::Retry { after: None };
        for (rows, expect) in [
            (
                &[4][..],
                "m; refused: ordinal 42 of transaction u:23, which ends at binlog.000007:4711 (its op is delete)",
            ),
            (&[1], "m; refused: row 1 of a part of the snapshot (its op is delete)"),
        ] {
            let error = whole(told(retry, StopClass::Sink, rows), &batch(), audit);
            assert_eq!((error.message.as_str(), error.verdict, error.class), (expect, Verdict::Stop, StopClass::Data));
        }
        let many = whole(told(Verdict::Stop, StopClass::Data, &[0, 1, 2, 3, 4]), &batch(), audit);
        assert!(many.message.ends_with("; and 2 more of 5 rows"), "{}", many.message);
        let expect = "leave the table out: add \"!shop.audit\" to `tables` of [source], and the others go on";
        assert_eq!(many.instruction, expect);
    }

    #[test]
    fn the_instruction_names_the_tables_of_the_source() {
        let shards = |count: u32| (0..count).map(|shard| TableId::new("shop", format!("audit.{shard}"))).collect();
        let said = |count| whole(told(Verdict::Stop, StopClass::Data, &[4]), &batch(), || shards(count)).instruction;
        assert!(said(1).contains(r"add '!shop.audit\.0' to"), "{}", said(1));
        assert!(said(2).contains(r"come from: '!shop.audit\.0', '!shop.audit\.1' to"), "{}", said(2));
        assert!(said(9).contains(r"'!shop.audit\.4', … to"), "{}", said(9));
    }

    #[test]
    fn what_names_no_rows_stays_as_it_is() {
        for (verdict, class) in [(Verdict::Stop, StopClass::Config), (Verdict::Retry { after: None }, StopClass::Sink)]
        {
            let error = whole(told(verdict, class, &[]), &batch(), || unreachable!("nothing to leave out"));
            assert_eq!((error.verdict, error.class), (verdict, class));
            assert_eq!((error.message.as_str(), error.instruction.as_str()), ("m", "i"));
        }
    }
}
