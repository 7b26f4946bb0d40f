//! The contract's types to the SDK's own and back.

use std::sync::Arc;

use super::bindings::cdchost::plugin::{sink_types as terms, types};
use crate::data::RawColumn;
use crate::{
    Blame, Blob, Capabilities, ColumnPlace, Committable, Cut, Delivery, ErrorParts, Field, LogicalType, Ordering,
    Outcome, PluginError, Progress, Result, Retry, RowMeta, Schema, SchemaChange, SchemaChangeRequest, TableId,
};

pub(super) fn error_out(error: PluginError) -> types::PluginError {
    let error = ErrorParts::from(error);
    let retry = match error.retry {
        Retry::Now => types::Retry::Now,
        Retry::Backoff => types::Retry::Backoff,
        Retry::Never => types::Retry::Never,
    };
    let blame = match error.blame {
        Blame::Data => types::Blame::Data,
        Blame::Config => types::Blame::Config,
        Blame::Remote => types::Blame::Remote,
        Blame::Auth => types::Blame::Auth,
        Blame::Bug => types::Blame::Bug,
    };
    let rows = error.rows.into_iter().map(|row| types::RowRef { row: row.row, reason: row.reason }).collect();
    let table = error.table.map(|TableId { database, table }| types::TableId { database, table });
    // A pause beyond 49 days is cut to that.
    let retry_after_ms = error.retry_after.map(|pause| u32::try_from(pause.as_millis()).unwrap_or(u32::MAX));
    types::PluginError { retry, blame, code: error.code, message: error.message, table, rows, retry_after_ms }
}

pub(super) fn capabilities_out(from: Capabilities) -> terms::Capabilities {
    let delivery = match from.delivery {
        Delivery::Transactional => terms::Delivery::Transactional,
        Delivery::Idempotent => terms::Delivery::Idempotent,
        Delivery::AtLeastOnce => terms::Delivery::AtLeastOnce,
    };
    let ordering = match from.ordering {
        Ordering::None => terms::Ordering::None,
        Ordering::PerKey => terms::Ordering::PerKey,
        Ordering::PerTable => terms::Ordering::PerTable,
    };
    let abilities = [
        (from.abilities.reports_progress, terms::Ability::REPORTS_PROGRESS),
        (from.abilities.purges_older, terms::Ability::PURGES_OLDER),
        (from.abilities.rolls_back, terms::Ability::ROLLS_BACK),
        (from.abilities.truncates, terms::Ability::TRUNCATES),
        (from.abilities.takes_changelog, terms::Ability::TAKES_CHANGELOG),
    ];
    let set = abilities.into_iter().filter_map(|(has, flag)| has.then_some(flag));
    let abilities = set.fold(terms::Ability::empty(), |all, flag| all | flag);
    terms::Capabilities {
        delivery,
        ordering,
        wants_update_before: from.wants_update_before,
        abilities,
        schema_changes: from.schema_changes,
        target_rows: from.target_rows,
        target_bytes: from.target_bytes,
        max_open_epochs: from.max_open_epochs,
        committable_ttl_ms: from.committable_ttl_ms,
        contract: from.contract,
    }
}

pub(super) fn row_meta_out(from: RowMeta) -> types::RowMeta {
    let asked = [
        (from.change_seq, types::RowMeta::CHANGE_SEQ),
        (from.commit_time, types::RowMeta::COMMIT_TIME),
        (from.transaction, types::RowMeta::TRANSACTION),
        (from.ordinal, types::RowMeta::ORDINAL),
        (from.position, types::RowMeta::POSITION),
    ];
    let set = asked.into_iter().filter_map(|(is_asked, flag)| is_asked.then_some(flag));
    set.fold(types::RowMeta::empty(), |all, flag| all | flag)
}

pub(super) fn outcome_out(outcome: Outcome) -> terms::Outcome {
    match outcome {
        Outcome::Committed => terms::Outcome::Committed,
        Outcome::AlreadyCommitted => terms::Outcome::AlreadyCommitted,
        Outcome::RetryAfter(milliseconds) => terms::Outcome::RetryAfter(milliseconds),
        Outcome::Lost(what) => terms::Outcome::Lost(what),
        Outcome::Failed(error) => terms::Outcome::Failed(error_out(error)),
    }
}

pub(super) fn progress_out(progress: Progress) -> terms::Progress {
    let cut = progress.cut;
    let cut = terms::Cut {
        epoch: cut.epoch,
        generation: cut.generation,
        lineage: cut.lineage,
        offset: cut.offset,
        change_seq: cut.change_seq,
        path_digest: cut.path_digest,
        tables_digest: cut.tables_digest,
        end_of_input: cut.end_of_input,
    };
    terms::Progress { pipeline: progress.pipeline, cut }
}

pub(super) fn cut_in(cut: terms::Cut) -> Cut {
    Cut {
        epoch: cut.epoch,
        generation: cut.generation,
        lineage: cut.lineage,
        offset: cut.offset,
        change_seq: cut.change_seq,
        path_digest: cut.path_digest,
        tables_digest: cut.tables_digest,
        end_of_input: cut.end_of_input,
    }
}

pub(super) fn committables_in(items: Vec<terms::Committable>) -> Vec<Committable> {
    let item = |terms::Committable { epoch, generation, key, format, payload, rows, bytes }| Committable {
        epoch,
        generation,
        key,
        format,
        payload,
        rows,
        bytes,
    };
    items.into_iter().map(item).collect()
}

pub(super) fn committable_out(item: Committable) -> terms::Committable {
    let Committable { epoch, generation, key, format, payload, rows, bytes } = item;
    terms::Committable { epoch, generation, key, format, payload, rows, bytes }
}

pub(super) fn blob_in(blob: terms::Blob) -> Blob {
    Blob { format: blob.format, payload: blob.payload }
}

pub(super) fn blob_out(blob: Blob) -> terms::Blob {
    terms::Blob { format: blob.format, payload: blob.payload }
}

pub(super) fn table_in(table: types::TableId) -> TableId {
    TableId { database: table.database, table: table.table }
}

pub(super) fn columns_in(columns: Vec<types::Column>) -> Vec<RawColumn> {
    let raw = |types::Column { null_count, validity, offsets, data }| RawColumn { null_count, validity, offsets, data };
    columns.into_iter().map(raw).collect()
}

pub(super) fn schema_in(schema: types::Schema) -> Result<Schema> {
    Ok(Schema {
        table: table_in(schema.table),
        version: schema.version,
        fields: schema.fields.into_iter().map(field_in).collect::<Result<_>>()?,
        primary_key: schema.primary_key,
        partition_key: schema.partition_key,
        options: schema.options,
    })
}

fn field_in(field: types::Field) -> Result<Field> {
    let types::Field { name, ty, nullable, native_type, default_value, comment } = field;
    Ok(Field { ty: logical_type_in(ty, &name)?, name, nullable, native_type, default_value, comment })
}

pub(super) fn field_out(field: Field) -> types::Field {
    let Field { name, ty, nullable, native_type, default_value, comment } = field;
    types::Field { name, ty: logical_type_out(&ty), nullable, native_type, default_value, comment }
}

fn logical_type_out(ty: &LogicalType) -> types::LogicalType {
    use types::LogicalType as Wit;
    match *ty {
        LogicalType::Boolean => Wit::Boolean,
        LogicalType::Int8 => Wit::Int8,
        LogicalType::Int16 => Wit::Int16,
        LogicalType::Int32 => Wit::Int32,
        LogicalType::Int64 => Wit::Int64,
        LogicalType::Uint8 => Wit::Uint8,
        LogicalType::Uint16 => Wit::Uint16,
        LogicalType::Uint32 => Wit::Uint32,
        LogicalType::Uint64 => Wit::Uint64,
        LogicalType::Float32 => Wit::Float32,
        LogicalType::Float64 => Wit::Float64,
        LogicalType::Decimal { precision, scale } => Wit::Decimal((precision, scale)),
        LogicalType::Text { max } => Wit::Text(max),
        LogicalType::Bytes { max } => Wit::Bytes(max),
        LogicalType::Json => Wit::Json,
        LogicalType::Date => Wit::Date,
        LogicalType::Time { fraction } => Wit::Time(fraction),
        LogicalType::Timestamp { fraction } => Wit::Timestamp(fraction),
        LogicalType::TimestampUtc { fraction } => Wit::TimestampUtc(fraction),
        LogicalType::Geometry => Wit::Geometry,
    }
}

fn logical_type_in(ty: types::LogicalType, column: &str) -> Result<LogicalType> {
    use types::LogicalType as Wit;
    Ok(match ty {
        Wit::Boolean => LogicalType::Boolean,
        Wit::Int8 => LogicalType::Int8,
        Wit::Int16 => LogicalType::Int16,
        Wit::Int32 => LogicalType::Int32,
        Wit::Int64 => LogicalType::Int64,
        Wit::Uint8 => LogicalType::Uint8,
        Wit::Uint16 => LogicalType::Uint16,
        Wit::Uint32 => LogicalType::Uint32,
        Wit::Uint64 => LogicalType::Uint64,
        Wit::Float32 => LogicalType::Float32,
        Wit::Float64 => LogicalType::Float64,
        Wit::Decimal((precision, scale)) => LogicalType::Decimal { precision, scale },
        Wit::Text(max) => LogicalType::Text { max },
        Wit::Bytes(max) => LogicalType::Bytes { max },
        Wit::Json => LogicalType::Json,
        Wit::Date => LogicalType::Date,
        Wit::Time(fraction) => LogicalType::Time { fraction },
        Wit::Timestamp(fraction) => LogicalType::Timestamp { fraction },
        Wit::TimestampUtc(fraction) => LogicalType::TimestampUtc { fraction },
        Wit::Geometry => LogicalType::Geometry,
        Wit::Nested(_) => {
            let message = format!("column {column} is nested, which this version of the sdk cannot read");
            return Err(PluginError::config("nested-column", message));
        }
    })
}

pub(super) fn request_in(
    id: String,
    at: terms::Cut,
    before: Option<types::Schema>,
    change: types::SchemaChange,
    after: Option<types::Schema>,
) -> Result<SchemaChangeRequest> {
    let schema = |schema: Option<types::Schema>| schema.map(schema_in).transpose().map(|schema| schema.map(Arc::new));
    let (before, change, after) = (schema(before)?, change_in(change)?, schema(after)?);
    Ok(SchemaChangeRequest { id, at: cut_in(at), before, change, after })
}

fn change_in(change: types::SchemaChange) -> Result<SchemaChange> {
    use types::SchemaChange as Wit;
    Ok(match change {
        Wit::CreateTable => SchemaChange::CreateTable,
        Wit::AddColumn((field, place)) => SchemaChange::AddColumn(field_in(field)?, place_in(place)),
        Wit::DropColumn(name) => SchemaChange::DropColumn(name),
        Wit::RenameColumn((from, to)) => SchemaChange::RenameColumn(from, to),
        Wit::AlterColumn((before, after)) => SchemaChange::AlterColumn(field_in(before)?, field_in(after)?),
        Wit::ReorderColumns => SchemaChange::ReorderColumns,
        Wit::AlterKey => SchemaChange::AlterKey,
        Wit::TruncateTable => SchemaChange::TruncateTable,
        Wit::DropTable => SchemaChange::DropTable,
        Wit::RenameTable(table) => SchemaChange::RenameTable(table_in(table)),
        Wit::CommentTable(comment) => SchemaChange::CommentTable(comment),
    })
}

fn place_in(place: types::ColumnPlace) -> ColumnPlace {
    match place {
        types::ColumnPlace::First => ColumnPlace::First,
        types::ColumnPlace::Last => ColumnPlace::Last,
        types::ColumnPlace::After(column) => ColumnPlace::After(column),
    }
}
